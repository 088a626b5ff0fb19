#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `make ports` writes files that build the archive of `make dist`, and a program is built and run
# with each: meson's wrap, vcpkg's port, conan's recipe, with the shared and the static library.
# vcpkg's functions and conan's modules are replaced by ours, which do the same with make and cmake.
# What is not installed is left out and named. Nothing is fetched.

cd "$(dirname "$0")/../../.." || exit 1
. test/support/script.sh
set -e

test -z "$SANITIZE" || skip "packages have no sanitizer"

here=$(pwd)/test/long/packaging
users=$(pwd)/test/long/install
work=$(mktemp -d)
at_end "rm -rf '$work'"
unset MAKEFLAGS MFLAGS MAKELEVEL
# shellcheck disable=SC2016 # make's
"${MAKE:-make}" BUILD="$work" HOMEPAGE='https://example.org/?a&b' \
	DIST_URL="file://$work/"'$(notdir $(DIST))' ports
grep -qF '"homepage": "https://example.org/?a&b"' "$work/ports/vcpkg/vcpkg.json"
version=$(sed -n 's/^.*"version": "\(.*\)",/\1/p' "$work/ports/vcpkg/vcpkg.json")
if grep -r '@[A-Z0-9]*@' "$work/ports"; then
	echo "not filled"
	exit 1
fi

# try_meson LIBRARY: "shared" or "static"
try_meson()
{
	rm -rf "$work/meson"
	mkdir "$work/meson"
	cp -r "$work/ports/meson/subprojects" "$users"/user.c "$users"/user.cpp "$work/meson"
	cat >"$work/meson/meson.build" <<-'MESON'
	project('user', 'c', 'cpp', default_options: ['werror=true', 'cpp_std=c++20'])
	timingwheel = dependency('timingwheel')
	test('c', executable('c', 'user.c', dependencies: timingwheel))
	test('cpp', executable('cpp', 'user.cpp', dependencies: timingwheel,
	  cpp_args: ['-include', 'timingwheel/timingwheel.hpp']))
	MESON
	meson setup -Ddefault_library="$1" --prefix="$work/meson/installed" "$work/meson/build" \
		"$work/meson"
	meson test -C "$work/meson/build"
	meson install -C "$work/meson/build"
	find "$work/meson/installed" -name "libtimingwheel.*" | grep .
	find "$work/meson/installed" -name timingwheel.hpp | grep .
	PKG_CONFIG_PATH=$(dirname "$(find "$work/meson/installed" -name timingwheel.pc)") \
		pkg-config --exists "timingwheel = $version"
	# The compiler has weak names of its own (V).
	others=$(find "$work/meson/installed" -name '*.a' -exec nm -g --defined-only {} + |
		awk 'NF == 3 && $2 != "V" && $3 !~ /^(tw_|_\.)/')
	echo "other names: $others"
	test -z "$others"
}

# try_vcpkg LIBRARY: "dynamic" or "static"
try_vcpkg()
{
	rm -rf "$work/vcpkg"
	mkdir -p "$work/vcpkg/user"
	python3 -m json.tool "$work/ports/vcpkg/vcpkg.json" >"$work/vcpkg/vcpkg.json"
	cmake -DVCPKG_LIBRARY_LINKAGE="$1" -DWORK="$work/vcpkg" \
		-DPORT_FOLDER="$work/ports/vcpkg" -P "$here/vcpkg_functions.cmake"
	{
		echo "cmake_minimum_required(VERSION 3.16)"
		echo "project(main C)"
		echo "add_executable(main $users/user.c)"
		# What it says to users.
		sed -n 's/^    //p' "$work/vcpkg/packages/share/timingwheel/usage"
	} >"$work/vcpkg/user/CMakeLists.txt"
	cmake -S "$work/vcpkg/user" -B "$work/vcpkg/user/build" \
		-DCMAKE_PREFIX_PATH="$work/vcpkg/packages"
	cmake --build "$work/vcpkg/user/build"
	timeout 60 "$work/vcpkg/user/build/main"
	cmp LICENSE "$work/vcpkg/packages/share/timingwheel/copyright"
	PKG_CONFIG_PATH=$work/vcpkg/packages/lib/pkgconfig pkg-config --exists timingwheel
	test "$1" = "$(test -e "$work/vcpkg/packages/lib/libtimingwheel.a" && echo static ||
		echo dynamic)"
}

# try_conan LIBRARY: "True" or "False", is it shared?
try_conan()
{
	rm -rf "$work/conan"
	mkdir "$work/conan"
	python3 "$here/conan_modules.py" "$work/ports/conan" "$work/conan" "$1"
}

# attempt "WHAT" FUNCTION ARGUMENT PROGRAM...: where the programs are.
count=0
attempt()
{
	what=$1 function=$2 argument=$3
	shift 3
	for program; do
		if ! command -v "$program" >/dev/null; then
			echo "left out: $what, for $program is not there"
			return
		fi
	done
	echo "== $what, $argument"
	"$function" "$argument"
	count=$((count + 1))
}

attempt "meson's wrap" try_meson shared meson ninja
attempt "meson's wrap" try_meson static meson ninja
attempt "vcpkg's port" try_vcpkg dynamic cmake python3
attempt "vcpkg's port" try_vcpkg static cmake python3
attempt "conan's recipe" try_conan True cmake python3
attempt "conan's recipe" try_conan False cmake python3
test $count != 0 || skip "neither meson nor cmake is there"
