#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each header compiles by itself without a warning, and so does a user of them all, in each standard
# of C and C++ that the compilers that are there know. The compilers warn of mistakes in calls, as
# far as they know the attributes.

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

folder=$(mktemp -d) || exit 1
at_end "rm -rf '$folder'"
user=test/house/headers/user.c
flags="-Wall -Wextra -Wconversion -Wpedantic -Wshadow -Werror -Iinclude"
c_compilers=$(printf '%s\n' "$CC" gcc clang clang-19 | sort -u)
status=0

complain()
{
	cat "$folder/said"
	echo "$*"
	status=1
}

# try COMPILER LANGUAGE STANDARD...
try()
{
	command -v "$1" >/dev/null || return
	compiler=$1 language=$2
	shift 2
	for standard; do
		$compiler "-std=$standard" -E "-x$language" /dev/null >/dev/null 2>&1 || continue
		# shellcheck disable=SC2086 # several flags
		$compiler "-std=$standard" $flags -fsyntax-only "-x$language" \
			include/timingwheel/*.h $user >"$folder/said" 2>&1 ||
			complain "$compiler warns in $standard"
		tried="$tried $compiler:$standard"
	done
}

tried=
for compiler in $c_compilers; do
	try "$compiler" c c11 c17 c2x
done
for compiler in $(printf '%s\n' "$CXX" g++ clang++ clang++-19 | sort -u); do
	try "$compiler" c++ c++11 c++14 c++17 c++20 c++2b c++2c
done
test -n "$tried" || complain "no compiler was tried"
echo "tried:$tried"

# --- Mistakes ----------------------------------------------------------------------------------
# knows COMPILER ATTRIBUTE
knows()
{
	printf '#if !__has_attribute(%s)\n#error none\n#endif\n' "$2" |
		$1 -E -xc - >/dev/null 2>&1
}

# Only the optimizer sees what the attributes of buffers say: it has nothing to warn of.
for compiler in $c_compilers; do
	command -v "$compiler" >/dev/null || continue
	# shellcheck disable=SC2086 # several flags
	$compiler -std=c11 -O2 $flags -S -o /dev/null $user >"$folder/said" 2>&1 ||
		complain "$compiler warns with -O2"
done

# mistake ATTRIBUTE WARNING CALL: each compiler with the attribute warns of the call.
mistake()
{
	for compiler in $c_compilers; do
		knows "$compiler" "$1" || continue
		# shellcheck disable=SC2086 # several flags
		if $compiler -O2 -Wall -Iinclude "-DWRONG=$3" -S -o /dev/null $user \
			>"$folder/said" 2>&1 && grep -q "\[-W$2\]" "$folder/said"; then
			continue
		fi
		complain "$compiler does not warn of $3"
	done
}

mistake warn_unused_result unused-result "tw_create(&wheel, TW_SECOND, 1, NULL, NULL)"
mistake warn_unused_result unused-result "tw_set_timer(wheel, buffer, 8, buffer, TW_SECOND)"
mistake warn_unused_result unused-result "tw_cache_put(cache, buffer, 3, 0, TW_CACHE_PUT_SET)"
mistake access stringop-overread 'tw_move_timer(wheel, "short", 7, TW_SECOND)'
mistake access stringop-overread "tw_cache_delete(cache, buffer, sizeof(buffer) + 1)"
mistake access stringop-overread "tw_redis_finish(redis, &job, 2, TW_REDIS_DONE, NULL, NULL)"
mistake access stringop-overflow= "tw_cache_get(cache, buffer, 3, buffer, 9, NULL)"
mistake nonnull nonnull "tw_cache_entry_value(NULL, NULL)"
exit $status
