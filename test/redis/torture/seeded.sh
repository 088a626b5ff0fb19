#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Puts each fault of seeded_faults into a copy of the sources, and tortures that: so the torture and
# its checker are shown to find what they are for. Without any fault the copy has to pass.
# Called by `make torture-seeded`; FAULTS=text: those alone whose name has it, SECONDS= for each.
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

# torture: what it prints. The copy has a build folder of its own.
torture()
{
	env -u MAKEFLAGS -u MAKELEVEL -u BUILD make -s -j2 -C "$copy" BUILD=build SUMMARY= \
		SECONDS="${SECONDS_OF_EACH:-30}" SEED="${SEED:-1}" torture-redis 2>&1
}

# replace FILE FROM TO: where FROM stands, once.
replace()
{
	local text
	text=$(<"$1")
	[[ $text == *"$2"* && ${text#*"$2"} != *"$2"* ]] || return 1
	printf '%s\n' "${text/"$2"/"$3"}" >"$1"
}

complain()
{
	printf 'not ok: %s: %s\n' "$name" "$1"
	((++failed))
}

# With name, file, from and to of a fault.
try_fault()
{
	local output found
	[[ -n $name && $name == *"${FAULTS:-}"* ]] || return
	replace "$copy/$file" "$from" "$to" || {
		complain "its lines are not in $file, or more than once"
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
name=
while IFS= read -r line || [[ -n $line ]]; do
	case $line in
	'fault '*) name=${line#fault } from='' to='' ;;
	'file '*) file=${line#file } ;;
	-*) from+=${from:+$'\n'}${line#-} ;;
	+*) to+=${to:+$'\n'}${line#+} ;;
	'')
		try_fault
		name=
		;;
	esac
done <test/redis/torture/seeded_faults
try_fault
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
