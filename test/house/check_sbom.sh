#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `make sbom` writes SPDX 2.3 with every field that SPDX requires. Each library that the dynamic
# loader brings is there, related to the file that needs it, and so is uthash. Made again it is the
# same, except for its time, which is $SOURCE_DATE_EPOCH.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
set -e

test -z "$SANITIZE" || skip "what is handed on has no sanitizer"
python3 -c '' 2>/dev/null || skip "python3 is not there"

work=$(mktemp -d)
at_end "rm -rf '$work'"

# sbom EPOCH: of what is built, with whichever flags.
sbom()
{
	SOURCE_DATE_EPOCH=$1 MAKEFLAGS='' MFLAGS='' "${MAKE:-make}" -o all BUILD="$BUILD" \
		REDIS="${REDIS_FOUND:-no}" DIST="$work/$1.tar.xz" sbom
}
sbom 86400
sbom 86401
sed 's/1970-01-02T00:00:01Z/1970-01-02T00:00:00Z/' "$work/86401.spdx.json" |
	cmp - "$work/86400.spdx.json"

for file in "$BUILD"/libtimingwheel*.so "$BUILD/twr"; do
	test ! -e "$file" || objdump -p "$(realpath "$file")" |
		awk -v file="$(basename "$(realpath "$file")")" '/NEEDED/ { print file, $2 }'
done >"$work/needed"
test -s "$work/needed"

# check DOCUMENT: says what is wrong.
check()
{
	python3 - "$1" "$work/needed" <<-'END'
	import json, re, sys

	document = json.load(open(sys.argv[1]))
	packages = {package["SPDXID"]: package for package in document["packages"]}
	relations = {(relation["spdxElementId"], relation["relationshipType"],
	              relation["relatedSpdxElement"]) for relation in document["relationships"]}
	names = {package["name"]: identifier for identifier, package in packages.items()}

	def require(holds, what):
	    if not holds:
	        sys.exit(what)

	require(document["spdxVersion"] == "SPDX-2.3", "spdxVersion")
	require(document["dataLicense"] == "CC0-1.0", "dataLicense")
	require(document["SPDXID"] == "SPDXRef-DOCUMENT", "SPDXID of the document")
	require(document["name"], "name of the document")
	require(re.fullmatch(r"https?://[^#\s]+", document["documentNamespace"]), "namespace")
	created = document["creationInfo"]
	require(re.fullmatch(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}Z", created["created"]), "time")
	require(created["creators"], "creators")
	for one in created["creators"]:
	    require(re.match(r"(Tool|Person|Organization): .", one), one)
	require(len(packages) == len(names) == len(document["packages"]), "one is there twice")
	for identifier, package in packages.items():
	    require(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", identifier), identifier)
	    require(package["name"] and package["downloadLocation"], identifier)
	    require(package["filesAnalyzed"] is False, identifier + ": its files are not there")
	    require(re.fullmatch(r"NOASSERTION|[0-9][^\s]*", package["versionInfo"]), identifier)
	    for reference in package.get("externalRefs", []):
	        require(re.fullmatch(r"pkg:[a-z]+/[^\s@]+@[^\s@?]+(\?arch=\w+)?",
	                             reference["referenceLocator"]), identifier)
	for one, kind, other in relations:
	    require((one in packages or one == document["SPDXID"]) and other in packages,
	            f"{one} {kind} {other}")
	    require(kind in ("DESCRIBES", "DYNAMIC_LINK", "STATIC_LINK"), kind)
	for line in open(sys.argv[2]):
	    file, library = line.split()
	    # Ours are asked for by the beginning of their names.
	    other = next((names[name] for name in names if name == library or
	                  library.startswith("libtimingwheel") and name.startswith(library)), None)
	    require((names[file], "DYNAMIC_LINK", other) in relations, f"{file} needs {library}")
	    require((document["SPDXID"], "DESCRIBES", names[file]) in relations, file)
	    if file.startswith("libtimingwheel"):
	        require((names[file], "STATIC_LINK", names["uthash.h"]) in relations, file)
	require(re.fullmatch(r"[0-9.]+", packages[names["uthash.h"]]["versionInfo"]), "uthash")
	END
}
check "$work/86400.spdx.json"

# The check finds a library that is missing.
sed 's/libc\.so\.6/libd.so.6/g' "$work/86400.spdx.json" >"$work/less"
if check "$work/less" >/dev/null 2>&1; then
	echo "a library is missing, and nobody saw it"
	exit 1
fi
