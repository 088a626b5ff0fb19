#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Counts what calls cost (run.sh) and which lines threads write to together (shared_lines.c), and
# compares that with record.txt:
#
#     check.sh FOLDER PROGRAM...
#
# It fails where a row costs more than the record says (check.awk has the rules). The counts are
# those of one compiler, C library and valgrind, which the record's first line names; with others it
# prints what differs and does not fail. RECORD=yes in the environment writes the record instead.
set -eu -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=$1
tools="# $(${CC:-cc} -v 2>&1 | grep -o '^[a-z]* version [0-9.]*'), $(getconf GNU_LIBC_VERSION),"
tools="$tools $(valgrind --version)"

status=0
{
	echo "$tools"
	"$here/run.sh" "$@"
	"$folder/shared_lines" || status=1
} >"$folder/costs.txt"
if test "${RECORD:-no}" = yes; then
	cp "$folder/costs.txt" "$here/record.txt"
	exit $status
fi
awk -f "$here/check.awk" "$here/record.txt" "$folder/costs.txt" || status=1
exit $status
