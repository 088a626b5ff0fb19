#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that the C++ interface compiles without a warning in C++20 and 23 with the installed
# compilers, and runs programs that use it. The one of senders is left out where a compiler finds no
# stdexec (a folder of $CPLUS_INCLUDE_PATH), or is too old for it.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

folder=$(mktemp -d) || exit 1
at_end "rm -rf '$folder'"

# has_senders STANDARD: whether $compiler has them.
has_senders()
{
	echo '#include <stdexec/execution.hpp>' |
		"$compiler" -std="$1" -fsyntax-only -x c++ - 2>/dev/null
}

flags="-O1 -g -Wall -Wextra -Wpedantic -Wconversion -Werror $SANITIZE_FLAGS -Iinclude -pthread"
for compiler in "$CXX" $(command -v g++ clang++); do
	for standard in c++20 c++2b; do
		for source in test/cxx/*.cpp; do
			if test "$source" = test/cxx/sender.cpp && ! has_senders $standard; then
				continue
			fi
			# shellcheck disable=SC2086 # several flags
			"$compiler" -std=$standard $flags "$source" "$BUILD/libtimingwheel.a" \
				-o "$folder/program" || exit 1
			"$folder/program" || exit 1
		done
	done
done
