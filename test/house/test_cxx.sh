#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This checks that the C++ interface compiles without a warning in C++20 and 23 with the installed
# compilers, also without exceptions, and runs programs that use it, and a plugin.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

folder=$(mktemp -d) || exit 1
at_end "rm -rf '$folder'"

flags="-O1 -g -Wall -Wextra -Wpedantic -Wconversion -Werror $SANITIZE_FLAGS -Iinclude -pthread"
for compiler in $(command -v "$CXX" g++ clang++ | sort -u); do
	for standard in c++20 c++2b; do
		for source in test/cxx/*.cpp; do
			# shellcheck disable=SC2086 # several flags
			"$compiler" -std=$standard $flags "$source" "$BUILD/libtimingwheel.a" \
				-o "$folder/program" || exit 1
			"$folder/program" || exit 1
		done
	done
done

# With the library in the program, and as a shared one.
for library in "$BUILD/libtimingwheel.a -rdynamic" "-L$BUILD -ltimingwheel"; do
	# shellcheck disable=SC2086 # several flags
	"$CXX" -std=c++20 $flags -fno-exceptions -fno-rtti -fsyntax-only -x c++ \
		include/timingwheel/timingwheel.hpp -Wno-pragma-once-outside-header &&
		"$CXX" -std=c++20 $flags -fPIC -shared -fvisibility=hidden \
			test/cxx/plugin/plugin.cpp -o "$folder/plugin.so" &&
		"$CXX" -std=c++20 $flags test/cxx/plugin/host.cpp $library -ldl -o "$folder/host" &&
		LD_LIBRARY_PATH=$BUILD "$folder/host" "$folder/plugin.so" || exit 1
done
