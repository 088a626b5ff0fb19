#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The first C block of the README is a whole program: it compiles without a warning, and runs.

cd "$(dirname "$0")/.." || exit 1
set -e

if ! test -f README.md; then
	echo "no README.md"
	exit 77
fi

example=$BUILD/test/readme_example
awk '/^```/ && inside { exit } inside; /^```c$/ { inside = 1 }' README.md >"$example.c"
test -s "$example.c"
# shellcheck disable=SC2086 # flags
$CC -std=c11 -Wall -Wextra -Werror $SANITIZE_FLAGS -Iinclude -o "$example" "$example.c" \
	"$BUILD/libtimingwheel.a" -pthread
"$example"
