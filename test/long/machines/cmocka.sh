#!/bin/sh
# SPDX-License-Identifier: MIT
#
# This unpacks Debian's cmocka for another processor, or compiles it for musl: cmocka.sh s390x|musl
# FOLDER. The system's own list of packages and processors stays as it is. Prints where the library
# lies. For musl the folder also gets what its compiler does not find: headers in include/, and
# unwinder.o, a part of the C library that Debian's libgcc needs.
set -eu

machine=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
lists=$folder/apt
# shellcheck source=/dev/null
. /etc/os-release

# get SOURCE COMMAND...: calls apt-get with this list alone.
get()
{
	mkdir -p "$lists/lists/partial" "$lists/archives/partial"
	echo "$1 http://deb.debian.org/debian $VERSION_CODENAME main" >"$lists/sources"
	shift
	apt-get -q -o APT::Architectures::="$machine" -o Dir::State::Lists="$lists/lists" \
		-o Dir::Cache="$lists" -o Dir::Etc::SourceList="$lists/sources" \
		-o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root "$@" >&2
}

if test "$machine" = musl; then
	if ! test -e "$folder/libcmocka.a"; then
		cd "$folder"
		get deb-src update
		get deb-src source --download-only cmocka
		tar -xf cmocka_*.orig.tar.?z --strip-components=1
		for header in uthash.h linux asm-generic "$(gcc -print-multiarch)/asm"; do
			ln -sfn "/usr/include/$header" include/
		done
		echo 'int _dl_find_object(void) { return -1; }' >unwinder.c
		musl-gcc -fPIC -c unwinder.c
		musl-gcc -O2 -fPIC -Iinclude -DHAVE_INTTYPES_H -DHAVE_SIGNAL_H -DHAVE_STRINGS_H \
			-DHAVE_MALLOC_H -DHAVE_STRUCT_TIMESPEC -DHAVE_CLOCK_GETTIME -c src/cmocka.c
		ar rc libcmocka.a cmocka.o
	fi
	echo "$folder"
	exit
fi

if ! ls "$folder"/usr/lib/*/libcmocka.so >/dev/null 2>&1; then
	get "deb [arch=$machine]" update
	cd "$lists"
	get "deb [arch=$machine]" download "libcmocka0:$machine"
	dpkg -x libcmocka0_*.deb "$folder"
	rm -r "$lists"
	ln -s libcmocka.so.0 "$(echo "$folder"/usr/lib/*-linux-gnu)/libcmocka.so"
fi
echo "$folder"/usr/lib/*-linux-gnu
