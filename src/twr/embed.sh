#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints a C file with the page (page.h): embed.sh FILE. In numbers, for compilers need not take
# strings of that length.

echo '#include "twr/page.h"'
printf '\nconst char page_html[] = {\n'
od -An -v -tu1 "$1" | sed 's/ *\([0-9][0-9]*\)/\1,/g; s/^/	/'
printf '};\nconst size_t page_html_size = sizeof(page_html);\n'
