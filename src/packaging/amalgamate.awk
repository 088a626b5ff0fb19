# SPDX-License-Identifier: MIT
#
# Makes one source file of many, in $PWD:
#
#     awk -f amalgamate.awk -v version=1.0.0 FILE.c... >timingwheel.c
#     awk -f amalgamate.awk -v version=1.0.0 HEADER.h... >timingwheel.h
#
# Each of our headers stands where the first file includes it. The system's headers, and uthash.h,
# stay included. Inner functions become static, so that the object has tw_* as its only global
# names. Names that several files have for themselves begin with the file's name.

BEGIN {
	own["src/base/histogram.c"] = "bucket_first"
	own["src/cache/cache_open.c"] = "options_are_valid"
	own["src/cache/metrics.c"] = "COUNTERS GAUGES counters gauges times"
	own["src/cache/retire.c"] = "CROWD"
	own["src/cache/take.c"] = "sleeper"
	own["src/cron/cron_fields.c"] = "NUMBER_MOST reader is_digit is_letter next_char skip " \
		"read_number"
	own["src/cron/zone_rule.c"] = "reader read_time"
	own["src/runtime/alarm.c"] = "RUNNING LISTED ALONE"
	own["src/runtime/earliest.c"] = "owner_look_up"
	own["src/runtime/tw_handles.c"] = "deadline_after"
	print "/* SPDX-License-Identifier: MIT */"
	print "/*\n * timingwheel " version ", made of its sources by `make amalgamation`.\n *"
	while ((getline line <"LICENSE") > 0)
		print line == "" ? " *" : " * " line
	print " */"
	if (ARGV[1] ~ /\.c$/) {
		print "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif"
		print "#include \"timingwheel.h\""
	}
	for (i = 1; i < ARGC; i++)
		add(ARGV[i])
	exit failed
}

function fail(text)
{
	print text >"/dev/stderr"
	failed = 1
}

function is_file(path, line, found)
{
	found = (getline line <path) >= 0
	close(path)
	return found
}

# The file that `includer` means by a name: beside it, or in src/.
function path_of(name, includer, path)
{
	path = includer
	sub(/[^\/]*$/, "", path)
	if (is_file(path name))
		return path name
	if (!is_file("src/" name))
		fail(includer " includes " name ", which is not there")
	return "src/" name
}

# A line in column 1 that begins a function which is not public.
function is_inner_function(line)
{
	if (line !~ /^[a-z_]/ || line ~ /^(static|typedef|extern|_Static_assert|_Thread_local)/ ||
	    line !~ /^[^=;]*[ *][a-z_0-9]+\(/)
		return 0
	sub(/^(__attribute__\(\([^)]*\)\)|_Noreturn) */, "", line)
	sub(/\(.*/, "", line)
	sub(/.*[ *]/, "", line)
	return line !~ /^tw_/
}

# Names of the file begin, or end, being other names; macros only end.
function rename(file, begins, count, names, i, prefix)
{
	prefix = file
	gsub(/.*\/|\.c$/, "", prefix)
	count = split(own[file], names, " ")
	for (i = 1; i <= count; i++)
		if (!begins)
			print "#undef " names[i]
		else if (names[i] !~ /^(COUNTERS|GAUGES)$/)
			print "#define " names[i] " " prefix "_" names[i]
}

# A thread's variable is defined where its header declares it: C23 has no second definition.
function made_static(line)
{
	if (line ~ /^_Thread_local [^=]*$/)
		return ""
	if (is_inner_function(line))
		return "static __attribute__((unused)) " line
	if (line ~ /^[a-z]+ [a-z_]+ = /)
		return "static " line
	if (line !~ /^extern "/ && sub(/^extern /, "static ", line))
		sub(/ __attribute__\(\(visibility\("hidden"\)\)\)/, "", line)
	sub(/^static inline /, "static inline __attribute__((unused)) ", line)
	return line
}

# Headers come before the file's own names begin: those are no names of theirs.
function add(file, line, name, is_behind)
{
	if (file in is_added)
		return
	is_added[file]
	while ((getline line <file) > 0) {
		if (line ~ /^#include "/) {
			name = line
			gsub(/^#include "|".*/, "", name)
			add(path_of(name, file))
			continue
		}
		if (line ~ /^\/\* SPDX-/)
			continue
		if (line ~ /^#include <timingwheel\//) {
			name = line
			gsub(/^#include <|>.*/, "", name)
			if (file ~ /^include\//)
				add("include/" name)
			continue
		}
		if (!is_behind && line ~ /^([a-z_].*[^*]|#define .*)$/) {
			rename(file, 1)
			is_behind = 1
		}
		print made_static(line)
	}
	close(file)
	rename(file, 0)
}
