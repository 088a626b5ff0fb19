#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints a C file with the page and its policy (pages.h): embed.sh FILE. In numbers, for compilers
# need not take strings of that length.

# digest NAME: of what is in the element, as the policy of a page has it
digest()
{
	hex=$(awk -v name="$1" 'BEGIN { RS = "\001" }
		{ sub(".*<" name ">", ""); sub("</" name ">.*", ""); printf "%s", $0 }' "$page" |
		sha256sum | cut -c 1-64 | sed 's/../ &/g')
	for byte in $hex; do
		printf "\\$(printf %o "0x$byte")"
	done | base64
}

page=$1
echo '#include "twr/pages.h"'
printf '\nconst char page_html[] = {\n'
od -An -v -tu1 "$page" | sed 's/ *\([0-9][0-9]*\)/\1,/g; s/^/	/'
printf '};\nconst size_t page_html_size = sizeof(page_html);\n'
cat <<END

const char page_policy[] = "default-src 'none'; script-src 'sha256-$(digest script)'; "
	"style-src 'sha256-$(digest style)'; connect-src 'self'; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
END
