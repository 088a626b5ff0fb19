#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The C blocks of the README with a main() are whole programs: they compile without a warning, and
# run; also if they are stopped and continued meanwhile, which ends a wait with EINTR.

cd "$(dirname "$0")/.." || exit 1
set -e

if ! test -f README.md; then
	echo "no README.md"
	exit 77
fi

examples=$BUILD/test/readme_examples
rm -rf "$examples"
mkdir -p "$examples"
awk -v folder="$examples" '
	/^```/ && inside {
		inside = 0
		if (whole)
			printf "%s", text >(folder "/" ++count ".c")
		next
	}
	inside { text = text $0 "\n"; whole = whole || /^int main\(/ }
	/^```c$/ { inside = 1; text = ""; whole = 0 }' README.md
test -s "$examples/1.c"
for source in "$examples"/*.c; do
	program=${source%.c}
	# shellcheck disable=SC2086 # flags
	$CC -std=c11 -Wall -Wextra -Werror $SANITIZE_FLAGS -Iinclude -o "$program" "$source" \
		"$BUILD/libtimingwheel.a" -pthread
	"$program" &
	pid=$!
	sleep 0.1
	if kill -STOP "$pid" 2>/dev/null; then
		sleep 0.1
		kill -CONT "$pid"
	fi
	wait "$pid"
done
