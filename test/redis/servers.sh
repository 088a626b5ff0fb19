#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs the tests of the part on Redis on each server of $REDIS_SERVERS, a list of programs; by
# default redis-server and valkey-server, if they are in PATH. Prints each server's version with its
# result. The last line is the sum: "N passed, N failed, N skipped".

cd "$(dirname "$0")/../.." || exit 1
. test/support/steps.sh

for server in ${REDIS_SERVERS:-$(command -v redis-server valkey-server)}; do
	run "REDIS_SERVER=$server make test-redis"
	echo "== $("$server" --version | cut -d " " -f 1-3): $(grep ' passed, ' "$log" | tail -n 1)"
done

end_steps
