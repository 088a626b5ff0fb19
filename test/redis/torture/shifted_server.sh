#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A redis-server whose clock of day is shifted: see preload/shifted_clock.c.

LD_PRELOAD=$BUILD/test/redis/torture/shifted_clock.so exec "${TORTURE_SERVER:-redis-server}" "$@"
