# SPDX-License-Identifier: MIT
#
# Compares two lists of costs of run.sh: the record and the current one. A row is dearer if it has
# more than
#
#     1 % more instructions, and one
#     half a locked instruction, system call or cache miss more; of misses also 3 %
#     1 % more bytes
#     a shared line more, and 10 %; a twentieth of a transfer more, and 2 %
#
# The last line counts rows. Status 1: a row is dearer, or is in one list alone, and the first lines,
# which name the tools, agree.

BEGIN {
	columns = split("instructions,D1 misses,LL misses,locked instructions,system calls", title, ",")
	split("1 .5 .5 .5 .5", slack)
	split(".01 .03 .03 0 0", share)
}

function differ(word, name, what, before, after) {
	printf "  %-8s %-28s %10.2f -> %10.2f %s", word, name, before, after, what
	if (before > 0)
		printf " (%+.1f %%)", 100 * (after - before) / before
	print ""
}

# Compares one column; returns whether it is dearer.
function compare(name, what, before, after, most, part) {
	if (after > before + most && after > before * (1 + part)) {
		differ("DEARER", name, what, before, after)
		return 1
	}
	if (after < before - most && after < before * (1 - part))
		differ("cheaper", name, what, before, after)
	return 0
}

FNR == 1 {
	if (FILENAME == ARGV[1])
		tools = $0
	else if ($0 != tools) {
		differs = 1
		print "  The record is of " substr(tools, 3) "; this is " substr($0, 3) "."
	}
	next
}

FILENAME == ARGV[1] {
	record[$1] = $0
	next
}

{
	split($1, parts, ".")
	counted[parts[1]] = 1
	now[$1] = 1
	if (!($1 in record)) {
		print "  NEW      " $1 " is not in the record"
		bad++
		next
	}
	fields = split(record[$1], was)
	dearer = 0
	if (fields == 2)
		dearer = compare($1, "bytes", was[2], $2, .5, .01)
	else if (fields == 3) {
		dearer = compare($1, "shared lines", was[2], $2, .5, .1)
		dearer += compare($1, "transfers", was[3], $3, .05, .02)
	} else
		for (i = 1; i <= columns; i++)
			dearer += compare($1, title[i], was[i + 1], $(i + 1), slack[i], share[i])
	bad += dearer > 0
	good += dearer == 0
}

END {
	for (name in record) {
		split(name, parts, ".")
		if (!(name in now) && parts[1] in counted) {
			print "  GONE     " name " is in the record alone"
			bad++
		}
	}
	if (differs) {
		good += bad
		bad = 0
	}
	print good + 0 " passed, " bad + 0 " failed"
	exit bad > 0
}
