#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints a C file with the scripts: embed.sh COMMON SCRIPT... Each becomes a struct script named
# after its file, with COMMON before it and the SHA-1 digest of the whole.

common=$1
shift
echo '#include "script.h"'
for file; do
	name=$(basename "$file" .lua)
	digest=$(cat "$common" "$file" | sha1sum | cut -d ' ' -f 1) || exit 1
	printf '\nconst char script_%s_digest[] = "%s";\nconst char script_%s_text[] =\n' \
		"$name" "$digest" "$name"
	cat "$common" "$file" | sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/	"&\\n"/'
	echo '	;'
done
