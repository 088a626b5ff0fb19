#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sbom.sh VERSION FILE...: lists what built files are made of, as SPDX 2.3 in JSON. FILE is a shared
# library or a program; behind it, each after a colon, are the libraries of FILE... that are a
# static part of it. What the dynamic loader brings has the version of its Debian package, if dpkg
# knows one. $SOURCE_DATE_EPOCH is the time, if it is set. $CC finds libraries and headers.

set -e
export LC_ALL=C
version=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC1091 # the system's
system=$(. /etc/os-release && echo "$ID")

# id NAME: of letters, digits, dots and hyphens
id()
{
	echo "SPDXRef-$1" | tr -c 'A-Za-z0-9.\n-' -
}

# package NAME VERSION LICENSE FIELD: once for each name
package()
{
	cat >"$work/$(id "$1").package" <<-END
	    {"SPDXID": "$(id "$1")", "name": "$1",
	     "versionInfo": "$2", "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
	     "licenseConcluded": "NOASSERTION", "licenseDeclared": "$3",
	     "copyrightText": "NOASSERTION"${4:+,
	     $4}}
	END
}

# package_at ADDRESS: the field for it
package_at()
{
	echo '"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER",' \
		'"referenceType": "purl", "referenceLocator": "pkg:'"$1"'"}]'
}

# foreign NAME PATH: a file of the system. dpkg may know it by the path without links, or without
# the first folder.
foreign()
{
	test ! -e "$work/$(id "$1").package" || return 0
	path=$(realpath "$2")
	owner=$(dpkg -S "$2" "$path" "${path#/usr}" 2>/dev/null | sed -n '1s/: .*//p') || true
	if test -z "$owner"; then
		package "$1" NOASSERTION NOASSERTION
		return
	fi
	found=$(dpkg-query -W -f '${Version}' "$owner")
	package "$1" "$found" NOASSERTION "$(package_at "deb/$system/${owner%%:*}@$(
		echo "$found" | sed 's/+/%2B/g; s/:/%3A/g')$(
		dpkg-query -W -f '?arch=${Architecture}' "$owner")")"
}

# relate NAME KIND OTHER
relate()
{
	cat >>"$work/relations" <<-END
	    {"spdxElementId": "$(id "$1")", "relationshipType": "$2",
	     "relatedSpdxElement": "$(id "$3")"}
	END
}

# headers NAME: what is compiled into a library
headers()
{
	found=$(echo UTHASH_VERSION | $CC -include uthash.h -E -P -xc - | tail -n 1)
	package uthash.h "$found" BSD-1-Clause "$(package_at "github/troydhanson/uthash@v$found")"
	relate "$1" STATIC_LINK uthash.h
}

for file; do
	parts=$(echo "$file" | tr : '\n' | sed 's|.*/||')
	file=${file%%:*}
	name=${file##*/}
	sum=$(sha256sum "$file" | cut -d ' ' -f 1)
	package "$name" "$version" MIT \
		"\"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"$sum\"}]"
	relate DOCUMENT DESCRIBES "$name"
	case $name in libtimingwheel*) headers "$name" ;; esac
	for part in $parts; do
		test "$part" = "$name" || relate "$name" STATIC_LINK "$part"
	done
	for needed in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		case $needed in
		# Ours are asked for by a link, whose name has less of the version.
		libtimingwheel*) needed=$(basename "$(realpath "$(dirname "$file")/$needed")") ;;
		*) foreign "$needed" "$($CC -print-file-name="$needed")" ;;
		esac
		relate "$name" DYNAMIC_LINK "$needed"
	done
done

# list FILE...: of objects, as JSON has it
list()
{
	cat "$@" | sed '/}$/s/$/,/; $s/,$//'
}

cat <<END
{
  "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
  "name": "timingwheel-$version",
  "documentNamespace": "https://spdx.org/spdxdocs/timingwheel-$version-$(
	cat "$work"/*.package "$work/relations" | sha256sum | cut -c 1-32)",
  "creationInfo": {
    "created": "$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)",
    "creators": ["Tool: sbom.sh-$version"]
  },
  "packages": [
$(list "$work"/*.package)
  ],
  "relationships": [
$(list "$work/relations")
  ]
}
END
