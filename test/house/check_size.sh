#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This prints the lines of each room of src/rooms beside the most that it may have, and fails where
# a room has more. It counts all lines of the tracked text files, but not the inputs of fuzzing.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

git ls-files --error-unmatch src/rooms >/dev/null 2>&1 ||
	skip "this is not a clone by git"
lines=$(mktemp)
at_end "rm -f '$lines'"

# A file that is removed, but not yet from git, has none. xargs may call wc more than once.
git ls-files -z | grep -zvE '/(corpus|corpora|inputs)/|/fuzz/[^/]*/[^/]*$|\.(png|ico)$' |
	xargs -0 grep -IlsZ '' | xargs -0 wc -l | grep -v ' total$' >"$lines"

# check ROOMS: compares the counts with these limits.
check()
{
	awk '
	FNR == NR {
		if (/^#/ || NF == 0)
			next
		most[++rooms] = $1
		sub(/^[0-9]+ /, "")
		paths[rooms] = $0
		for (i = 1; i <= NF; i++)
			room_of[$i] = rooms
		next
	}

	# A file is in the room that names it, or a folder above it.
	{
		path = $2
		while (!(path in room_of) && sub(/\/[^\/]*$/, "", path));
		if (path in room_of)
			has[room_of[path]] += $1
	}

	END {
		for (i = 1; i <= rooms; i++) {
			above = has[i] - most[i]
			mark = ""
			if (above > 0) {
				mark = "  <-- " above " too many"
				bad = 1
			}
			printf "%7d of %7d  %s%s\n", has[i], most[i], paths[i], mark
		}
		exit bad || !rooms
	}' "$1" "$lines"
}

# fits ROOM: says whether the room is within this limit.
fits()
{
	echo "$1" | check - >/dev/null
}

all=$(wc -l <src/rooms)
if fits '9 src/base src/rooms' || fits '9 test/house' || ! fits '9 test/run.sh/none' ||
	! fits "$all src/rooms" || fits "$((all - 1)) src/rooms"; then
	echo "check_size.sh itself can't compare"
	exit 1
fi

check src/rooms
