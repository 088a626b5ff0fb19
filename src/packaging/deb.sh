#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deb.sh ARCHIVE VERSION ABI FOLDER: builds Debian's packages of the archive in the folder, and has
# lintian look at them where it is there. In debian/, @ABI@ is the version in the soname.

set -e
archive=$1 version=$2 abi=$3 folder=$4
source=$folder/timingwheel-$version

if ! command -v dpkg-buildpackage >/dev/null || ! test -d /usr/share/debhelper; then
	echo "debhelper is not there: apt-get install debhelper" >&2
	exit 1
fi
rm -rf "$folder"
mkdir -p "$folder"
tar -xf "$archive" -C "$folder"
cp -r "$source/src/packaging/debian" "$source/debian"
(
	cd "$source/debian"
	sed -i "s/@ABI@/$abi/g" control
	for library in libtimingwheel libtimingwheel-redis; do
		mv $library.install "$library$abi.install"
	done
	# The archive's files have the time of its commit, and so all that is packed gets it.
	cat >changelog <<-END
		timingwheel ($version) unstable; urgency=medium

		  * Version $version: what is new stands in src/CHANGES.md.

		 -- $(sed -n 's/^Maintainer: //p' control)  $(date -R -u -r ../Makefile)
	END
)
(cd "$source" && unset MAKEFLAGS MAKELEVEL MFLAGS && dpkg-buildpackage -us -uc -b)
rm -rf "$source"
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on warning,error "$folder"/*.changes
fi
ls "$folder"/*.deb
