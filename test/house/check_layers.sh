#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that src/ goes downward only, file by file, in the order of src/layers: a file
# includes and calls only its own module and those before it. The part on Redis does not ask this
# machine for the time of day either. The script tests itself by an include and a call that go
# upward.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

# check ROOT: prints the faults of ROOT/src.
check()
{
	# shellcheck disable=SC2016,SC2046 # the program is awk's; many files
	(
		cd "$1" || exit 1
		awk '
		# A line of src/layers is a folder with those below it, or more of its modules.
		function read_layers(line, words, count, folder, i)
		{
			while ((getline line < "src/layers") > 0) {
				sub(/#.*/, "", line)
				count = split(line, words, " ")
				if (line ~ /^[a-z]/) {
					folder = words[1]
					is_folder[folder] = 1
					for (i = 2; i <= count; i++)
						is_below[folder, words[i]] = 1
				} else {
					for (i = 1; i <= count; i++)
						level[folder "/" words[i]] = ++levels
				}
			}
		}

		function complain(text)
		{
			print text
			bad = 1
		}

		function folder_of(file)
		{
			sub(/\/[^\/]*$/, "", file)
			return file
		}

		# wheel/wheel.h: wheel/wheel
		function module_of(file)
		{
			sub(/\.[cho]$/, "", file)
			return file
		}

		# Returns whether one module may use the other.
		function may_use(mine, theirs)
		{
			if (folder_of(mine) == folder_of(theirs))
				return level[theirs] <= level[mine]
			return (folder_of(mine), folder_of(theirs)) in is_below
		}

		BEGIN { read_layers() }

		FNR == 1 {
			file = FILENAME
			sub(/^src\//, "", file)
			mine = module_of(file)
			seen[mine] = 1
			if (!(folder_of(file) in is_folder))
				complain(FILENAME ": its folder is not in src/layers")
			else if (!(mine in level))
				complain(FILENAME ": is not in src/layers")
		}

		/^[ \t]*#[ \t]*include[ \t]*"/ {
			header = $0
			gsub(/^[^"]*"|".*/, "", header)
			if (header !~ /\//)
				header = folder_of(mine) "/" header
			if (!may_use(mine, module_of(header)))
				complain(FILENAME ":" FNR ": " header " is not below it")
		}

		# No call is in column 1. A static function hides another of that name.
		/^[a-z_].*[ *][a-z][a-z_0-9]*\(/ {
			name = $0
			sub(/\(.*/, "", name)
			sub(/.*[ *]/, "", name)
			if (/^static/)
				is_own[mine, name] = 1
			else if (FILENAME ~ /\.c$/ && !/;$/)
				definer[name] = mine
		}

		/^\t/ && !/^\t* ?\*/ {
			text = $0
			sub(/\/\*.*/, "", text)
			while (match(text, /[a-z][a-z_0-9]*\(/)) {
				uses[mine, substr(text, RSTART, RLENGTH - 1)] = FILENAME ":" FNR
				text = substr(text, RSTART + RLENGTH)
			}
		}

		# The wheel is pure: tests pass it ticks.
		/^[ \t]*#[ \t]*include/ && mine ~ /^wheel\// &&
				/[<"\/](clock|event_count|thread|pthread)\.h[>"]/ {
			complain(FILENAME ":" FNR ": the wheel must not know " $NF)
		}

		END {
			for (module in level)
				if (!(module in seen))
					complain("src/layers: " module " has no file")
			for (use in uses) {
				split(use, words, SUBSEP)
				mine = words[1]
				theirs = definer[words[2]]
				# The core calls those of a library above where there is one.
				if (theirs == "" || use in is_own || may_use(mine, theirs) ||
				    words[2] ~ /^tw_further_/ ||
				    (words[2] ~ /^tw_/ && (folder_of(mine), "public") in is_below))
					continue
				complain(uses[use] ": calls " words[2] ", and " theirs \
					" is not below it")
			}
			exit bad
		}' $(find src -name '*.[ch]' | sort)
	)
}

root=$(mktemp -d)
at_end "rm -rf '$root'"
mkdir "$root/real" "$root/include" "$root/call"
cp -r src "$root/real"
check "$root/real" || exit 1

# finds NAME TEXT: checks that the check of that folder fails with this text.
finds()
{
	if check "$root/$1" >"$root/said" || ! grep -q "$2" "$root/said"; then
		echo "check_layers.sh does not find an upward $1:"
		cat "$root/said"
		exit 1
	fi
}

cp -r src "$root/include"
echo '#include "cache.h"' >>"$root/include/src/cache/pool.h"
finds include 'cache/pool.h:[0-9]*: cache/cache.h is not below it'

cp -r src "$root/call"
printf 'void pool_above(void)\n{\n\tcache_compact();\n}\n' >>"$root/call/src/cache/pool.c"
finds call 'cache/pool.c:[0-9]*: calls cache_compact, and cache/compact is not below it'

# The clocks of clients and workers do not matter: only the receiver of a callback may say a date to
# wait until.
if grep -rnE 'CLOCK_REALTIME|CLOCK_TAI|gettimeofday|timespec_get|\btime\(' src/redis src/base \
	--include='*.[ch]' | grep -v 'worker/callbacks.c:.*(now == -1 ? time(NULL) : now)'; then
	echo "this asks for the machine's time of day"
	exit 1
fi
