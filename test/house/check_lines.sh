#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that no line of code, comment, script or makefile is over 100 columns: clang-format
# checks code alone. A tab goes to the next multiple of 8, and a UTF-8 character is one column.

cd "$(dirname "$0")/../.." || exit 1

# check [FILE...]
check()
{
	# Each awk counts bytes.
	LC_ALL=C awk '
	function columns(text, count, parts, i, sum)
	{
		# These are all bytes of a UTF-8 character but the first.
		gsub(/[\200-\277]/, "", text)
		count = split(text, parts, "\t")
		for (i = 1; i <= count; i++)
			sum += (i > 1 ? 8 - sum % 8 : 0) + length(parts[i])
		return sum
	}

	columns($0) > 100 {
		printf "%s:%d: %d columns, more than 100\n", FILENAME, FNR, columns($0)
		bad = 1
	}

	END { exit bad }' "$@"
}

# passes FORMAT: says whether a line of 92 letters in this format passes.
passes()
{
	# shellcheck disable=SC2059 # a format
	printf "$1\n" "$(printf '%092d' 0)" | check >/dev/null
}

if ! passes '\t%s' || ! passes '1234567\t%s' || ! passes '%s\t5678' || ! passes '%s1234567≤' ||
	passes '\t%s1' || passes '12345678\t%s' || passes '%s\t56789' || passes '%s1234567≤9'; then
	echo "check_lines.sh itself can't count columns"
	exit 1
fi

# shellcheck disable=SC2046 # no name has blanks
check Makefile $(find bench include src test -name '*.[ch]' -o -name '*.cpp' -o -name '*.lua' -o \
	-name '*.mk' -o -name '*.sh' | sort)
