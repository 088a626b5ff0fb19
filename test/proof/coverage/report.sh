#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This reports which code of src/ the tests have reached: report.sh FOLDER all|some
# In the build's folder, `summary` has the shares of lines and branches, in all and by file, and
# `uncovered` each line, and each line's branches, not taken by any test. After a run of all tests
# explained.txt gives for each function the number of these and the reason: more are an error, and
# so is an explanation where there are none, unless it begins with "sometimes", which depends on the
# threads' order. At least 95 % of the branches are taken. `again` lists the parts of src/ (cache,
# redis, core) that have more than are explained.

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

function complain(text)
{
	print text
	bad = 1
}

# Reads a source: its lines, and the function of each.
function read_source(file, count, line, name, inside)
{
	while ((getline line <file) > 0) {
		texts[file, ++count] = trim(line)
		gsub(/__attribute__\(\([^)]*\)+/, "", line)
		if (!inside && line ~ /^ ?[A-Za-z_].*[A-Za-z0-9_]\(/) {
			name = line
			sub(/\(.*/, "", name)
			sub(/.*[^A-Za-z0-9_]/, "", name)
		}
		if (line == "{")
			inside = 1
		functions[file, count] = name
		known[file, name] = 1
		if (line == "}")
			inside = 0
	}
	close(file)
	is_read[file] = 1
}

function note_uncovered(what, key)
{
	if (!(file in is_read))
		read_source(file)
	key = file SUBSEP functions[file, number]
	what = file ":" number ": " what ": " texts[file, number]
	print what >uncovered
	missed[key]++
	listed[key] = listed[key] "\n" what
}

# add_reasons FILE LIST: "function 2, function 1"
function add_reasons(file, list, count, i, words)
{
	count = split(list, words, /,? +/)
	for (i = 1; i < count; i += 2) {
		most[file, words[i]] += words[i + 1]
		if (reason !~ /^sometimes/)
			is_certain[file, words[i]] = 1
		place[file, words[i]] = FNR
		to_read[file] = 1
	}
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
	if (/^\tsrc\//) {
		explained_file = $1
		sub(/:$/, "", explained_file)
		add_reasons(explained_file, substr(trim($0), length(explained_file) + 3))
	} else if (/^\t/) {
		add_reasons(explained_file, trim($0))
	} else {
		reason = $0
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
	for (key in missed) {
		split(key, names, SUBSEP)
		explained += missed[key] < most[key] ? missed[key] : most[key]
		if (missed[key] <= most[key])
			continue
		unexplained += missed[key] - most[key]
		again[names[1] ~ /^src\/cache\// ? "cache" :
			names[1] ~ /^src\/(redis|twr)\// ? "redis" : "core"] = 1
		if (of == "all")
			complain(names[1] ": " names[2] ": " missed[key] " are not reached, " \
				most[key] + 0 " explained:" listed[key])
	}
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
	for (file in to_read)
		if (!(file in is_read))
			read_source(file)
	if (of == "all")
		for (key in most) {
			split(key, names, SUBSEP)
			if (!(key in known) || (key in is_certain) && !missed[key])
				complain("explained.txt:" place[key] ": explains nothing: " \
					names[1] ": " names[2])
		}
	print bad ? "0 passed, 1 failed" : "1 passed, 0 failed"
	exit bad
}' test/proof/coverage/explained.txt "$folder/coverage.xml"
