#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs what shows a guarantee and keeps its result for test/PROOF.md:
#
#     record.sh NAME COMMAND [LOG]     a record of test/proof/records, and what is run by `bash -c`;
#                                      with LOG, what that command has printed here is taken
#
# NAME-long is for longer runs of what NAME is for, NAME-again for those of a part of it later.
# The record is written only if the command succeeds, but for mutants. Its lines: the day, the
# commit ("+": with changes that are in no commit), the seconds, the command as it was typed, and
# the result, which is taken from what the command has printed, as is right for that NAME.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh
name=$1 command=$2 given=$3
log=$(mktemp)
at_end "rm -f '$log'"

# The sum of the numbers that stand before a text in lines of the log.
sum_before()
{
	grep -oE "[0-9]+ $1" "$log" | awk '{ sum += $1 } END { printf "%d", sum }'
}

# What a reader of PROOF.md is told. Nothing: the log does not say it.
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
		# The last report: what chance decides may take several.
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
# But for what this writes itself.
[[ -z $(git status --porcelain -- . ':!test/proof/records' ':!test/PROOF.md' 2>/dev/null) ]] ||
	commit+=+
if [[ -n $given ]]; then
	cp "$given" "$log"
	# The log of a run that was written as it ran; of a part of one it is not known.
	took=$(($(stat -c %Y "$given") - $(stat -c %W "$given")))
	((took > 1)) || took=-
	grep -qE '^[0-9]+ passed, [1-9][0-9]* failed|^ *FAILED' "$log"
	status=$((! $?))
else
	bash -c "$command" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]} took=$SECONDS
fi
# A mutant that survives is a part of the result.
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
# How many mutants were killed, are explained, or survive, by file: each guarantee names files.
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
