#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs into an empty folder, builds C and C++ users against it, by pkg-config and by CMake, with
# the shared and with the static libraries, runs them, reads manual pages, uninstalls, and looks for
# leftovers.

cd "$(dirname "$0")/../../.." || exit 1
set -e
. test/support/script.sh

test -z "$SANITIZE" || skip "a user's program has no sanitizer"

root=$(mktemp -d)
at_end "rm -rf '$root'"

# This make does not belong to the one that runs this: its job server is not available here.
install_make()
{
	MAKEFLAGS='' MFLAGS='' "$MAKE" "$1" BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr \
		LIBDIR=/usr/lib INCLUDEDIR=/usr/include
}

# The files for pkg-config find everything relative to themselves.
export PKG_CONFIG_PATH="$root/usr/lib/pkgconfig"
warnings="-Wall -Wextra -Wpedantic -Werror"

# A folder's name may have a space, a quote and a comma.
plain=$root
root="$plain/it's a, b"
install_make install
test -s "$root/usr/lib/libtimingwheel.a" && test -s "$root/usr/share/man/man3/tw_set_timer.3"
install_make uninstall
find "$plain" ! -type d -o -name timingwheel
test -z "$(find "$plain" ! -type d -o -name timingwheel)"
root=$plain
rm -r "$root"/*

install_make install
# shellcheck disable=SC2046,SC2086 # flags
{
	flags=$(pkg-config --cflags --libs timingwheel)
	$CC -std=c11 $warnings -o "$root/c_shared" test/long/install/user.c $flags
	$CXX -std=c++11 $warnings -o "$root/cpp_shared" test/long/install/user.cpp $flags -pthread

	flags=$(pkg-config --static --cflags --libs timingwheel)
	$CC -std=c11 $warnings -static -o "$root/c_static" test/long/install/user.c $flags
	$CXX -std=c++11 $warnings -static -o "$root/cpp_static" test/long/install/user.cpp $flags
}
# Loads and unloads the library at run time, and a plugin that contains the static library.
$CC -std=c11 $warnings -D_GNU_SOURCE -I"$root/usr/include" -o "$root/unload" \
	test/long/install/unload.c -pthread -ldl
$CC -shared -o "$root/plugin.so" -Wl,--whole-archive "$(find "$root/usr" -name libtimingwheel.a)" \
	-Wl,--no-whole-archive -pthread
users="c_shared cpp_shared c_static cpp_static unload"

# use_cmake PREFIX: builds the users of test/long/install/cmake, and runs them.
use_cmake()
{
	cmake -S test/long/install/cmake -B "$root/cmake" -DCMAKE_PREFIX_PATH="$1" \
		-DREDIS="$REDIS_FOUND" -DVERSION="$version" \
		>"$root/said" 2>&1 &&
		cmake --build "$root/cmake" >>"$root/said" 2>&1 || {
		cat "$root/said"
		exit 1
	}
	for user in shared static ${REDIS_FOUND:+redis}; do
		echo "running $user of cmake"
		timeout 60 "$root/cmake/$user"
	done
	rm -r "$root/cmake" "$root/said"
}
version=$(pkg-config --modversion timingwheel)
# The whole tree is moved, and found through a link.
mkdir "$root/moved"
mv "$root/usr" "$root/moved/there"
ln -s there/lib "$root/moved/lib"
# shellcheck disable=SC2046,SC2086 # flags
$CC -std=c11 $warnings -o "$root/moved/user" test/long/install/user.c \
	$(PKG_CONFIG_PATH="$root/moved/there/lib/pkgconfig" \
		pkg-config --cflags --libs timingwheel)
LD_LIBRARY_PATH="$root/moved/there/lib" timeout 60 "$root/moved/user"
if command -v cmake >/dev/null; then
	use_cmake "$root/moved/there"
	use_cmake "$root/moved"
else
	echo "no cmake: find_package is not tried"
fi
mv "$root/moved/there" "$root/usr"
rm -r "$root/moved"

if test -n "$REDIS_FOUND"; then
	# shellcheck disable=SC2046,SC2086 # flags
	{
		user=test/long/install/redis_user.c
		flags=$(pkg-config --cflags --libs timingwheel-redis)
		$CC -std=c11 $warnings -o "$root/redis_shared" $user $flags
		$CXX -std=c++11 $warnings -o "$root/redis_cpp_shared" -xc++ $user $flags

		# Only the project's libraries are static: not every system has curl's.
		flags="$(pkg-config --cflags timingwheel-redis) -xnone
			$root/usr/lib/libtimingwheel-redis.a $root/usr/lib/libtimingwheel.a
			$(pkg-config --libs $(pkg-config --print-requires-private \
				timingwheel-redis)) -pthread"
		$CC -std=c11 $warnings -o "$root/redis_static" $user $flags
		$CXX -std=c++11 $warnings -o "$root/redis_cpp_static" -xc++ $user $flags
	}
	users="$users redis_shared redis_cpp_shared redis_static redis_cpp_static"
fi
timeout 60 "$root/unload" "$root/plugin.so"
rm "$root/plugin.so"
for user in $users; do
	echo "running $user"
	LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$root/$user"
	rm "$root/$user"
done

for name in tw_set_timer tw_interval_of; do
	if ! mman -M "$root/usr/share/man" $name 2>/dev/null | grep -q "Library Functions"; then
		echo "man does not find $name"
		exit 1
	fi
done

install_make uninstall
leftovers=$(find "$root" ! -type d -o -name timingwheel)
if test -n "$leftovers"; then
	echo "left after uninstall: $leftovers"
	exit 1
fi
