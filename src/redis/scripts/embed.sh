#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints a C file with the scripts: embed.sh SCRIPT... Each becomes the text and the digest of a
# struct script named after its file. Before it stand shared/time.lua and the shared files that
# its first line asks for: "-- with: hint leased". The full digest is that of
# SCRIPT_AT_FULL_MEMORY (wire/script.h) and the text. $FIRST is a file to stand before all of it,
# with SCRIPT for the name.

shared=$(dirname "$0")/shared

# parts SCRIPT: with comments
parts()
{
	test -z "$FIRST" || sed "s/SCRIPT/$(basename "$1" .lua)/g" "$FIRST"
	cat "$shared/time.lua" || exit 1
	for part in $(sed -n '1s/^-- with: //p' "$1"); do
		cat "$shared/$part.lua" || exit 1
	done
	cat "$1"
}

# whole SCRIPT: all of what Redis is given
whole()
{
	parts "$1" | sed '/^[[:space:]]*--/d; /^$/d'
}

echo '#include "redis/wire/script.h"'
for file; do
	name=$(basename "$file" .lua)
	digest=$(whole "$file" | sha1sum | cut -d ' ' -f 1)
	full=$( (echo '#!lua flags=allow-oom' && whole "$file") | sha1sum | cut -d ' ' -f 1)
	printf '\nconst char script_%s_digest[] = "%s";\n' "$name" "$digest"
	printf 'const char script_%s_full_digest[] = "%s";\n' "$name" "$full"
	printf 'const char script_%s_text[] =\n' "$name"
	whole "$file" | sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/	"&\\n"/'
	echo '	;'
done
