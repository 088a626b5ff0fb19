# SPDX-License-Identifier: MIT
#
# Makes the change of one mutant: OLD=... NEW=... AFTER=... awk -f mutate.awk SOURCE.
# OLD must stand in the file exactly once, or, with AFTER, behind the only place of that text:
# then its first place there is meant. White space in both matches any white space, so that a change
# of the format loses no mutant. Exit status 1, with the reason: it does not apply.

# The text as a regular expression.
function pattern_of(text, pattern, i, c)
{
	pattern = ""
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c ~ /[ \t\n]/) {
			while (substr(text, i + 1, 1) ~ /^[ \t\n]$/)
				i++
			pattern = pattern "[ \t\n]+"
		} else if (c ~ /[A-Za-z0-9_,;:=<>"'!&%#@~-]/) {
			pattern = pattern c
		} else if (c == "^" || c == "\\") {
			pattern = pattern "\\" c
		} else {
			pattern = pattern "[" c "]"
		}
	}
	return pattern
}

function fail(reason)
{
	print reason >"/dev/stderr"
	failed = 1
	exit 1
}

# Where `text` begins in `whole` from `from` on, and sets `size`; 0: nowhere.
function find(whole, text, from)
{
	if (!match(substr(whole, from), pattern_of(text)))
		return 0
	size = RLENGTH
	return from + RSTART - 1
}

BEGIN {
	old = ENVIRON["OLD"]
	new = ENVIRON["NEW"]
	after = ENVIRON["AFTER"]
}

{ whole = whole $0 "\n" }

END {
	if (failed)
		exit 1
	from = 1
	if (after != "") {
		from = find(whole, after, 1)
		if (!from)
			fail("the text to begin after is not there: " after)
		from += size
		if (find(whole, after, from))
			fail("the text to begin after is there more than once: " after)
	}
	place = find(whole, old, from)
	if (!place)
		fail("not there: " old)
	width = size
	if (after == "" && find(whole, old, place + width))
		fail("there more than once: " old)
	printf "%s%s%s", substr(whole, 1, place - 1), new, substr(whole, place + width)
}
