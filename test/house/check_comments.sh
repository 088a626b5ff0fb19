#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks the comments of C and C++ files, and the text of README files, CHANGES, the upgrade
# guide and manual pages.
#
# Names in comments exist:
#   name()             code calls or defines it: the library's, if the comment is the library's
#   tw_name, TW_NAME   code or a string has it
#   pairs with name()  it is ours and orders memory itself, not by calling another function
#
# Comments are plain English: none opens with one of FRAGMENTS, which have no verb, none has one of
# VALUES in place of a sentence, none has a word of DIALECT.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

FRAGMENTS='(Of|of|The same|the same|Likewise|likewise|As|Than|Nor|Else|Unless|But|So)'
VALUES='(True|true|False|false|NULL|-?[0-9]+):'
DIALECT='seats?|cohorts?|sights?|keyless|anew|lest|likewise|tells?|told|telling|so many|so much|'\
'so long|but for|besides? what|of which|once more|(is|are|be|was) had|since ever|if need be'

# Others' functions that our code does not call.
FOREIGN="cascade exec fork write"

# check [FILE...]: prints the place of each fault.
check()
{
	# shellcheck disable=SC2016 # the program is awk's
	awk -v foreign="$FOREIGN" -v fragments="$FRAGMENTS" -v values="$VALUES" \
		-v dialect="$DIALECT" '
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
			if (words[i] != "*") {
				read_word(words[i])
				comment = comment words[i] " "
			}
	}

	function complain_of_style(text)
	{
		printf "%s:%d: %s\n", FILENAME, comment_line, text
		bad = 1
	}

	# The text is a comment or a paragraph. Names between backquotes are no words.
	function check_style(text, rest)
	{
		gsub(/`[^`]*`/, "X", text)
		if (text ~ "^" fragments "[ ,]")
			complain_of_style("a fragment: " substr(text, 1, 40))
		for (rest = "; " text; match(rest, "[.;] " values " ");
		     rest = substr(rest, RSTART + RLENGTH))
			complain_of_style("a value for a sentence: " substr(rest, RSTART + 2, 40))
		for (rest = " " tolower(text); match(rest, "[^a-z0-9_](" dialect ")[^a-z0-9_(]");
		     rest = substr(rest, RSTART + RLENGTH - 1))
			complain_of_style("dialect:" substr(rest, RSTART, RLENGTH))
	}

	function end_comment()
	{
		check_style(comment)
		comment = ""
		in_comment = is_pairing = 0
		last_word = ""
	}

	# Text beside code: a paragraph ends at an empty line.
	function read_text(line)
	{
		if (line ~ /^(```|\.Bd -literal|\.Ed)/) {
			in_literal = line ~ /^```/ ? !in_literal : line ~ /^\.Bd/
		} else if (line !~ /^(|\.Pp|    .*|\t.*)$/ && !in_literal) {
			if (comment == "")
				comment_line = FNR
			comment = comment line " "
			return
		}
		check_style(comment)
		comment = ""
	}

	# The line without comments and strings; notes the words of the strings.
	function take_code(line, code, piece)
	{
		while (1) {
			if (in_comment) {
				if (!match(line, /\*\//)) {
					read_comment(line)
					return code
				}
				piece = substr(line, 1, RSTART - 1)
				line = substr(line, RSTART + 2)
				read_comment(piece)
				end_comment()
			}
			if (!match(line, /\/[*\/]|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/))
				return code line
			piece = substr(line, RSTART, RLENGTH)
			code = code substr(line, 1, RSTART - 1) " "
			line = substr(line, RSTART + RLENGTH)
			comment_line = FNR
			if (piece == "/*") {
				in_comment = 1
			} else if (piece == "//") {
				read_comment(line)
				end_comment()
				return code
			} else {
				note_words(piece)
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

	FILENAME ~ /\.(md|[0-9])$/ {
		read_text($0)
		next
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

# It finds what it should in a file of seven bad comments and some good ones.
complaints=$(check <<'END'
/* A caller of gone(), poll() and tw_here, for tw_* and fork(). Pairs
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
/* Of one that is set. */
/* Returns a timer; NULL: none. `told` and told_so are names. */
/* Reports so
 * many. */
END
)
if test "$(echo "$complaints" | cut -d : -f 2 | sort -n | tr '\n' ' ')" != "1 2 2 2 13 14 15 "; then
	echo "check_comments.sh itself is wrong: $complaints"
	exit 1
fi

# shellcheck disable=SC2046 # no name has blanks
check README.md src/README.md src/CHANGES.md src/UPGRADE.md src/redis/README.md \
	$(find src/man -name '*.[17]') \
	$(find bench include src test -name '*.[ch]' -o -name '*.[ch]pp' | sort)
