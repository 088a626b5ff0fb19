#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tasks, calls and a worker on Valkey instead of Redis, where it is installed: the same tests.

cd "$(dirname "$0")/../.." || exit 1
set -e

if ! command -v valkey-server >/dev/null; then
	echo "no valkey-server (package valkey-server)"
	exit 77
fi

REDIS_SERVER=valkey-server
export REDIS_SERVER
for test in test_tasks test_calls test_worker; do
	"$BUILD/test/redis/$test"
done
