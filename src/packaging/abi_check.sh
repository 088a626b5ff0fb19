#!/bin/sh
# SPDX-License-Identifier: MIT
#
# abi_check.sh LIBRARY...: compares the binary interface of each library in $BUILD, as in its debug
# information and the public headers, with what is recorded of it in src/packaging/abi. New
# functions are no difference. With RECORD=yes it records. $ABI and $HEADERS are other folders. The
# last line is "N passed, N failed".

abi=${ABI:-src/packaging/abi}
headers=${HEADERS:-include/timingwheel}

if ! command -v abidw >/dev/null; then
	echo "abidw is not there: try 'make deps-ci' (package abigail-tools)" >&2
	exit 1
fi
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# describe LIBRARY: without what changes with the machine.
describe()
{
	abidw --exported-interfaces-only --drop-private-types --drop-undefined-syms \
		--headers-dir "$headers" --suppressions src/packaging/abi/private.suppr \
		--no-architecture --no-corpus-path --no-comp-dir-path --no-show-locs \
		--no-elf-needed --no-write-default-sizes --no-parameter-names \
		"$BUILD/$1.so" | sed 's/^ *//' >"$new"
	if ! grep -q '<function-decl' "$new"; then
		echo "$BUILD/$1.so has no debug information" >&2
		return 1
	fi
}

passed=0
failed=0
for library; do
	if describe "$library" && if test "$RECORD" = yes; then
		cat "$new" >"$abi/$library.abi"
	else
		abidiff --no-added-syms "$abi/$library.abi" "$new"
	fi; then
		passed=$((passed + 1))
	else
		echo "$library: if it is meant, or abidw is another: make abi-check RECORD=yes"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
test $failed = 0
