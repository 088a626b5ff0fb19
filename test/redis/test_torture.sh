#!/bin/sh
# SPDX-License-Identifier: MIT
#
# About a minute of torture: killed, frozen and cut off, workers and Redis (one server, a cluster, a
# master with Sentinels, such a one with durability, and a server whose clock is stepped) keep the
# promises of redis.h. The seed is printed; SEED=n draws the same harm again. `make torture-redis`
# takes longer.

cd "$(dirname "$0")/../.." || exit 1

said=$BUILD/test/redis/test_torture.said
for mode in single cluster sentinel durable clock; do
	"$BUILD/test/redis/torture/torture" run "$mode" "${TORTURE_SECONDS:-10}" \
		"${SEED:-$(date +%s)}" >"$said" 2>&1
	status=$?
	cat "$said"
	test $status = 0 || exit 1
	# The history of a torture that went well has nothing to tell.
	rm -f "$(sed -n 's/.*the history: //p' "$said")"
done
