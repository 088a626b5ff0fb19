#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests a soak of half a minute, with small storms: its checks pass.

cd "$(dirname "$0")/../../.." || exit 1
exec "${BUILD:?}/test/long/soak/soak" --seconds=15 --storm=30000 --seed="${SEED:-$(date +%s)}"
