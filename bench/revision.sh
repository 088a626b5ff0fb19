#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints the commit that a measurement is of; "+" follows where files differ from that commit. What
# measurements write themselves, bench/results and rows of README.md, may differ. Without git it
# prints "unknown".

cd "$(dirname "$0")/.." || exit 1
commit=$(git rev-parse --short HEAD 2>/dev/null) || {
	echo unknown
	exit
}
test -z "$(git status --porcelain -- . ':!bench/results' ':!README.md')" || commit=$commit+
echo "$commit"
