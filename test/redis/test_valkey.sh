#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Valkey instead of Redis, where it is installed: tests of tasks, calls, a worker and durability.

cd "$(dirname "$0")/../.." || exit 1
set -e

if ! command -v valkey-server >/dev/null; then
	echo "no valkey-server (package valkey-server)"
	exit 77
fi

REDIS_SERVER=valkey-server
export REDIS_SERVER
for test in test_tasks test_calls test_worker test_durability; do
	"$BUILD/test/redis/$test"
done
