#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This links programs in C and C++ with the archive, and runs them: with -flto or not, as PIE, not
# as PIE, static and static PIE, by the linkers and compilers that are there. They have a cleanup,
# an exception and a probe of their own. `check_links.sh all` tries each combination, otherwise it
# tries some. A combination that does not link without the library either is left out.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
test -z "$SANITIZE" || skip "the archive needs the sanitizer's library"

which=${1:-some}
work=$(mktemp -d) || exit 1
at_end "rm -rf '$work'"
linked=0
left_out=0
failed=0

# wanted: says whether this combination is tried.
wanted()
{
	case $which/$compiler/$linker/$mode in
	all/* | some/g*/bfd/* | some/g*/gold/-pie | some/clang*/lld/-pie) return 0 ;;
	*) return 1 ;;
	esac
}

# link_program SOURCE FLAGS ARCHIVE: makes a program of this combination.
link_program()
{
	case $mode in
	-pie | -static-pie) code=-fPIE ;;
	*) code=-fno-PIE ;;
	esac
	# shellcheck disable=SC2086 # several flags
	"$compiler" $flags $2 $code $mode -fuse-ld=$linker -o "$work/program" \
		"test/house/links/$1" $3 -pthread
}

# try SOURCE
try()
{
	wanted || return
	if ! link_program "$1" -Iinclude "$BUILD/libtimingwheel.a" >"$work/log" 2>&1; then
		if ! link_program "$1" -DWITHOUT_LIBRARY '' >/dev/null 2>&1; then
			left_out=$((left_out + 1))
			return
		fi
		why="does not link: $(grep -m 1 -e relocation -e discarded -e error "$work/log")"
	elif timeout 60 "$work/program" >"$work/log" 2>&1; then
		linked=$((linked + 1))
		return
	else
		why="ends with status $?"
	fi
	failed=$((failed + 1))
	echo "$compiler $flags $mode, $linker: $why"
}

for compiler in gcc g++ clang clang++; do
	command -v $compiler >/dev/null || continue
	case $compiler in *++) source=user.cpp ;; *) source=user.c ;; esac
	for flags in '-O2 -fexceptions' '-O2 -fexceptions -flto'; do
		for mode in -pie -no-pie -static -static-pie; do
			for linker in bfd gold lld; do
				! command -v ld.$linker >/dev/null || try $source
			done
		done
	done
done
echo "$linked linked, $left_out left out, $failed failed"
test $failed = 0 && test $linked -gt 0
