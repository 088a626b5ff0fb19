#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Prints the commit of a measurement, and "+" if files differ from it. The output of measurements,
# bench/results and rows of README.md, may differ. Without git it prints "unknown".

cd "$(dirname "$0")/.." || exit 1
commit=$(git rev-parse --short HEAD 2>/dev/null) || {
	echo unknown
	exit
}
test -z "$(git status --porcelain -- . ':!bench/results' ':!README.md')" || commit=$commit+
echo "$commit"
