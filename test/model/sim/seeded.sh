#!/bin/bash
# SPDX-License-Identifier: MIT
#
# This puts each fault of seeded_faults into a copy of the sources, and simulates until the fault is
# found, which shows that the simulation works. The seed that it prints must find the fault again,
# and nothing in the unchanged sources. `make sim-seeded` calls this; FAULTS=text selects the faults
# with this text in their names. The last line is "N passed, N failed".

cd "$(dirname "$0")/../../.." || exit 1
: "${BUILD:?run by make sim-seeded}"
steps=${STEPS:-600000000}
copy=$BUILD/test/model/sim/seeded
passed=0
failed=0

make_copy()
{
	mkdir -p "$copy/test" "$copy/build"
	rm -rf "$copy/src" "$copy/include" "$copy/test/model" "$copy/test/support"
	cp -R src include Makefile "$copy"
	cp -R test/model test/support "$copy/test"
}

# simulate SEED STEPS: prints the simulation's output. The copy has a build folder of its own.
simulate()
{
	env -u MAKEFLAGS -u MAKELEVEL -u BUILD make -s -j2 -C "$copy" REDIS=no BUILD=build sim \
		SEED="$1" STEPS="$2" 2>&1
}

complain()
{
	printf 'not ok: %s: %s\n' "$name" "$1"
	((++failed))
}

# try_fault MUTANT
try_fault()
{
	local output again seed what
	local file=${1%%:*}
	python3 test/support/mutants.py "$1" >"$copy/$file" || {
		complain "there is no such mutant"
		cp "$file" "$copy/$file"
		return
	}
	output=$(simulate "${SEED:-1}" "$steps")
	seed=$(sed -n 's/^make sim SEED=\([0-9]*\) STEPS=1$/\1/p' <<<"$output")
	what=$(sed -n 's/^FAILED: //p' <<<"$output")
	if [[ -z $seed ]]; then
		complain "not found: $(tail -n 1 <<<"$output")"
	else
		again=$(simulate "$seed" 1 | sed -n 's/^FAILED: //p')
		if ! "$BUILD/test/model/sim/simulate" "$seed" 1 >/dev/null; then
			complain "SEED=$seed fails without it, too"
		elif [[ $again == "$what" ]]; then
			printf 'ok: %s\n    %s\n    %s; SEED=%s\n' "$name" "$what" \
				"$(sed -n 's/^   in \(case.*steps\).*/\1/p' <<<"$output")" "$seed"
			((++passed))
		else
			complain "SEED=$seed found \"$what\", then \"$again\""
		fi
	fi
	cp "$file" "$copy/$file"
}

make_copy
while read -r mutant && read -r name; do
	[[ $name != *"${FAULTS:-}"* ]] || try_fault "$mutant"
done < <(grep -v -e '^#' -e '^$' test/model/sim/seeded_faults)
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
