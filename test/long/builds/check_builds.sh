#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the library in many ways, in copies of the tree: with other compilers, for other
# processors, optimized as a whole, in another folder. ALL=yes adds -flto among the user's flags,
# and the compilers' analyzers. Missing programs are named, and their checks skipped; `make deps-ci`
# installs them all. The last line is "N passed, N failed".

cd "$(dirname "$0")/../../.." || exit 1
. test/support/script.sh
tree=$(pwd)
root=$(mktemp -d)
at_end "rm -rf '$root'"
log=$root/log
passed=0
failed=0
unset BUILD CC CXX CFLAGS CPPFLAGS LDFLAGS AR OBJCOPY

has()
{
	for program; do
		command -v "$program" >/dev/null || return 1
	done
}

# copy FOLDER: copies the sources of the library.
copy()
{
	mkdir "$root/$1" && cp -r include src test Makefile "$root/$1"
}

# build FOLDER ARGUMENT...: builds the core alone.
build()
{
	copy=$root/$1
	shift
	MAKEFLAGS='' "${MAKE:-make}" -C "$copy" -j"$(nproc)" REDIS=no V=1 "$@"
}

# check "WHAT" FUNCTION PROGRAM...: calls it in a copy named like it, if the programs are there.
check()
{
	what=$1 function=$2
	shift 2
	if ! has "$@"; then
		printf '  skipped %s: no %s\n' "$what" "$*"
		return
	fi
	copy "$function"
	# In an if's condition -e would have no effect.
	(set -e; "$function" "$@") >"$log" 2>&1
	if test $? = 0; then
		printf '  ok      %s\n' "$what"
		passed=$((passed + 1))
	else
		tail -n 50 "$log"
		printf '  FAILED  %s: %s\n' "$what" "$(tail -n 1 "$log")"
		failed=$((failed + 1))
	fi
	rm -rf "${root:?}/$function"
}

# exports_only_ours FOLDER [VARIANT]: the archive has machine code, with only the library's names
# and what the linker merges with a program's own.
exports_only_ours()
{
	archive=$root/$1/build/${2-}/libtimingwheel.a
	others=$(nm -g --defined-only "$archive" |
		awk 'NF == 3 && $3 !~ /^(tw_|DW\.ref\.)/ { print $3 }')
	ours=$(nm -g --defined-only "$archive" | grep -c ' T tw_' || true)
	bytecode=$(readelf -SW "$archive" | grep -c '\.gnu\.lto_' || true)
	echo "$ours global functions of ours, $bytecode sections of bytecode, and: $others"
	test "$bytecode" = 0
	test -z "$others"
	test "$ours" -gt 50
}

gcc_lto_hides_our_names()
{
	build gcc_lto_hides_our_names CC=gcc CFLAGS='-O2 -flto=auto'
	exports_only_ours gcc_lto_hides_our_names
}

gcc_variant_hides_our_names()
{
	build gcc_variant_hides_our_names CC=gcc LTO=yes
	exports_only_ours gcc_variant_hides_our_names lto
}

clang_variant_hides_our_names()
{
	build clang_variant_hides_our_names CC=clang LTO=yes
	exports_only_ours clang_variant_hides_our_names lto
}

clang_lto_hides_our_names()
{
	build clang_lto_hides_our_names CC=clang CFLAGS='-O2 -flto' LDFLAGS=-fuse-ld=lld
	exports_only_ours clang_lto_hides_our_names
}

s390x_compiles()
{
	build s390x_compiles CC="$1"
}

arm64_compiles()
{
	build arm64_compiles CC="$1"
}

# without_packages FOLDER ARGUMENT...: builds without uthash and cmocka; output goes to `errors`.
without_packages()
{
	mkdir "$root/none"
	for header in uthash cmocka; do
		echo '#error none' >"$root/none/$header.h"
	done
	build "$@" CPPFLAGS="-I$root/none" -j1 >"$root/errors" 2>&1 || true
	rm -r "$root/none"
	cat "$root/errors"
}

# The header's message comes before what the compiler says of the rest.
a_32_bit_processor_is_named_first()
{
	without_packages a_32_bit_processor_is_named_first CC="$1"
	grep 'error:' "$root/errors" | head -n 1 | grep -q '#error.*64-bit'
	test "$(grep -c "^[a-z]*.h .* 'make deps'" "$root/errors")" = 0
}

what_is_missing_is_named()
{
	without_packages what_is_missing_is_named -k
	test "$(grep -c "^uthash.h .* 'make deps'" "$root/errors")" -gt 0
	test "$(grep -c '^cmocka.h' "$root/errors")" = 0
}

