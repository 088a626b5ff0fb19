#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This reports which code of src/ the tests have reached: report.sh FOLDER all|some
# In the build's folder, `summary` has the shares of lines and branches, in all and by file, and
# `uncovered` each line, and each line's branches, not taken by any test. All tests together take at
# least 95 % of the branches.

cd "$(dirname "$0")/../../.." || exit 1
folder=$1 of=$2

gcovr --gcov-executable "$PWD/test/proof/coverage/gcov.sh" --root . --filter 'src/' \
	--exclude-throw-branches --exclude-unreachable-branches \
	--exclude-branches-by-pattern '.*\bassert\(.*' --exclude-lines-by-pattern '\s*assert\(.*' \
	--xml-pretty --output "$folder/coverage.xml" "$folder" || exit 1

awk -v folder="$folder" -v of="$of" '
function part(some, all)
{
	return sprintf("%6.2f %% (%d of %d)", all ? 100 * some / all : 100, some, all)
}

function trim(text)
{
	gsub(/^[ \t]+|[ \t]+$/, "", text)
	return text
}

# attribute NAME of the element on this line
function attribute(name)
{
	if (!match($0, " " name "=\"[^\"]*\""))
		return ""
	return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

# Reads the lines of a source.
function read_source(file, count, line)
{
	while ((getline line <file) > 0)
		texts[file, ++count] = trim(line)
	close(file)
	is_read[file] = 1
}

function note_uncovered(what)
{
	if (!(file in is_read))
		read_source(file)
	print file ":" number ": " what ": " texts[file, number] >uncovered
}

function end_file()
{
	if (file != "")
		files[++file_count] = sprintf("%-36s lines %s  branches %s", file,
			part(line_hits, lines), part(branch_hits, branches))
	all_lines += lines
	all_line_hits += line_hits
	all_branches += branches
	all_branch_hits += branch_hits
	lines = line_hits = branches = branch_hits = 0
}

BEGIN {
	uncovered = folder "/uncovered"
	printf "" >uncovered
}

/<class / {
	end_file()
	file = attribute("filename")
}

/<line / {
	number = attribute("number")
	lines++
	if (attribute("hits") > 0)
		line_hits++
	else
		note_uncovered("line")
	if (match($0, /\([0-9]+\/[0-9]+\)/)) {
		split(substr($0, RSTART + 1, RLENGTH - 2), counts, "/")
		branch_hits += counts[1]
		branches += counts[2]
		if (attribute("hits") > 0 && counts[1] < counts[2])
			note_uncovered(counts[1] " of " counts[2] " branches")
	}
}

END {
	end_file()
	summary = folder "/summary"
	printf "lines    %s\nbranches %s\n\n", part(all_line_hits, all_lines),
		part(all_branch_hits, all_branches) >summary
	for (i = 1; i <= file_count; i++)
		print files[i] >summary
	close(summary)
	for (i = 1; i <= 2 && (getline line <summary) > 0; i++)
		print line
	if (of == "all" && all_branch_hits < 0.95 * all_branches) {
		print "less than 95 % of the branches are taken"
		bad = 1
	}
	print bad ? "0 passed, 1 failed" : "1 passed, 0 failed"
	exit bad
}' "$folder/coverage.xml"
