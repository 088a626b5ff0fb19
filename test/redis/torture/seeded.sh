#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Shows that the torture and its checker find faults: tortures a copy of the sources with each fault
# of seeded_faults. Without a fault the copy has to pass.
# `make torture-seeded` calls it. FAULTS=text takes only faults whose name has the text; SECONDS= is
# for each.
# The last line is "N passed, N failed".

cd "$(dirname "$0")/../../.." || exit 1
: "${BUILD:?run by make torture-seeded}"
copy=$BUILD/test/redis/torture/seeded
passed=0
failed=0

make_copy()
{
	rm -rf "$copy"
	mkdir -p "$copy"
	cp -R src include test Makefile "$copy"
}

# torture: prints its output. The copy has a build folder of its own.
torture()
{
	env -u MAKEFLAGS -u MAKELEVEL -u BUILD make -s -j2 -C "$copy" BUILD=build SUMMARY= \
		SECONDS="${SECONDS_OF_EACH:-30}" SEED="${SEED:-1}" torture-redis 2>&1
}

complain()
{
	printf 'not ok: %s: %s\n' "$name" "$1"
	((++failed))
}

# changed_source MUTANT
changed_source()
{
	local file change
	read -r file change <<<"$1"
	if [[ -z $change ]]; then
		python3 test/support/mutants.py "$1"
	else
		sed "$change" "$file" && ! sed "$change" "$file" | cmp -s - "$file"
	fi
}

# try_fault MUTANT
try_fault()
{
	local output found
	local file=${1%%[: ]*}
	changed_source "$1" >"$copy/$file" || {
		complain "there is no such mutant"
		cp "$file" "$copy/$file"
		return
	}
	output=$(torture)
	found=$(sed -n 's/^FAULT \([a-z ]*\):.*/\1/p' <<<"$output" | sort | uniq -c |
		tr -s '\n ' ' ')
	if [[ -n $found ]]; then
		printf 'ok: %s\n    found:%s\n' "$name" "$found"
		((++passed))
	else
		complain "not found: $(tail -n 1 <<<"$output")"
	fi
	cp "$file" "$copy/$file"
}

make_copy
name='no fault'
if output=$(torture); then
	echo "ok: $name"
	((++passed))
else
	complain "$(grep FAULT <<<"$output" || tail -n 3 <<<"$output")"
fi
while read -r mutant && read -r name; do
	[[ $name != *"${FAULTS:-}"* ]] || try_fault "$mutant"
done < <(grep -v -e '^#' -e '^$' test/redis/torture/seeded_faults)
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
