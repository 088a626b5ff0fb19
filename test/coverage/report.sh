#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tells what of src/ the tests have reached: report.sh FOLDER all|some
# In the build's folder, `summary` has the parts of lines and branches, in all and by file, and
# `uncovered` each line, and each line's branches, that no test has taken. After a run of all tests
# each of these stands in explained.txt, by its text and with a reason:
#
#     src/base/file.c: "text of the line" reason
#
# and the other way round: an explanation of what is covered or gone is an error. At least 95 % of
# the branches are taken. Where the reason begins with "sometimes", which depends on the threads'
# order, it need only be there. Those parts of src/, of cache, redis and core, that have a place
# without either are in `again`.

cd "$(dirname "$0")/../.." || exit 1
folder=$1 of=$2

gcovr --root . --filter 'src/' --exclude-throw-branches --exclude-unreachable-branches \
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

function complain(text)
{
	print text
	bad = 1
}

function text_of(file, number, count, line)
{
	if (!(file in length_of)) {
		while ((getline line <file) > 0)
			texts[file, ++count] = trim(line)
		close(file)
		length_of[file] = count
		for (; count; count--)
			stands[file, texts[file, count]] = 1
	}
	return texts[file, number]
}

function note_uncovered(what, text)
{
	text = text_of(file, number)
	print file ":" number ": " what ": " text >uncovered
	if ((file, text) in reasons) {
		used[file, text] = 1
		explained++
		return
	}
	unexplained++
	again[file ~ /^src\/(cache|redis)\// ? substr(file, 5, 5) : "core"] = 1
	if (of == "all")
		complain(file ":" number ": " what " without a test or an explanation: " text)
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
	printf "" >(folder "/again")
}

FILENAME ~ /explained.txt$/ {
	if (/^src\/[^:]*: ".*" ./) {
		name = $1
		sub(/:$/, "", name)
		match($0, /".*" /)
		text = substr($0, RSTART + 1, RLENGTH - 3)
		reasons[name, text] = substr($0, RSTART + RLENGTH)
		place[name, text] = FNR
	} else if (/^src\//) {
		complain(FILENAME ":" FNR ": not an explanation: " $0)
	}
	next
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
	printf "lines    %s\nbranches %s\n", part(all_line_hits, all_lines),
		part(all_branch_hits, all_branches) >summary
	printf "uncovered, explained: %d, not explained: %d\n\n", explained, unexplained >summary
	for (i = 1; i <= file_count; i++)
		print files[i] >summary
	for (part_name in again)
		print part_name >(folder "/again")
	close(summary)
	for (i = 1; i <= 3 && (getline line <summary) > 0; i++)
		print line
	if (of == "all" && all_branch_hits < 0.95 * all_branches)
		complain("less than 95 % of the branches are taken")
	if (of == "all")
		for (key in reasons) {
			split(key, names, SUBSEP)
			text_of(names[1], 0)
			if (!(reasons[key] ~ /^sometimes/ ? key in stands : key in used))
				complain("explained.txt:" place[key] ": explains nothing: " \
					names[1] ": " names[2])
		}
	print bad ? "0 passed, 1 failed" : "1 passed, 0 failed"
	exit bad
}' test/coverage/explained.txt "$folder/coverage.xml"
