#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The build script for OSS-Fuzz, run in a copy of the sources with the environment that OSS-Fuzz
# gives, fills $OUT with what runs there: each fuzz target with its corpus runs for a second, by the
# libraries beside it.

cd "$(dirname "$0")/../../.." || exit 1
. test/support/script.sh
set -e

test -z "$SANITIZE" || skip "the script sets sanitizers of its own"
for program in clang clang++ zip unzip; do
	command -v $program >/dev/null || skip "$program is not there"
done

folder=$(pwd)/test/model/fuzz/oss-fuzz
targets=$FUZZ_ALL
work=$(mktemp -d)
at_end "rm -rf '$work'"
mkdir -p "$work/src" "$work/out"
cp -r include src test bench Makefile LICENSE "$work/src"
(
	cd "$work/src"
	# shellcheck disable=SC2046 # names
	unset $(env | sed -n 's/^\([A-Za-z_]*\)=.*/\1/p' | grep -vxE 'PATH|HOME|TMPDIR|LANG')
	export SRC="$work" OUT="$work/out" CC=clang CXX=clang++ SANITIZER=address \
		FUZZING_ENGINE=libfuzzer LIB_FUZZING_ENGINE=-fsanitize=fuzzer ARCHITECTURE=x86_64
	export CFLAGS="-O1 -fno-omit-frame-pointer -gline-tables-only \
-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -fsanitize=address -fsanitize=fuzzer-no-link"
	export CXXFLAGS="$CFLAGS"
	"$folder/build.sh"
)
count=0
for target in $targets; do
	rm -rf "$work/corpus"
	mkdir "$work/corpus"
	unzip -q "$work/out/fuzz_${target}_seed_corpus.zip" -d "$work/corpus"
	test "$(find "$work/corpus" -type f | wc -l)" = \
		"$(find "test/model/fuzz/$target" -type f | wc -l)"
	dictionary=$work/out/fuzz_$target.dict
	test ! -f "test/model/fuzz/$target.dict" || test -s "$dictionary"
	# The loader takes nothing but the C library's from elsewhere.
	ldd "$work/out/fuzz_$target" | awk '$3 ~ "^/" { print $3 }' |
		grep -v "^$work/out/lib/" | grep -vE '/lib(c|m|dl|rt|pthread|resolv)\.so' |
		grep . && exit 1
	# shellcheck disable=SC2046 # an option, or none
	timeout 60 "$work/out/fuzz_$target" -max_total_time=1 -artifact_prefix="$work/" \
		$(test ! -s "$dictionary" || echo "-dict=$dictionary") "$work/corpus" \
		>"$work/said" 2>&1 || { tail -n 50 "$work/said"; exit 1; }
	grep -q '^Done [0-9]* runs' "$work/said"
	count=$((count + 1))
done
echo "$count targets ran"
test $count -gt 0
