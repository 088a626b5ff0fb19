#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Counts what the programs of `make costs` cost, and prints a line for each operation:
#
#     run.sh FOLDER PROGRAM...
#
#     NAME INSTRUCTIONS D1 LL LOCKED CALLS    each for one operation: instructions, misses of a
#                                             first and a last cache level, locked instructions,
#                                             system calls
#     bytes.NAME BYTES                        resident memory of one element
#
# FOLDER has the programs, and gets their dumps (`callgrind_annotate FOLDER/PROGRAM.cg.N` shows the
# functions of one). The counts are the same in each run: addresses are not randomized, the caches
# are simulated, and all machines use the same memcpy.
set -eu -o pipefail

cd "$(dirname "$0")/../.."
folder=$1
shift
caches="--I1=32768,8,64 --D1=32768,8,64 --LL=4194304,16,64"
features=AVX512F,AVX512VL,AVX2,AVX,ERMS,FSRM,AVX_Fast_Unaligned_Load,Fast_Unaligned_Copy
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-${features//,/,-}

# Counts PROGRAM.
count()
{
	local program=$folder/$1

	rm -f "$program".cg*
	# A locked instruction has the prefix, or is an exchange with memory.
	objdump -d --no-show-raw-insn "$program" | awk '
		/\t(lock|xchg.*\()/ { kind = "locked" }
		/\tsyscall/ { kind = "call" }
		kind != "" { sub(/:.*/, ""); print "0x" $1, kind; kind = "" }' >"$program.kinds"
	# shellcheck disable=SC2086 # several options
	setarch -R valgrind --tool=callgrind --collect-atstart=no --cache-sim=yes $caches \
		--dump-instr=yes --compress-pos=no --compress-strings=no \
		--callgrind-out-file="$program.cg" "$program" >"$program.log" 2>&1 ||
		{ cat "$program.log" >&2; return 1; }
	find "$folder" -name "$1.cg.*" | sort -V |
		xargs awk -f bench/costs/sum.awk "$program.kinds" >"$program.costs"
	COSTS_N=262144 setarch -R "$program" | grep '^bytes' >>"$program.costs" || true
}
export -f count
export folder caches

printf '%s\n' "$@" | xargs -P "$(nproc)" -I@ bash -eu -c 'count @'
for program; do
	cat "$folder/$program.costs"
done
