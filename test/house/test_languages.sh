#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the programs of test/examples/languages with the shared library, each if its compiler or
# interpreter is there.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

test -z "$SANITIZE" || skip "a program in another language has no sanitizer"

work=$(mktemp -d) || exit 1
at_end "rm -rf '$work'"
LD_LIBRARY_PATH=$(realpath "$BUILD") || exit 1
unset MAKEFLAGS MFLAGS CARGO_MAKEFLAGS # its job server is not available here
export LD_LIBRARY_PATH GOCACHE="$work/cache" PYTHONUNBUFFERED=yes
export CGO_CFLAGS="-I$PWD/include" CGO_LDFLAGS="-L$LD_LIBRARY_PATH"
ran=0
failed=0

# try_program TOOL COMMAND...: compares what the program says. A tool that is missing is skipped.
try_program()
{
	if ! command -v "$1" >/dev/null; then
		echo "$1 is missing"
		return
	fi
	shift
	ran=$((ran + 1))
	if ! "$@" >"$work/said" 2>&1 || ! diff "$work/expected" "$work/said"; then
		echo "failed: $*"
		cat "$work/said"
		failed=$((failed + 1))
	fi
}

cd test/examples/languages || exit 1
printf '%s\n' "order:7 is due" "asked for user:1" "user:1 is Ada" "user:1 is Ada" >"$work/expected"
try_program python3 python3 timers.py
try_program luajit luajit timers.lua
try_program go go run timers.go
# shellcheck disable=SC2016 # the inner shell expands it
try_program rustc sh -c 'rustc -L "$LD_LIBRARY_PATH" -o "$0" timers.rs && "$0"' "$work/program"
test $failed = 0 || exit 1
test $ran -gt 0 || skip "no other language is here"
