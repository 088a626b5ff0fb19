#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This reports which code of src/ the tests have reached: report.sh FOLDER all|some
# In the build's folder, `summary` has the shares of lines and branches, in all and by file, and
# `uncovered` each line, and each line's branches, not taken by any test. Of a line the tests or the
# simulation count, whichever has taken more branches. All tests together take at least 97 % of the
# branches.

cd "$(dirname "$0")/../../.." || exit 1
folder=$1 of=$2

# counts XML FOLDER [OPTION...]: counts what the programs in this folder have run.
counts()
{
	xml=$folder/$1 of_folder=$2
	shift 2
	gcovr --gcov-executable "$PWD/test/proof/coverage/gcov.sh" --root . --filter 'src/' \
		--exclude-throw-branches --exclude-unreachable-branches "$@" \
		--exclude-branches-by-pattern '.*\bassert\(.*' \
		--exclude-lines-by-pattern '\s*assert\(.*' \
		--xml-pretty --output "$xml" "$of_folder"
}

counts coverage.xml "$folder" --exclude-directories '.*model/sim' || exit 1
counts simulated.xml "$folder/test/model/sim" || exit 1

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
	if (!simulates)
		end_file()
	file = attribute("filename")
}

/<line / {
	number = attribute("number")
	hits = attribute("hits")
	split("0/0", counts, "/")
	if (match($0, /\([0-9]+\/[0-9]+\)/))
		split(substr($0, RSTART + 1, RLENGTH - 2), counts, "/")
}

/<line / && simulates {
	if (hits > 0)
		is_simulated[file, number] = 1
	sim_hits[file, number] = counts[1]
	sim_branches[file, number] = counts[2]
}

/<line / && !simulates {
	taken = sim_hits[file, number]
	lines++
	if (hits > 0 || is_simulated[file, number])
		line_hits++
	else
		note_uncovered("line")
	if (taken > 0 && taken == sim_branches[file, number])
		counts[1] = counts[2]
	else if (taken > counts[1] && sim_branches[file, number] == counts[2])
		counts[1] = taken
	branch_hits += counts[1]
	branches += counts[2]
	if (hits > 0 && counts[1] < counts[2])
		note_uncovered(counts[1] " of " counts[2] " branches")
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
	if (of == "all" && all_branch_hits < 0.97 * all_branches) {
		print "less than 97 % of the branches are taken"
		bad = 1
	}
	print bad ? "0 passed, 1 failed" : "1 passed, 0 failed"
	exit bad
}' simulates=1 "$folder/simulated.xml" simulates=0 "$folder/coverage.xml"
