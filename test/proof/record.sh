#!/bin/bash
# SPDX-License-Identifier: MIT
#
# This runs a check of a guarantee and keeps its result for test/PROOF.md:
#
#     record.sh NAME COMMAND [LOG]     writes the record NAME, and runs COMMAND by `bash -c`; with
#                                      LOG, uses that output of the command
#
# NAME-long is for longer runs of NAME's check, NAME-again for later runs of a part of it.
# The record is written only if the command succeeds, except for mutants. Its lines are the day, the
# commit ("+" if there are uncommitted changes), the seconds, the command as it was typed, and the
# result, which is extracted from the command's output.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
name=$1 command=$2 given=$3
log=$(mktemp)
at_end "rm -f '$log'"

# sum_before TEXT: adds the numbers before the text in the log's lines.
sum_before()
{
	grep -oE "[0-9]+ $1" "$log" | awk '{ sum += $1 } END { printf "%d", sum }'
}

# Prints the result for PROOF.md, or nothing if the log has none.
result()
{
	local counts
	case ${name%-*} in
	model)
		printf '%d runs of GenMC with %d executions; %d weakenings, each found\n' \
			"$(grep -c '^  ok ' "$log")" "$(sum_before executions)" \
			"$(grep -c '^  found ' "$log")"
		;;
	simulation)
		sed -n 's/^\([0-9]* cases, [0-9]* steps\).*/\1, 0 faults/p' "$log" | tail -n 1
		;;
	fuzz)
		awk '/^  ok .* executions, [0-9]+ edges$/ { targets++; sum += $3 }
			END {
				if (targets)
					printf "%d targets, %d executions, 0 faults\n",
						targets, sum
			}' "$log"
		;;
	failures)
		printf '%d failures injected: ' "$(sum_before 'failures injected')"
		printf '%d allocations, %d descriptors, %d threads\n' "$(sum_before allocations)" \
			"$(sum_before descriptors)" "$(sum_before threads)"
		;;
	coverage)
		# The last report counts: tests that depend on chance may take several runs.
		tail -n 5 "$log" | sed -n \
			-e 's/^\(lines\|branches\)  *\([0-9.]* %\) (\(.*\))$/\1 \2 (\3), /p' \
			-e 's/^uncovered, explained: \([0-9]*\),.*/\1 places explained/p' |
			tr -d '\n'
		;;
	torture)
		counts=$(awk -F'|' '/^\| (tasks|runs|deeds of the nemesis|\*\*faults\*\*) \|/ {
			gsub(/[ *]/, "", $3)
			gsub(/^ | $|\*/, "", $2)
			printf "%s%s %s", n++ ? ", " : "", $3, $2 }' "$log")
		echo "$counts"
		;;
	cuts)
		# A run that loses something fails.
		sed -nE 's/^([0-9].* durability=[a-z]*), .* s: ([0-9]* calls).*/\1, \2, 0 lost/p' \
			"$log" | paste -sd ';' | sed 's,;,; ,g'
		;;
	soak)
		awk -F' *[|] *' '
			/^\| (hours|operations|storms|forks|quiet|… after the last|lateness)/ {
				printf "%s%s %s", n++ ? ", " : "", $2, $3
			}' "$log" | sed 's/… /resident /'
		;;
	machines) sed -n 's/^\(s390x\|arm64\): /\1: /p' "$log" | paste -sd ';' | sed 's,;,; ,' ;;
	mutants) grep -E '^[0-9]+ mutants, ' "$log" | tail -n 1 ;;
	*) grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1 ;;
	esac
}

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
# Files that this writes itself do not count as changes.
[[ -z $(git status --porcelain -- . ':!test/proof/records' ':!test/PROOF.md' 2>/dev/null) ]] ||
	commit+=+
if [[ -n $given ]]; then
	cp "$given" "$log"
	# A log that was written during the run shows its time; that of a part does not.
	took=$(($(stat -c %Y "$given") - $(stat -c %W "$given")))
	((took > 1)) || took=-
	grep -qE '^[0-9]+ passed, [1-9][0-9]* failed|^ *FAILED' "$log"
	status=$((! $?))
else
	bash -c "$command" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]} took=$SECONDS
fi
# A surviving mutant is part of the result.
[[ ${name%-*} != mutants ]] || status=0
text=$(result)
if ((status != 0)) || [[ -z $text ]]; then
	echo "$name: failed, or said nothing that can be kept"
	exit 1
fi
{
	printf 'day: %s\ncommit: %s\nseconds: %s\n' "$(date -u +%F)" "$commit" "$took"
	printf 'command: %s\nresult: %s\n' "$command" "$text"
} >"test/proof/records/$name.new" && mv "test/proof/records/$name.new" "test/proof/records/$name"
# Counts killed, explained and surviving mutants by file: each guarantee names files.
if [[ ${name%-*} == mutants ]]; then
	sed -n 's,^  \(killed\|explained\|equal\|SURVIVED\) *src/\([^: ]*\):.*,\1 \2,p' "$log" |
		awk '{
				of[$2] = 1
				count[$1, $2]++
			}
			END {
				for (file in of)
					print file, count["killed", file] + 0,
						count["explained", file] + count["equal", file],
						count["SURVIVED", file] + 0
			}' | sort >test/proof/records/mutants.files
fi
