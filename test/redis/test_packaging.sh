#!/bin/sh
# SPDX-License-Identifier: MIT
#
# systemd accepts the worker's unit and rates it as well protected, and the container's files and
# packages suffice to build it. No image is built: that needs the network.

cd "$(dirname "$0")/../.." || exit 1
set -e
. test/support/script.sh

test -z "$SANITIZE" || skip "what is installed has no sanitizer"

root=$(mktemp -d)
at_end "rm -rf '$root'"
container=src/redis/packaging/Containerfile

# This is a make of its own: the outer one's job server and T do not apply here.
outer_make()
{
	MAKEFLAGS='' MFLAGS='' T='' "$MAKE" "$@"
}

# The program is where the unit expects it.
outer_make install BUILD="$BUILD" DESTDIR= PREFIX="$root/usr" \
	LIBDIR="$root/usr/lib" INCLUDEDIR="$root/usr/include"
unit=$root/usr/lib/systemd/system/twr-worker.service
grep -q "^ExecStart=$root/usr/bin/twr worker" "$unit"
if command -v systemd-analyze >/dev/null; then
	systemd-analyze verify --man=no "$unit" >"$root/output" 2>&1 || true
	# Complaints about the system's units do not count.
	if grep twr-worker "$root/output"; then
		exit 1
	fi
	# It finds errors.
	sed 's/^ProtectSystem=.*/ProtectSystem=maybe/' "$unit" >"$root/twr-worker.service"
	systemd-analyze verify --man=no "$root/twr-worker.service" >"$root/output" 2>&1 || true
	grep -q 'twr-worker.service:[0-9]*:.*maybe' "$root/output"
	if systemd-analyze --help | grep -q -e '--offline'; then
		systemd-analyze security --offline=yes --threshold=15 "$unit" >"$root/output" || {
			cat "$root/output"
			exit 1
		}
	fi
else
	echo "no systemd-analyze: the unit is not verified"
fi

# The files that the container copies build the program.
sed -n 's/^COPY \([^-]\)/\1/p' "$container" | while read -r from to; do
	mkdir -p "$root/copy/$(dirname "$to")"
	cp -r "$from" "$root/copy/$to"
done
(cd "$root/copy" && outer_make BUILD=build REDIS=yes CFLAGS=-O0 all >"$root/output" 2>&1) || {
	cat "$root/output"
	exit 1
}
"$root/copy/build/twr" --version | grep -q '^twr [0-9]'

# The packages that it installs have all libraries that the program needs. libgcc-s1 comes with
# libc6.
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
if ! command -v dpkg >/dev/null || ! grep -q "^FROM debian:$release-slim" "$container"; then
	echo "another system than the container's: its packages are not checked"
	exit 0
fi
runtime=$(sed -n '/^FROM debian:[a-z]*-slim$/,$p' "$container")
readelf -d "$root/copy/build/twr" |
	sed -n '/libgcc_s/d; s/.*(NEEDED).*\[\(.*\)\]/\1/p' >"$root/needed"
test -s "$root/needed"
while read -r library; do
	file=$(realpath "$(ldconfig -p | sed -n "s|.*$library .*=> ||p" | head -n 1)")
	package=$(dpkg -S "*/$(basename "$file")" | sed -n '1s/:.*//p')
	if test "$package" != libc6 && ! echo "$runtime" | grep -q -w -F -e "$package"; then
		echo "$container has no $package for $library"
		exit 1
	fi
done <"$root/needed"
