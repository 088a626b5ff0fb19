#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The README's three commands schedule a callback and show it run. Only the ports differ.

cd "$(dirname "$0")/../.." || exit 1
set -e
. test/support/script.sh

command -v python3 >/dev/null || skip "no python3 to be called (package python3)"

folder=$(mktemp -d)
# shellcheck disable=SC2016 # when it ends
at_end 'kill $processes 2>/dev/null || true; wait; rm -rf "$folder"'
processes=

# Prints free ports below those that the system assigns.
free_ports()
{
	python3 -c 'import random, socket

def is_free(port):
    try:
        socket.socket().bind(("127.0.0.1", port))
        return True
    except OSError:
        return False

print(*filter(is_free, random.sample(range(10000, 30000), 20)))'
}

# shellcheck disable=SC2046 # numbers
set -- $(free_ports)
redis_port=$1 http_port=$2
redis-server --bind 127.0.0.1 --port "$redis_port" --dir "$folder" --save '' \
	>"$folder/redis.log" 2>&1 &
processes="$!"
wait_for "$folder/redis.log" redis-cli -p "$redis_port" ping
export TWR_URL="redis://127.0.0.1:$redis_port" PYTHONUNBUFFERED=1

awk '
	/these commands run a callback/ { found = 1 }
	found && /^```/ { if (inside) exit; inside = 1; next }
	inside' README.md |
	sed -e "s|build/twr|$BUILD/twr|" -e "s/\<8000\>/$http_port/g" >"$folder/commands"
test "$(wc -l <"$folder/commands")" = 3
# The shell writes the ids of its background processes to the file.
{
	cat "$folder/commands"
	# shellcheck disable=SC2016 # for the other shell
	echo 'jobs -p >"$1"'
} >"$folder/script"
sh "$folder/script" "$folder/jobs" >"$folder/output" 2>&1
processes="$processes $(tr '\n' ' ' <"$folder/jobs")"

for line in '^done  *order:7  attempt [0-9]*/' 'GET /'; do
	wait_for "$folder/output" grep -e "$line" "$folder/output"
done
