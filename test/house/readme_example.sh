#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that the C blocks of the README and of the manual's pages compile without a warning.
# Those with a main() are whole programs and run, also if they are stopped and continued meanwhile,
# which ends a wait with EINTR. The others are functions, with names from test/house/readme/names.h.

cd "$(dirname "$0")/../.." || exit 1
set -e

if ! test -f README.md; then
	echo "no README.md"
	exit 77
fi

examples=$BUILD/test/readme_examples
rm -rf "$examples"
mkdir -p "$examples"

# take_blocks FILE BEGIN END: extracts the blocks with a function, as programs or functions.
take_blocks()
{
	awk -v place="$examples/$(basename "$1")" -v begin="$2" -v end="$3" '
		$0 ~ end && inside {
			inside = 0
			if (kind)
				printf "%s", text >(place "." ++count "." kind ".c")
			next
		}
		inside {
			gsub(/\\e/, "\\")
			text = text $0 "\n"
			if (/^int main\(/)
				kind = "program"
			else if (/^static / && !kind)
				kind = "functions"
		}
		$0 ~ begin { inside = 1; text = kind = "" }' "$1"
}

# shellcheck disable=SC2016 # fences
take_blocks README.md '^```c$' '^```$'
for page in src/man/*.7; do
	take_blocks "$page" '^\.Bd -literal$' '^\.Ed$'
done
test -s "$examples/README.md.1.program.c"

for source in "$examples"/*.functions.c; do
	# shellcheck disable=SC2086 # flags
	$CC -std=c11 -Wall -Wextra -Werror -Wno-unused-function $SANITIZE_FLAGS -Iinclude \
		-include test/house/readme/names.h -fsyntax-only "$source"
done
for source in "$examples"/*.program.c; do
	program=${source%.c}
	# shellcheck disable=SC2086 # flags
	$CC -std=c11 -Wall -Wextra -Werror $SANITIZE_FLAGS -Iinclude -o "$program" "$source" \
		"$BUILD/libtimingwheel.a" -pthread
	"$program" &
	pid=$!
	sleep 0.01
	if kill -STOP "$pid" 2>/dev/null; then
		sleep 0.1
		kill -CONT "$pid" 2>/dev/null || :
	fi
	wait "$pid"
done