install_takes_what_was_built()
{
	folder=$root/install_takes_what_was_built
	build install_takes_what_was_built CFLAGS=-O3 CPPFLAGS=-DUNUSED=1
	sha1sum "$folder"/build/libtimingwheel.* >"$root/before"
	build install_takes_what_was_built install DESTDIR="$root/installed" >"$root/commands"
	cat "$root/commands"
	sha1sum "$folder"/build/libtimingwheel.* | diff "$root/before" -
	test "$(grep -c -- ' -c ' "$root/commands")" = 0
	cmp "$folder/build/libtimingwheel.a" "$root/installed/usr/local/lib/libtimingwheel.a"
}

# same_bytes COMPILER: builds without a warning, with debug information, in two folders, once
# without make's own rules and in Turkish, where the capital of i differs.
same_bytes()
{
	copy "${function}_again"
	build "$function" CC="$1" CFLAGS='-O2 -g -Werror' all man
	localedef -i tr_TR -f UTF-8 "$root/tr_TR.UTF-8"
	LOCPATH=$root LC_ALL=tr_TR.UTF-8 \
		build "${function}_again" -R CC="$1" CFLAGS='-O2 -g -Werror' all man
	for made in libtimingwheel.a libtimingwheel.so man; do
		diff -r "$root/$function/build/$made" "$root/${function}_again/build/$made"
	done
}

gcc_makes_the_same_bytes_everywhere()
{
	same_bytes gcc
}

clang_makes_the_same_bytes_everywhere()
{
	same_bytes clang
}

clang_19_warns_of_nothing()
{
	build clang_19_warns_of_nothing CC="$1" CFLAGS='-O2 -g -Werror -Wthread-safety'
}

# The tests left out need a descriptor, CLOCK_BOOTTIME or the names of threads.
fallbacks_pass_the_tests()
{
	build fallbacks_pass_the_tests CPPFLAGS='-include test/long/builds/no_linux.h' test \
		TESTS='base/test_pages base/test_slab model/test_model \
		runtime/test_go_zero faults/test_threads_faults \
		runtime/test_tasks cache/test_cache cache/test_pins'
}

# Compares an analyzer's findings, as "FILE CHECK", with those in explained.txt, which must be
# exactly the same, so that no explanation stays without its cause.
analyze()
{
	analyzer=$1
	shift
	cd "$root/$function"
	find src -name '*.c' ! -path '*/redis/*' ! -path '*/twr/*' | sort |
		xargs -P "$(nproc)" -I{} sh -c \
			"$* -D_GNU_SOURCE -Iinclude -Isrc -std=c11 -O2 {} -o /dev/null 2>{}.found"
	find src -name '*.found' | sort | xargs cat >"$root/found"
	cat "$root/found"
	sed -n 's/^\([^:]*\):.*warning: .*\[\([^]]*\)\]$/\1 \2/p' "$root/found" | sort -u \
		>"$root/said"
	sed -n "s/^$analyzer \([^ ]* [^ ]*\):.*/\1/p" "$tree/test/long/builds/explained.txt" |
		sort -u | diff - "$root/said"
}

gcc_analyzer_finds_what_is_explained()
{
	analyze gcc gcc -fanalyzer -c
}

clang_analyzer_finds_what_is_explained()
{
	analyze clang clang --analyze
}

check "gcc LTO=yes: only tw_ names are global" gcc_variant_hides_our_names gcc
check "clang LTO=yes: only tw_ names are global" clang_variant_hides_our_names clang ld.lld
check "arm64 compiles" arm64_compiles aarch64-linux-gnu-gcc
check "a 32-bit processor is named first" a_32_bit_processor_is_named_first \
	i686-linux-gnu-gcc
check "what is missing is named" what_is_missing_is_named gcc
check "make install takes what was built" install_takes_what_was_built
check "gcc: no warning, and the same bytes in other folders and locales" \
	gcc_makes_the_same_bytes_everywhere gcc localedef
check "clang: no warning, and the same bytes in other folders and locales" \
	clang_makes_the_same_bytes_everywhere clang localedef
check "without what Linux alone has, tests pass" fallbacks_pass_the_tests gcc
check "clang 19: no warning" clang_19_warns_of_nothing clang-19

if test "$ALL" = yes; then
	check "gcc -flto: only tw_ names are global" gcc_lto_hides_our_names gcc
	check "clang -flto: only tw_ names are global" clang_lto_hides_our_names clang ld.lld
	check "s390x compiles" s390x_compiles s390x-linux-gnu-gcc
	check "gcc's analyzer finds what is explained" gcc_analyzer_finds_what_is_explained gcc
	check "clang's analyzer finds what is explained" clang_analyzer_finds_what_is_explained \
		clang
fi

echo "$passed passed, $failed failed"
test $failed = 0
