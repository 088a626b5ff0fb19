#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Both libraries define tw_* and no other global name, and the shared one has every function that
# the headers declare.

cd "$(dirname "$0")/.." || exit 1

if test -n "$SANITIZE"; then
	echo "the sanitizers add names of their own"
	exit 77
fi

status=0
exported=$(nm -D --defined-only "$BUILD/libtimingwheel.so" | awk '{ print $3 }') || exit 1
linkable=$(nm -g --defined-only "$BUILD/libtimingwheel.a" | awk 'NF == 3 { print $3 }') || exit 1

for name in $exported $linkable; do
	case $name in
	tw_*) ;;
	*)
		echo "$name is global"
		status=1
		;;
	esac
done

# shellcheck disable=SC2013,SC2086 # several headers, one name a line
for name in $(sed -n 's/^TW_API .*\(tw_[a-z0-9_]*\)(.*/\1/p' $PUBLIC_HEADERS); do
	if ! echo "$exported" | grep -qx "$name"; then
		echo "$name is declared and not exported"
		status=1
	fi
done
exit $status
