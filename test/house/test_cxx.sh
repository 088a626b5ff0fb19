#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that the C++ interface compiles without a warning in C++20 and 23 with the installed
# compilers, and runs programs that use it.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

folder=$(mktemp -d) || exit 1
at_end "rm -rf '$folder'"
flags="-O1 -g -Wall -Wextra -Wpedantic -Wconversion -Werror $SANITIZE_FLAGS -Iinclude -pthread"
for compiler in "$CXX" $(command -v g++ clang++); do
	for standard in c++20 c++2b; do
		for source in test/cxx/*.cpp; do
			# shellcheck disable=SC2086 # several flags
			"$compiler" -std=$standard $flags "$source" "$BUILD/libtimingwheel.a" \
				-o "$folder/program" || exit 1
			"$folder/program" || exit 1
		done
	done
done
