#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that the libraries define no global names but tw_*, and that the shared ones have
# every function of their headers. The static ones may have the compiler's DW.ref.*, which the
# linker merges with a program's own.

cd "$(dirname "$0")/../.." || exit 1

if test -n "$SANITIZE"; then
	echo "the sanitizers add names of their own"
	exit 77
fi

status=0

# check LIBRARY HEADER...
check()
{
	library=$1
	shift
	exported=$(nm -D --defined-only "$BUILD/$library.so" |
		awk '$2 != "A" { print $3 }') || exit 1
	for name in $exported; do
		case $name in
		*@@TIMINGWHEEL_*[0-9]) ;;
		*)
			echo "$name has no version in $library"
			status=1
			;;
		esac
	done
	exported=$(echo "$exported" | sed 's/@.*//')
	linkable=$(nm -g --defined-only "$BUILD/$library.a" |
		awk 'NF == 3 && $3 !~ /^DW\.ref\./ { print $3 }') || exit 1
	for name in $exported $linkable; do
		case $name in
		tw_*) ;;
		*)
			echo "$name is global in $library"
			status=1
			;;
		esac
	done

	# shellcheck disable=SC2013 # one name a line
	for name in $(sed -n 's/^TW_API .*\(tw_[a-z0-9_]*\)(.*/\1/p' "$@"); do
		if ! echo "$exported" | grep -qx "$name"; then
			echo "$name is declared and not exported by $library"
			status=1
		fi
	done
}

# shellcheck disable=SC2086 # several headers
check libtimingwheel $PUBLIC_HEADERS
if test -n "$REDIS_FOUND"; then
	check libtimingwheel-redis include/timingwheel/redis.h
fi
exit $status
