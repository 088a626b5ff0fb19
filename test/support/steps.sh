# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# This runs several commands one after the other and adds up the tests that they count. .ci/run and
# servers.sh source it in the project's folder.

. test/support/script.sh
export MAKEFLAGS=-j2
log=$(mktemp)
at_end "rm -f '$log'"
passed=0
failed=0
skipped=0

# Runs a command line and adds the counts of its last line. Without such a line it counts as one.
run()
{
	local began=$SECONDS
	echo "== $1"
	bash -c "$1" 2>&1 | tee "$log"
	local status=${PIPESTATUS[0]} good=0 bad=0 left=0 counts
	counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
	if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+))? ]]; then
		good=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]} left=${BASH_REMATCH[4]:-0}
	else
		good=$((status == 0))
	fi
	((status == 0 || bad > 0)) || bad=1
	((passed += good, failed += bad, skipped += left))
	echo "== $((SECONDS - began)) s"
}

# Prints the sums, and returns whether all has passed.
end_steps()
{
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0))
}
