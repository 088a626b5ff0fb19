#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that tests include no headers of src/ but those that test/inside names.

cd "$(dirname "$0")/../.." || exit 1
grep -E '^#include "(base|wheel|runtime|cron|cache)/' \
	test/runtime/*.c test/faults/*.c test/model/[!c]*.c |
	sed -E 's#^test/(.*):.include "(.*)".*#\1 \2#' | sort | diff test/inside - |
	sed -n 's/^< \([^#]\)/named and not included: \1/p; s/^>/included and not named:/p' |
	grep . && exit 1
exit 0
