#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Includes in src/ go downward only, file by file, in the order of src/layers.

cd "$(dirname "$0")/.." || exit 1

# check: looks at src/ of the current folder.
check()
{
	# shellcheck disable=SC2016 # the program is awk's
	find src -name '*.[ch]' | sort | xargs -r awk '
	# A line of src/layers: a folder with those below it, or more of its modules.
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
		close("src/layers")
	}

	function folder_of(file)
	{
		sub(/\/[^\/]*$/, "", file)
		return file
	}

	# wheel/wheel_levels.c: wheel/wheel_levels if that is a module, else wheel/wheel; "" if
	# neither is.
	function module_of(file)
	{
		sub(/\.[ch]$/, "", file)
		while (!(file in level))
			if (!sub(/_[^_\/]*$/, "", file))
				return ""
		return file
	}

	function complain(text)
	{
		printf "%s:%d: %s\n", FILENAME, FNR, text
		bad = 1
	}

	BEGIN { read_layers() }

	FNR == 1 {
		file = FILENAME
		sub(/^src\//, "", file)
		mine = module_of(file)
		folder = folder_of(file)
		seen[mine] = 1
		if (!(folder in is_folder))
			complain("its folder is not in src/layers")
		else if (mine == "" && folder !~ /^(cache|redis)/)
			complain("is not in src/layers")
	}

	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		header = $0
		gsub(/^[^"<]*["<]|[">].*/, "", header)
		if (folder == "wheel" && header ~ /^(base\/(clock|event_count|thread)|pthread)\.h$/)
			complain("the wheel must not know " header)
		if ($0 ~ /</ || header ~ /^timingwheel\//)
			next
		if (header !~ /\//)
			header = folder "/" header
		theirs = module_of(header)
		if (folder_of(header) != folder) {
			if (!((folder, folder_of(header)) in is_below))
				complain(header " is not in a folder below " folder "/")
		} else if (level[theirs] > level[mine])
			complain(header " is above " mine)
	}

	END {
		for (module in level)
			if (!(module in seen)) {
				print "src/layers: " module " has no file"
				bad = 1
			}
		exit bad
	}'
}

check
