#!/bin/sh
# SPDX-License-Identifier: MIT
#
# How fast is the library beside its peers? Runs the drivers of this folder by turns, each round in
# another order, and prints the machine, the peers' versions, and tables of medians. bench/run.sh
# calls this. A peer whose package is not installed is left out, with a line that says so.
#
#     bench/peers/run.sh [--quick]        small counts, one round
#
# ROUNDS is the number of rounds, 3 if not given; one takes about four minutes.
set -eu

rounds=${ROUNDS:-3} count=1000000
test "${1-}" != --quick || rounds=1 count=20000
folder=${BUILD:-build}/bench/peers
drivers=
versions=

for driver in timingwheel:uthash-dev libuv:libuv1-dev libevent:libevent-dev libev:libev-dev \
	asio:libasio-dev netty:libnetty-java go:golang-go cache:uthash-dev \
	caffeine:libcaffeine-java ristretto:golang-github-dgraph-io-ristretto-dev \
	glib:libglib2.0-dev uthash:uthash-dev; do
	name=${driver%:*} package=${driver#*:}
	version=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$package" 2>/dev/null) || true
	case $version in
	'installed '*) ;;
	*)
		echo "$name is left out: $package is not installed (make deps-bench)" >&2
		continue
		;;
	esac
	MAKEFLAGS='' MFLAGS='' "${MAKE:-make}" "$folder/$name" >&2 || {
		echo "$name is left out: it could not be built" >&2
		continue
	}
	drivers="$drivers $name"
	case $name in
	timingwheel | cache) ;;
	*) versions="$versions, $package ${version#* }" ;;
	esac
done

: >"$folder/lines"
for round in $(seq "$rounds"); do
	for name in $drivers; do
		echo "round $round of $rounds: $name" >&2
		if "$folder/$name" "$count" >"$folder/one"; then
			cat "$folder/one" >>"$folder/lines"
		else
			echo "$name failed: its figures of this round are left out" >&2
		fi
	done
	drivers="$drivers $(echo "$drivers" | cut -d' ' -f2)"
	drivers=" ${drivers#* * }"
done
test -s "$folder/lines" || exit 1
awk -F, -v versions="${versions#, }" -v rounds="$rounds" -v count="$count" \
	-f bench/peers/tables.awk "$folder/lines"
