#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What comments name is there:
#   name()             code calls or defines it: the library's, if the comment is the library's
#   tw_name, TW_NAME   code or a string has it
#   pairs with name()  it is ours and orders memory itself, not by calling another function

cd "$(dirname "$0")/../.." || exit 1

# Others' functions that our code does not call.
FOREIGN="cascade exec fork write"

# check [FILE...]
check()
{
	# shellcheck disable=SC2016 # the program is awk's
	awk -v foreign="$FOREIGN" '
	BEGIN {
		count = split(foreign, names, " ")
		for (i = 1; i <= count; i++)
			called["library", names[i]] = called["rest", names[i]] = 1
	}

	function mention(name, kind)
	{
		mentions++
		name_of[mentions] = name
		kind_of[mentions] = kind
		part_of[mentions] = part
		place_of[mentions] = FILENAME ":" FNR
	}

	# One word of a comment. "pairs with" holds up to the end of the sentence, over lines.
	function read_word(word, rest)
	{
		if (word == "with" && last_word ~ /^[Pp]airs?$/)
			is_pairing = 1
		last_word = word
		for (rest = word; match(rest, /[A-Za-z_][A-Za-z0-9_]*\(\)/);
		     rest = substr(rest, RSTART + RLENGTH))
			mention(substr(rest, RSTART, RLENGTH - 2), is_pairing ? "partner" : "call")
		for (rest = word; match(rest, /[A-Za-z0-9_]+/);
		     rest = substr(rest, RSTART + RLENGTH))
			# Not tw_*.
			if (substr(rest, RSTART, RLENGTH) ~ /^(tw|TW)_.*[^_]$/)
				mention(substr(rest, RSTART, RLENGTH), "word")
		if (word ~ /[.;:]$/)
			is_pairing = 0
	}

	function read_comment(text, count, words, i)
	{
		count = split(text, words, " ")
		for (i = 1; i <= count; i++)
			if (words[i] != "*")
				read_word(words[i])
	}

	function end_comment()
	{
		in_comment = is_pairing = 0
		last_word = ""
	}

	# The line without comments and strings; notes the words of the strings.
	function take_code(line, code, found)
	{
		while (1) {
			if (in_comment) {
				if (!match(line, /\*\//)) {
					read_comment(line)
					return code
				}
				found = substr(line, 1, RSTART - 1)
				line = substr(line, RSTART + 2)
				read_comment(found)
				end_comment()
			}
			if (!match(line, /\/[*\/]|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/))
				return code line
			found = substr(line, RSTART, RLENGTH)
			code = code substr(line, 1, RSTART - 1) " "
			line = substr(line, RSTART + RLENGTH)
			if (found == "/*") {
				in_comment = 1
			} else if (found == "//") {
				read_comment(line)
				end_comment()
				return code
			} else {
				note_words(found)
			}
		}
	}

	function note_words(text)
	{
		for (; match(text, /[A-Za-z0-9_]+/); text = substr(text, RSTART + RLENGTH))
			stands[substr(text, RSTART, RLENGTH)] = 1
	}

	function note_calls(code)
	{
		for (; match(code, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/);
		     code = substr(code, RSTART + RLENGTH)) {
			name = substr(code, RSTART, RLENGTH)
			sub(/[ \t]*\($/, "", name)
			called[part, name] = called["rest", name] = 1
		}
	}

	# The braces of a function, and nothing else, stand alone at the beginning of a line.
	function note_functions(code)
	{
		sub(/[ \t]+$/, "", code)
		if (code == "{") {
			gsub(/__attribute__\(\([^)]*\)+/, "", head)
			match(head, /[A-Za-z_][A-Za-z0-9_]*\(/)
			current = substr(head, RSTART, RLENGTH - 1)
		} else if (code ~ /^}/) {
			current = ""
		}
		if (current != "" && code ~ /memory_order_(acquire|release|acq_rel|seq_cst)/)
			orders[current] = 1
		head = code == "" || code ~ /^[#{}]|;$/ ? "" : head " " code
	}

	FNR == 1 {
		part = FILENAME ~ /^(src|include)\// ? "library" : "rest"
		head = current = ""
	}

	{
		code = take_code($0, "")
		note_words(code)
		note_calls(code)
		note_functions(code)
	}

	function complain(i, text)
	{
		printf "%s: %s\n", place_of[i], text
		bad = 1
	}

	END {
		for (i = 1; i <= mentions; i++) {
			name = name_of[i]
			if (kind_of[i] == "word" && !(name in stands))
				complain(i, "there is no " name)
			else if (kind_of[i] != "word" && !((part_of[i], name) in called))
				complain(i, "there is no " name "()")
			else if (kind_of[i] == "partner" && !(name in orders))
				complain(i, name "() does not order memory itself")
		}
		exit bad
	}' "$@"
}

# It finds what it should in a file of four bad comments and some good ones.
complaints=$(check <<'END'
/* As gone(), poll() and tw_here, for tw_* and fork(). Pairs
 * with the acquire in gone_too(), and with here(): tw_gone. here() is a function. */
static __attribute__((noinline)) int here(int tw_here)
{
	return poll("/* not_a_comment() */", tw_here);
}

static void partner(void)
{
	/* release: pairs with partner(); here() sees it. */
	store_explicit(&number, 1, memory_order_release);
}
END
)
if test "$(echo "$complaints" | cut -d : -f 2 | tr '\n' ' ')" != "1 2 2 2 "; then
	echo "check_comments.sh itself is wrong: $complaints"
	exit 1
fi

# shellcheck disable=SC2046 # no name has blanks
check $(find bench include src test -name '*.[ch]' -o -name '*.cpp' | sort)
