#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This tortures workers and Redis for some seconds: killed, frozen and cut off, they keep the
# promises of redis.h with one server, a cluster, Sentinels, durability, a stepped clock, and power
# cuts. Without durability, power cuts lose something. The seed is printed; SEED=n repeats the
# schedule. `make torture-redis` takes longer.

cd "$(dirname "$0")/../.." || exit 1

output=$BUILD/test/redis/test_torture.output
for mode in single cluster sentinel durable clock power; do
	"$BUILD/test/redis/torture/torture" run "$mode" "${TORTURE_SECONDS:-2}" \
		"${SEED:-$(date +%s)}" >"$output" 2>&1
	status=$?
	cat "$output"
	test $status = 0 || exit 1
	# Nobody needs the history of a torture that passed.
	rm -f "$(sed -n 's/.*the history: //p' "$output")"
done

# A short torture may cut the power at a moment when all was on the disk.
for try in 1 2 3 4 5; do
	"$BUILD/test/redis/torture/torture" run careless "${TORTURE_SECONDS:-2}" \
		"$(($(date +%s) + try))" >"$output" 2>&1
	rm -f "$(sed -n 's/.*the history: //p' "$output")"
	! grep -q '^FAULT lost' "$output" || exit 0
done
cat "$output"
exit 1
