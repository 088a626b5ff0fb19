#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests that the README's commands work in a fresh system: debian.sh SUITE... builds a Debian of
# each suite with mmdebstrap, in a temporary folder, clones this commit into it and runs them there,
# as root. Then it compiles with the strictest flags of a new gcc. $MIRROR is a mirror of Debian, if
# not the usual one; proxies, and whether dates are checked, are taken from this machine's apt. All
# output goes to $BUILD/debians. It takes a night. The last line is "N passed, N failed": commands.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

if ! command -v mmdebstrap >/dev/null || test "$(id -u)" != 0; then
	echo "left out: it needs mmdebstrap (a package of that name) and root"
	echo "0 passed, 0 failed, 1 skipped"
	exit
fi

logs=$(pwd)/$BUILD/debians
mkdir -p "$logs"
folder=$(mktemp -d)
child=''
# Mounts are gone by then; if not, their files must not be removed.
# shellcheck disable=SC2016 # when it ends
at_end 'kill -KILL $child 2>/dev/null || true; wait; rm -rf --one-file-system "$folder"'
git clone -q --no-hardlinks . "$folder/timingwheel"
apt-config dump Acquire | grep -E '^Acquire::(http|https)::Proxy |^Acquire::Check-' >"$folder/apt"

# The order is the README's.
awk '/^```/ { inside = !inside } inside && /^make deps /' README.md >"$folder/commands"
cat >>"$folder/commands" <<'END'
gcc -dumpfullversion
export CFLAGS="-O3 -Wall -Wextra -Werror -fhardened"
test $(gcc -dumpversion) -lt 14 || make BUILD=build/hard all
END
cat >"$folder/newcomer" <<'END'
cd /root/timingwheel || exit
export MAKEFLAGS="-j$(nproc)"
while read -r command; do
	echo "== $command"
	eval "$command" </dev/null
	echo "== exit status $?"
done <../commands
END

# try SUITE: runs in its own namespaces, whose end also ends mounts and processes, and in the
# background, so that a signal is handled at once.
try()
{
	# shellcheck disable=SC2086 # MIRROR may be none
	TMPDIR=$folder unshare --mount --pid --fork --kill-child --mount-proc \
		mmdebstrap --mode=root --format=null --variant=minbase --aptopt="$folder/apt" \
		--include=ca-certificates,gcc,git,libc6-dev,make \
		--customize-hook="cd '$folder' && cp -r commands newcomer timingwheel \$1/root" \
		--chrooted-customize-hook="sh /root/newcomer" \
		"$1" /dev/null $MIRROR >"$logs/$1.log" 2>&1 &
	child=$!
	wait $child
}

# sum_up SUITE: prints the last line of each command.
sum_up()
{
	awk -v suite="$1" '
	/^== exit status / {
		print suite ": " command ": " last ($4 ? " (exit status " $4 ")" : "")
		next
	}
	/^== / { command = substr($0, 4) }
	{ last = $0 }' "$logs/$1.log"
}

passed=0
for suite; do
	try "$suite" || echo "$suite: mmdebstrap failed; all of it: $logs/$suite.log"
	sum_up "$suite"
	passed=$((passed + $(grep -c '^== exit status 0$' "$logs/$suite.log")))
done
failed=$(($# * $(wc -l <"$folder/commands") - passed))
echo "$passed passed, $failed failed"
test $failed = 0
