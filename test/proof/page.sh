#!/bin/bash
# SPDX-License-Identifier: MIT
#
# This makes the page from test/proof/guarantees, test/proof/peers and the records, and checks that
# the tests, mutants, harnesses and records named there exist.
#
#     page.sh           writes test/PROOF.md
#     page.sh check     compares it; the last line is "N passed, N failed"

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
export LC_ALL=C
page=test/PROOF.md
records=test/proof/records
errors=0 checked=0

complain()
{
	echo "$*" >&2
	((errors++))
}

mapfile -t mutated < <(sed -n 's,^\(file: \)*src/\([^:]*\).*,\2,p' test/proof/mutants/functions \
	test/proof/mutants/by_hand | sort -u)
declare -A harness_runs killed explained survived functions
while read -r harness models _; do
	((harness_runs[$harness] += 1 + $(tr -cd , <<<"$models" | wc -c)))
done < <(grep -v -e '^#' -e '^	' -e '^$' test/proof/runs)
[[ ! -f $records/mutants.files ]] || while read -r name seen why missed; do
	killed[$name]=$seen explained[$name]=$why survived[$name]=$missed
done <"$records/mutants.files"

# field RECORD NAME
field()
{
	sed -n "s/^$2: //p" "$records/$1" 2>/dev/null
}

# count_tests FILE[:FUNCTION]: into `count`.
count_tests()
{
	local file=test/${1%%:*} function=${1#*:}

	if [[ -z ${functions[$file]} && -f $file.c ]]; then
		functions[$file]=$(sed -n 's/^static void \([a-z0-9_]*\)(void \*\*state)$/\1/p' \
			"$file.c")
	fi
	count=0
	if [[ -f $file.sh ]]; then
		count=1
	elif [[ $function == "$1" ]]; then
		count=$(grep -c . <<<"${functions[$file]}")
	elif grep -qx "$function" <<<"${functions[$file]}"; then
		count=1
	fi
	((checked++))
	((count)) || complain "there is no test $1"
}

write_tests()
{
	local sum=0 list='' name

	for name; do
		count_tests "$name"
		((sum += count))
		list+="${list:+, }\`$name\`"
	done
	echo "- **$sum tests**: $list."
}

# write_mutants PATTERN...: of files below src/.
write_mutants()
{
	local sum=0 seen=0 why=0 file pattern

	for pattern; do
		((checked++))
		# shellcheck disable=SC2053 # a pattern
		for file in "${mutated[@]}"; do [[ $file == $pattern ]] && continue 2; done
		complain "no mutants are made in $pattern"
	done
	for file in "${mutated[@]}"; do
		for pattern; do
			# shellcheck disable=SC2053 # a pattern
			[[ $file == $pattern ]] || continue
			((sum += killed[$file] + explained[$file] + survived[$file]))
			((seen += killed[$file], why += explained[$file]))
			break
		done
	done
	echo "- **$sum mutants**: bugs that were put in; the tests see $seen of them; explained," \
		"or no bugs: $why."
}

write_models()
{
	local sum=0 list='' name

	(($#)) || return 0
	for name; do
		((checked++))
		[[ -n ${harness_runs[$name]} ]] || complain "there is no harness $name"
		((sum += harness_runs[$name]))
		list+="${list:+, }\`$name\`"
	done
	echo "- **$sum runs of the model checker**, in every order of the threads' steps within" \
		"their bounds (\`test/proof/runs\`): $list."
}

write_runs()
{
	local name

	for name; do
		((checked++))
		if [[ ! -f $records/$name ]]; then
			complain "there is no record $name"
			continue
		fi
		echo "- **$name**: $(field "$name" result) ($(field "$name" day))."
	done
}

declare -A block

write_guarantee()
{
	[[ -n ${block[guarantee]} ]] || return 0
	printf '\n### %s\n\n%s\n\n%s\n\n' "${block[guarantee]}" "${block[says]}" "${block[because]}"
	# The words of each are patterns, which are not the shell's here.
	set -f
	# shellcheck disable=SC2086
	{
		write_tests ${block[tests]}
		write_mutants ${block[mutants]}
		write_models ${block[models]}
		write_runs ${block[runs]}
	}
	set +f
	block=()
}

write_guarantees()
{
	local line word=

	while IFS= read -r line; do
		case $line in
		'#'* | '') ;;
		' '*) block[$word]+=" ${line#"${line%%[! ]*}"}" ;;
		'part: '*)
			write_guarantee
			printf '\n## %s\n' "${line#part: }"
			;;
		'guarantee: '*)
			write_guarantee
			word=guarantee block[guarantee]=${line#guarantee: }
			;;
		*)
			word=${line%%:*}
			line=${line#*:}
			block[$word]=${line# }
			;;
		esac
	done <test/proof/guarantees
	write_guarantee
}

write_records()
{
	local file name field command

	printf '\n| Run | Result | Day | Commit | Seconds | By |\n|---|---|---|---|--:|---|\n'
	for file in "$records"/*; do
		name=${file##*/}
		[[ $name != *.* ]] || continue
		printf '| %s' "$name"
		for field in result day commit seconds; do
			printf ' | %s' "$(field "$name" $field)"
		done
		command=$(field "$name" command)
		((${#command} <= 100)) || command=${command:0:80}…
		printf ' | `%s` |\n' "${command//|/\\|}"
	done
}

# Lines of test/proof/peers: project, reference, fault, test; between them a tab.
write_peers()
{
	local project reference fault test name

	printf '\n| Project | Its fault | Reference | Seen here by |\n|---|---|---|---|\n'
	while IFS=$'\t' read -r project reference fault test; do
		for name in $test; do count_tests "$name"; done
		printf '| %s | %s | [%s](https://github.com/%s/issues/%s) | `%s` |\n' "$project" \
			"$fault" "$reference" "${reference%#*}" "${reference#*#}" \
			"${test// /\`, \`}"
	done < <(grep -v -e '^#' -e '^$' test/proof/peers)
}

write_page()
{
	cat <<-'END'
	<!-- Made by test/proof/page.sh; edits are lost. -->
	# Why to trust it

	What is promised, the argument, and what has been done to find it wrong. `make proof`
	runs all of it but what takes hours, writes the records and this page; `make mutants`,
	`make soak`, `make machines` and a longer `make torture-redis` are the rest. Numbers are
	of the runs in this table.
	END
	write_records
	write_guarantees
	printf '\n## Faults that others had\n\n%s\n%s\n' \
		"Public reports of faults in libraries of timers, caches and event loops, and the" \
		"tests here that look for each."
	write_peers
}

new=$(mktemp)
at_end "rm -f '$new'"
write_page >"$new"
if [[ $1 == check ]]; then
	((checked++))
	cmp -s "$new" "$page" || complain "$page is not what test/proof/page.sh makes"
	echo "$((checked - errors)) passed, $errors failed"
else
	cp "$new" "$page"
fi
((errors == 0))
