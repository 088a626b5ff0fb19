#!/bin/sh
# SPDX-License-Identifier: MIT
#
# With REDIS=no the core is built and tested alone: it has nothing of the part on Redis, and needs
# only libc.

cd "$(dirname "$0")/../.." || exit 1
set -e
unset TESTS
. test/support/script.sh

test -z "$SANITIZE" || skip "the plain build is looked at"

alone=$BUILD/test/core_alone
at_end "rm -rf '$alone'"

# This is a make of its own: the outer one's job server and T do not apply here.
core_make()
{
	MAKEFLAGS='' MFLAGS='' T='' "$MAKE" -j2 BUILD="$alone" REDIS=no "$@"
}

core_make all
core_make test TESTS="runtime/test_calls house/check_exports house/man/test_man"
leftovers=$(find "$alone" -name '*redis*' -o -name twr)
if test -n "$leftovers"; then
	echo "built all the same: $leftovers"
	exit 1
fi
if core_make -n test | grep -i 'redis/\|hiredis\|curl\|jansson'; then
	echo "that is of the part on Redis"
	exit 1
fi
# libgcc_s unwinds the stack for exceptions; libc needs it, too.
needed=$(readelf -d "$alone/libtimingwheel.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
if test "$(echo "$needed" | grep -cv '^libc\.so\|^libgcc_s\.so\|^ld-linux')" != 0; then
	echo "the core needs more than libc and libgcc_s: $needed"
	exit 1
fi
