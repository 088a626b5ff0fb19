# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Scripts in test/ source this in the project's folder.

# skip "REASON": ends a test that can't be made here.
skip()
{
	echo "$1"
	exit 77
}

# at_end COMMAND: runs it when the script ends, also by a signal, for which sh has no EXIT trap.
at_end()
{
	# shellcheck disable=SC2064 # as it is given
	trap "$1" EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# wait_for LOG COMMAND...: tries the command for half a minute; if in vain, shows the log.
wait_for()
{
	log=$1
	shift
	for _ in $(seq 300); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "in vain: $*"
	cat "$log"
	return 1
}
