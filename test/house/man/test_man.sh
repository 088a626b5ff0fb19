#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that each public function has a page, made from its comment; that of a call with a
# status has a table of statuses, each once. mandoc accepts each page. The generator
# reports where it can't go on.

cd "$(dirname "$0")/../../.." || exit 1
. test/support/script.sh

if ! command -v mandoc >/dev/null; then
	echo "there is no mandoc: try 'make deps'"
	exit 1
fi

pages=$BUILD/man
headers=$PUBLIC_HEADERS
test -z "$REDIS_FOUND" || headers="$headers include/timingwheel/redis.h"
status=0

complain()
{
	echo "$*"
	status=1
}

# text PAGE: prints the page as a reader sees it.
text()
{
	mandoc -T ascii "$1" | sed "s/.$(printf '\b')//g"
}

# returned PAGE: prints the first column of the table in RETURN VALUES.
returned()
{
	text "$1" | sed -n '/^RETURN VALUES/,/^[S-Z]/s/^       \([A-Z][A-Z_]*\)  .*$/\1/p'
}

# --- Each function -----------------------------------------------------------------------------
# look HEADER NAME PAGE
look()
{
	if ! test -s "$3"; then
		complain "$2 has no page"
		return
	fi
	text "$3" | grep -q "^     .*$2(" || complain "$2 is not in the SYNOPSIS of its page"
	grep -q "^TW_[A-Z]* enum tw_status $2(" "$1" || return

	listed=$(returned "$3")
	text "$3" | grep -q "^RETURN VALUES" || complain "$2 does not say what it returns"
	for word in $listed; do
		echo "$known" | grep -qx "$word" || complain "$2 returns $word, which is no status"
	done
	again=$(echo "$listed" | sort | uniq -d)
	test -z "$again" || complain "$2 has in its table twice: $again"
}

# shellcheck disable=SC2086 # several headers
known=$(sed -n 's/^	X(\(TW_[A-Z_]*\),.*/\1/p' $headers)
for header in $headers; do
	# shellcheck disable=SC2013 # one name a line
	for name in $(sed -n 's/^TW_[A-Z]* .*\(tw_[a-z0-9_]*\)(.*/\1/p' "$header"); do
		look "$header" "$name" "$pages/man3/$name.3"
	done
done

# --- All pages ---------------------------------------------------------------------------------
found=$(find "$pages" -name '*.[1-9]' | sort | xargs mandoc -T lint -W warning)
test -z "$found" || complain "$found"

# groff 1.24 leaves out the text of a macro that a bracket begins, and ASCII has no sign for micro.
found=$(find "$pages" -name '*.[1-9]' -exec grep -HnE '^\.(Dv|F[an]|Ql|V[at]|Xr) [[(]|\\\(mc' {} +)
test -z "$found" || complain "groff would leave words out: $found"

# The targets of our pages' links exist; those on Redis only if that part is built.
for page in $(find "$pages" -name '*.[1-9]' -exec grep -oh 'Xr t[0-9a-z_-]* [1-9]' {} + | sort -u |
	sed -n 's|^Xr \(tw.*\) \(.\)$|man\2/\1.\2|p
		s|^Xr \(timingwheel.*\) \(.\)$|man\2/\1.\2|p'); do
	case $page in
	*twr* | *redis*) test -n "$REDIS_FOUND" || continue ;;
	esac
	test -e "$pages/$page" || complain "pages lead to $page, which is not there"
done

# --- One page, word by word --------------------------------------------------------------------
page=$pages/man3/tw_set_timer.3
listed=$(returned "$page" | tr '\n' ' ')
test "$listed" = "TW_OK TW_INVALID TW_FULL TW_NO_MEMORY " ||
	complain "tw_set_timer.3 says that it returns: $listed"
for words in "tw_set_timer - arms a timer for the key" "#include <timingwheel/timingwheel.h>" \
	"tw_set_timer(struct tw_wheel *wheel, const void *key" "tw_options(3)" \
	"With any status but TW_OK the value is still the"; do
	text "$page" | grep -qF "$words" || complain "tw_set_timer.3 does not say: $words"
done
text "$pages/man3/tw_missed.3" | grep -qF "tw_every(3)" ||
	complain "tw_missed.3 does not lead to the call that it is for"

# --- Mistakes ----------------------------------------------------------------------------------
folder=$(mktemp -d)
at_end "rm -rf '$folder'"

# try LINE...: makes pages from a header with these lines.
try()
{
	rm -f "$folder"/*
	printf '%s\n' "$@" >"$folder/mistakes.h"
	awk -f src/man/pages.awk -v folder="$folder" -v date=2026-02-03 -v release=1.2.3 \
		"$folder/mistakes.h" 2>"$folder/errors"
}

try '/* One thing. */' 'TW_API int tw_some(void);' '' \
	'/* Another. */' 'TW_API int tw_some(void);' &&
	complain "two pages for one name are made"
grep -q 'mistakes.h:5: tw_some' "$folder/errors" || complain "it is not said where the mistake is"

try '/*' ' * Does it; more (tw_thing). Then' ' * more.' ' *' ' *  - a' ' *' ' * .Text' ' *' \
	' * Returns:' ' *   TW_OK  done' ' */' \
	'TW_API int tw_some(int (*each)(int a, int b), void *b);' 'TW_API int tw_other(void);' '' \
	'struct tw_thing {' '	int one; /* a */' '};' ||
	complain "no page is made: $(cat "$folder/errors")"
for words in '.Dd February 3, 2026' '.Nd does it' \
	'int tw_some(int (*each)(int a, int b), void *b);' 'Does it; more (tw_thing).' \
	'Then' ' \- a' '\&.Text' '  TW_OK  done' '.Xr tw_thing 3'; do
	grep -qxF -- "$words" "$folder/tw_some.3" || complain "a page does not have: $words"
done
cmp -s "$folder/tw_other.3" "$folder/tw_some.3" || complain "tw_other has another page"

try 'TW_API int tw_bare(void);' && complain "a call without a comment has a page"

try '/* Made of nothing. */' 'TW_API int tw_mistakes(void);' &&
	complain "a function has the page of a header"

exit $status
