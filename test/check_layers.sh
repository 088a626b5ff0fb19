#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Includes in src/ go downward only. $LAYERS, from the Makefile, names the modules, lowest first.

cd "$(dirname "$0")/.." || exit 1

# shellcheck disable=SC2016 # the program is awk's
find src -name '*.[ch]' | sort | xargs -r awk -v layers="${LAYERS:?run by make layers}" '
BEGIN {
	count = split(layers, names, " ")
	for (i = 1; i <= count; i++)
		level[names[i]] = i
	# The wheel is pure: tests pass it ticks.
	count = split("clock key_hash timer_index event_count pthread", names, " ")
	for (i = 1; i <= count; i++)
		unknown_to_wheel[names[i]] = 1
}

# wheel_levels.c: wheel_levels if that is a module, else wheel; "" if neither is.
function module(file)
{
	sub(/.*\//, "", file)
	sub(/\.[ch]$/, "", file)
	while (!(file in level))
		if (!sub(/_[^_]*$/, "", file))
			return ""
	return file
}

function complain(text)
{
	printf "%s:%d: %s\n", FILENAME, FNR, text
	bad = 1
}

function exists(file, line, result)
{
	result = (getline line < file)
	close(file)
	return result >= 0
}

FNR == 1 {
	folder = FILENAME
	sub(/[^\/]*$/, "", folder)
	mine = module(FILENAME)
	if (folder == "src/" && mine == "")
		complain("is in none of LAYERS in the Makefile")
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
	header = $0
	gsub(/^[^"<]*["<]|[">].*/, "", header)
	ours = /^[^<]*"/ || header ~ /^timingwheel\//
	theirs = module(header)

	if (folder ~ /^src\/base\/.*/ && ours && header !~ /^base\//)
		complain(header " is not of base/")
	name = header
	gsub(/.*\/|\.h$/, "", name)
	if (mine == "wheel" && (name in unknown_to_wheel || theirs in unknown_to_wheel))
		complain("the wheel must not know " header)
	if (header ~ /^base\//)
		next
	if (folder != "src/") {
		if (ours && header !~ /^timingwheel\// && (header ~ /\// || !exists(folder header)))
			complain(header " is neither public, nor of base/, nor of " folder)
		next
	}
	if (!ours || header == "timingwheel/timingwheel.h")
		next
	if (header ~ /\// || theirs == "")
		complain(header " is in none of LAYERS in the Makefile")
	else if (level[theirs] > level[mine])
		complain(header " is above " mine)
}

END { exit bad }'
