#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that src/ goes downward only, file by file, in the order of src/layers: a file
# includes and calls only its own module and those before it. The script tests itself by an include
# and a call that go upward.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
: "${BUILD:?run by make layers}"

# check ROOT: prints the faults of ROOT/src, and of the objects of its files in ROOT/build.
check()
{
	# shellcheck disable=SC2016,SC2046 # the program is awk's; many files
	(
		cd "$1" || exit 1
		find src -name '*.c' | sed 's/c$/o/; s/^/build\//' | xargs ls 2>/dev/null |
			xargs -r nm -A >symbols
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

		# build/src/wheel/timer.o:0000000000000000 T timer_new
		FILENAME == "symbols" {
			file = $1
			sub(/:[0-9a-f]*$/, "", file)
			sub(/^build\/src\//, "", file)
			if ($(NF - 1) == "U")
				uses[module_of(file), $NF] = 1
			else if ($(NF - 1) ~ /[A-Z]/)
				definer[$NF] = module_of(file)
			next
		}

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
				if (theirs == "" || may_use(mine, theirs) ||
				    (words[2] ~ /^tw_/ && (folder_of(mine), "public") in is_below))
					continue
				complain("src/" mine ".c: calls " words[2] ", and " theirs \
					" is not below it")
			}
			exit bad
		}' symbols $(find src -name '*.[ch]' | sort)
	)
}

root=$(mktemp -d)
at_end "rm -rf '$root'"
mkdir "$root/real" "$root/include" "$root/call"
cp -r src "$root/real"
mkdir -p "$root/real/build"
cp -r "$BUILD/src" "$root/real/build"
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
echo '#include "cache.h"' >>"$root/include/src/cache/arena.h"
finds include 'cache/arena.h:[0-9]*: cache/cache.h is not below it'

mkdir -p "$root/call/src/low" "$root/call/build/src/low"
printf 'low\n\tbelow above\n' >"$root/call/src/layers"
echo 'void above(void); void below(void); void below(void) { above(); }' \
	>"$root/call/src/low/below.c"
echo 'void above(void); void above(void) {}' >"$root/call/src/low/above.c"
for name in below above; do
	$CC -c "$root/call/src/low/$name.c" -o "$root/call/build/src/low/$name.o" || exit 1
done
finds call 'src/low/below.c: calls above, and low/above is not below it'
