#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests that the archive has the same bytes each time, also made from its own contents, and can be
# built without git; that Debian's packages are made from it without findings of lintian; and that
# programs can be built against them. The last line is "N passed, N failed". `make test-packages`
# calls this.

cd "$(dirname "$0")/../../.." || exit 1
. test/support/script.sh
# This is inside a checkout, which is not that of the unpacked files.
work=$(pwd)/$BUILD/test/packages
rm -rf "$work"
mkdir -p "$work"
at_end "rm -rf '$work'"
passed=0
failed=0

outer_make()
{
	MAKEFLAGS='' MFLAGS='' "$MAKE" -s "$@"
}

# check NAME COMMAND...
check()
{
	name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1))
		echo "  ok      $name"
	else
		failed=$((failed + 1))
		echo "  FAILED  $name"
		tail -n 40 "$work/log"
	fi
}

archive=$BUILD/timingwheel-$VERSION.tar.xz
unpacked=$work/unpacked/timingwheel-$VERSION

# A clone of another user, with another umask, makes the same bytes.
archive_is_the_same_twice()
{
	outer_make dist && (
		umask 077
		export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=tar.umask GIT_CONFIG_VALUE_0=077
		git clone -q . "$work/clone" && outer_make -C "$work/clone" BUILD=build dist
	) && cmp "$archive" "$work/clone/build/${archive##*/}" &&
		cmp "$archive.sha256" "$work/clone/build/${archive##*/}.sha256" &&
		(cd "$BUILD" && sha256sum -c ./*.sha256)
}

archive_is_built_without_git()
{
	mkdir "$work/unpacked" && tar -xf "$archive" -C "$work/unpacked" &&
		outer_make -C "$unpacked" REDIS=no BUILD=build all dist &&
		cmp "$archive" "$unpacked/build/timingwheel-$VERSION.tar.xz"
}

packages_are_made()
{
	outer_make deb
}

# These are installed below a folder, without their dependencies, which the system has: the files
# for pkg-config and CMake allow that.
unpack()
{
	for pattern in "$@"; do
		find "$BUILD/deb" -name "${pattern}_*.deb" -exec dpkg -x {} "$work/root" \; ||
			return 1
	done
	lib=$(dirname "$(find "$work/root" -name 'libtimingwheel.so.*' | head -n 1)")
}

# build_and_run USER MODULE: builds a program of test/long/install, and runs it
build_and_run()
{
	# shellcheck disable=SC2046 # flags
	$CC -o "$work/user" "test/long/install/$1.c" \
		$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs "$2") &&
		LD_LIBRARY_PATH=$lib timeout 60 "$work/user"
}

program_is_built_against_the_packages()
{
	unpack "libtimingwheel[0-9]*" libtimingwheel-dev && build_and_run user timingwheel &&
		test -s "$work/root/usr/share/man/man3/tw_set_timer.3.gz" || return 1
	# It contains nothing of the other part.
	if find "$work/root" -name '*redis*' | grep .; then
		return 1
	fi
	unpack "libtimingwheel-redis[0-9]*" libtimingwheel-redis-dev &&
		build_and_run redis_user timingwheel-redis
}

# twr is installed alone, and its worker is not started before a Redis is configured.
program_is_installed_and_starts_nothing()
{
	rm -rf "$work/root"
	unpack twr && "$work/root/usr/bin/twr" --version &&
		find "$work/root" -path '*/lib/systemd/system/twr-worker.service' | grep . &&
		test -s "$work/root/usr/share/man/man1/twr.1.gz" || return 1
	# debhelper writes this for a unit that is enabled by hand.
	dpkg -e "$BUILD"/deb/twr_*.deb "$work/control" &&
		grep -q "if deb-systemd-helper debian-installed 'twr-worker.service'" \
			"$work/control/postinst"
}

check "the archive is the same twice" archive_is_the_same_twice
check "the archive is built without git" archive_is_built_without_git
if test -d /usr/share/debhelper; then
	check "Debian's packages are made" packages_are_made
	check "programs are built against the packages" program_is_built_against_the_packages
	check "twr is installed and starts nothing" program_is_installed_and_starts_nothing
else
	echo "  skipped: debhelper is not there"
fi
echo "$passed passed, $failed failed"
test "$failed" = 0
