#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What does the part on Redis say about this machine? Runs its benches (about two minutes), each
# with a redis-server of its own, and leaves the figures as CSV in build/bench/redis/.
set -eu

cd "$(dirname "$0")/../.."
programs=${BUILD:-build}/bench/redis

for name in rates lateness; do
	printf '\n== %s ==\n' "$name"
	"$programs/$name" --csv="$programs/$name.csv"
done
printf '\nThe figures are in %s\n' "$programs"
