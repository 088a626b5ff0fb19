#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Installs into an empty folder, compiles each header by itself, builds C and C++ users against it,
# with the shared and with the static libraries, runs them, uninstalls, and looks for leftovers.

cd "$(dirname "$0")/../.." || exit 1
set -e

if test -n "$SANITIZE"; then
	echo "a user's program has no sanitizer"
	exit 77
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# Not a part of the make that runs this: its job server is out of reach here.
install_make()
{
	MAKEFLAGS='' MFLAGS='' "$MAKE" "$1" BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr \
		LIBDIR=/usr/lib INCLUDEDIR=/usr/include
}

# pkg-config leaves out the system's folders, which these are without the root before them.
export PKG_CONFIG_PATH="$root/usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
warnings="-Wall -Wextra -Wpedantic -Werror"

install_make install
for header in "$root"/usr/include/timingwheel/*.h; do
	# shellcheck disable=SC2086 # flags
	$CC -std=c11 $warnings -I"$root/usr/include" -fsyntax-only -xc "$header"
	# shellcheck disable=SC2086 # flags
	$CXX -std=c++11 $warnings -I"$root/usr/include" -fsyntax-only -xc++ "$header"
done
# shellcheck disable=SC2046,SC2086 # flags
{
	flags=$(pkg-config --cflags --libs timingwheel)
	$CC -std=c11 $warnings -o "$root/c_shared" test/install/user.c $flags
	$CXX -std=c++11 $warnings -o "$root/cpp_shared" test/install/user.cpp $flags -pthread

	flags=$(pkg-config --static --cflags --libs timingwheel)
	$CC -std=c11 $warnings -static -o "$root/c_static" test/install/user.c $flags
	$CXX -std=c++11 $warnings -static -o "$root/cpp_static" test/install/user.cpp $flags
}
# Takes the library up at run time, and puts it down again.
$CC -std=c11 $warnings -D_GNU_SOURCE -I"$root/usr/include" -o "$root/unload" \
	test/install/unload.c -pthread -ldl
users="c_shared cpp_shared c_static cpp_static unload"

if test -n "$REDIS_FOUND"; then
	# shellcheck disable=SC2046,SC2086 # flags
	{
		user=test/install/redis_user.c
		flags=$(pkg-config --cflags --libs timingwheel-redis)
		$CC -std=c11 $warnings -o "$root/redis_shared" $user $flags
		$CXX -std=c++11 $warnings -o "$root/redis_cpp_shared" -xc++ $user $flags

		# Ours alone are static: not every system has those of curl.
		flags="$(pkg-config --cflags timingwheel-redis) -xnone
			$root/usr/lib/libtimingwheel-redis.a $root/usr/lib/libtimingwheel.a
			$(pkg-config --libs $(pkg-config --print-requires-private \
				timingwheel-redis)) -pthread"
		$CC -std=c11 $warnings -o "$root/redis_static" $user $flags
		$CXX -std=c++11 $warnings -o "$root/redis_cpp_static" -xc++ $user $flags
	}
	users="$users redis_shared redis_cpp_shared redis_static redis_cpp_static"
fi
for user in $users; do
	echo "running $user"
	LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$root/$user"
	rm "$root/$user"
done

install_make uninstall
leftovers=$(find "$root" ! -type d -o -name timingwheel)
if test -n "$leftovers"; then
	echo "left after uninstall: $leftovers"
	exit 1
fi
