#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Half a minute of torture: workers and Redis, killed, frozen, cut off and full, keep the promises
# of redis.h. Its seed is printed; SEED=n draws the same harm. `make torture-redis` takes longer.

cd "$(dirname "$0")/../.." || exit 1

log=$BUILD/test/redis/test_torture.said
"$BUILD/test/redis/torture/torture" run "${TORTURE_SECONDS:-30}" "${SEED:-$(date +%s)}" >"$log" 2>&1
status=$?
cat "$log"
# The history of a torture that went well has nothing to tell.
test $status != 0 || rm -f "$(sed -n 's/.*the history: //p' "$log")"
exit $status
