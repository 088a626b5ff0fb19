#!/bin/bash -eu
# SPDX-License-Identifier: MIT
#
# Builds the fuzz targets with the compiler, the flags and the engine that OSS-Fuzz gives, into
# $OUT: each with its corpus as a zip file and its dictionary. The libraries that they are linked
# with lie beside them, for where they run there are none, except those of the C library.

# shellcheck disable=SC2016 # $ORIGIN is the loader's
make -j"$(nproc)" fuzz-build FUZZ_CC="$CC" FUZZ_LINK="$CXX ${CXXFLAGS:-}" FUZZ_FLAGS="$CFLAGS" \
	FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
	LDFLAGS='-Wl,-rpath,'\''$$ORIGIN/lib'\'' -Wl,--disable-new-dtags'

mkdir -p "$OUT/lib"
for program in build/test/model/fuzz/fuzz_*; do
	test -f "$program" -a -x "$program" || continue
	target=${program##*/fuzz_}
	cp "$program" "$OUT/"
	zip -jq "$OUT/fuzz_${target}_seed_corpus.zip" "test/model/fuzz/$target"/*
	if test -f "test/model/fuzz/$target.dict"; then
		cp "test/model/fuzz/$target.dict" "$OUT/fuzz_$target.dict"
	fi
	ldd "$program" | awk '$3 ~ "^/" { print $3 }' |
		grep -Ev '/lib(c|m|dl|rt|pthread|resolv)\.so' | xargs -r cp -ut "$OUT/lib"
done
