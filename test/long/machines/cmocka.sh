#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Debian's cmocka for another processor, unpacked: cmocka.sh s390x FOLDER. The system's own list of
# packages and processors stays as it is. Says where the library lies.
set -eu

machine=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
# shellcheck source=/dev/null
. /etc/os-release

if ! ls "$folder"/usr/lib/*/libcmocka.so >/dev/null 2>&1; then
	lists=$folder/apt
	mkdir -p "$lists/lists/partial" "$lists/archives/partial"
	echo "deb [arch=$machine] http://deb.debian.org/debian $VERSION_CODENAME main" \
		>"$lists/sources"
	get()
	{
		apt-get -q -o APT::Architectures::="$machine" -o Dir::State::Lists="$lists/lists" \
			-o Dir::Cache="$lists" -o Dir::Etc::SourceList="$lists/sources" \
			-o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root "$@" >&2
	}
	get update
	cd "$lists"
	get download "libcmocka0:$machine"
	dpkg -x libcmocka0_*.deb "$folder"
	rm -r "$lists"
	ln -s libcmocka.so.0 "$(echo "$folder"/usr/lib/*-linux-gnu)/libcmocka.so"
fi
echo "$folder"/usr/lib/*-linux-gnu
