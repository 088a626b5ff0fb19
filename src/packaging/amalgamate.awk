# SPDX-License-Identifier: MIT
#
# Makes one source file of many, in $PWD:
#
#     awk -f amalgamate.awk -v version=1.0.0 FILE.c... >timingwheel.c
#     awk -f amalgamate.awk -v version=1.0.0 HEADER.h... >timingwheel.h
#
# Each of our headers stands where the first file includes it. The system's headers, and uthash.h,
# stay included. Inner functions become static, so that the object has tw_* as its only global
# names.

BEGIN {
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

# A thread's variable is defined where its header declares it: C23 has no second definition.
function made_static(line)
{
	if (line ~ /^_Thread_local [^=]*$/)
		return ""
	if (is_inner_function(line))
		return "static __attribute__((unused)) " line
	if (line ~ /^[a-z]+ [a-z_]+ = /)
		return "static " line
	if (line !~ /^extern "|weak/ && sub(/^extern /, "static ", line))
		sub(/ __attribute__\(\(visibility\("hidden"\)\)\)/, "", line)
	sub(/^static inline /, "static inline __attribute__((unused)) ", line)
	return line
}

function add(file, line, name)
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
		print made_static(line)
	}
	close(file)
}
