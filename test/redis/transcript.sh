#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a transcript of twr: transcript.sh FILE. A transcript has commands for the shell, and below
# each of them what it prints:
#
#     == A task that is unknown can't be cancelled.    A title; what follows has its own namespace.
#     $ twr add a --in 1h --handler                    The exit status must be 0,
#     a is due 20*Z
#     1$ twr cancel nobody                             or the number before the dollar.
#     twr: nobody: there is no such task
#
# `*` stands for any text within a line, and a line `...` for any lines. A command without lines may
# print anything. A line that begins with "> " continues a command; comments begin with "#"; empty
# lines do not count. Commands share this script's shell and leave its variables alone: at, cases,
# command, file, line, log, name, number, processes, status, title and wanted. They have $folder,
# where they may write, and these besides the program's:
#
#     twr              the program of this build, with a Redis of this transcript's
#     redis COMMAND    asks that Redis
#     server NAME ...  starts another one, with these options and $folder/NAME.sock
#     start LOG ...    starts a command that writes into $folder/LOG
#     await LOG TEXT   waits until it has written the text
#     end NUMBER       ends what was started last, and returns its exit status

cd "$(dirname "$0")/../.." || exit 1
. test/support/script.sh

file=$1
folder=$(mktemp -d) || exit 1
processes=
# shellcheck disable=SC2016 # when it ends
at_end 'kill -9 $processes 2>/dev/null; rm -rf "$folder"'
unset TWR_PASSWORD
export LC_ALL=C
PATH=$(cd "$BUILD" && pwd):$PATH

redis()
{
	redis-cli -s "$folder/own.sock" "$@"
}

server()
{
	name=$1
	shift
	"${REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$folder/$name.sock" --save '' \
		--dir "$folder" "$@" >"$folder/$name.log" 2>&1 &
	processes="$processes $!"
	wait_for "$folder/$name.log" redis-cli -s "$folder/$name.sock" ping
}

start()
{
	into=$folder/$1
	shift
	: >"$into" # now: await must not find what another program has written
	"$@" >"$into" 2>&1 &
	started=$!
	processes="$processes $started"
}

await()
{
	wait_for "$folder/$1" grep -F -e "$2" "$folder/$1"
}

end()
{
	kill -"${1:-TERM}" "$started"
	wait "$started"
}

# like EXPECTED OUTPUT: whether the lines of a file are as expected.
like()
{
	awk '
	# Whether the text is the pattern, in which * is any text.
	function is(pattern, text, part, count, i, at)
	{
		count = split(pattern, part, "*")
		if (count < 2 && index(pattern, "*") == 0)
			return pattern == text
		if (index(text, part[1]) != 1)
			return 0
		text = substr(text, length(part[1]) + 1)
		for (i = 2; i < count; i++) {
			at = index(text, part[i])
			if (!at)
				return 0
			text = substr(text, at + length(part[i]))
		}
		at = length(text) - length(part[count])
		return at >= 0 && substr(text, at + 1) == part[count]
	}
	# Whether the lines from these on are like the patterns from those on.
	function are(pattern, line)
	{
		if (pattern > patterns)
			return line > lines
		if (expected[pattern] == "...")
			return are(pattern + 1, line) || (line <= lines && are(pattern, line + 1))
		return line <= lines && is(expected[pattern], output[line]) &&
			are(pattern + 1, line + 1)
	}
	$0 == "" { next }
	FILENAME == ARGV[1] { expected[++patterns] = $0; next }
	{ output[++lines] = $0 }
	END { exit !are(1, 1) }' "$1" "$2"
}

# fail WHY: shows what the command has printed.
fail()
{
	cat "$folder/output"
	echo "[   LINE   ] --- $file:$at: $title $1"
	echo "[  PASSED  ] $((cases - 1)) test(s)."
	echo "[  FAILED  ] 1 test(s)."
	exit 1
}

# step: runs the command, and judges by what comes of it.
step()
{
	test -n "$command" || return 0
	eval "$command" >"$folder/output" 2>&1
	status=$?
	if test "$status" != "${wanted:-0}"; then
		fail "The exit status is $status."
	elif test -s "$folder/expected" && ! like "$folder/expected" "$folder/output"; then
		fail "The output is another."
	fi
	command=
}

server own || exit 1
export TWR_URL="redis+unix://$folder/own.sock"
command='' number=0 cases=0
while IFS= read -r line || test -n "$line"; do
	number=$((number + 1))
	case $line in
	'== '*)
		step </dev/null
		title=${line#== }
		cases=$((cases + 1))
		export TWR_NAMESPACE="case-$cases"
		;;
	'$ '* | [0-9]'$ '* | [0-9][0-9]'$ '* | [0-9][0-9][0-9]'$ '*)
		step </dev/null
		command=${line#*"$ "} wanted=${line%%"$ "*} at=$number
		: >"$folder/expected"
		;;
	'>' | '> '*)
		line=${line#>}
		command="$command
${line# }"
		;;
	'#'* | '') ;;
	*) printf '%s\n' "$line" >>"$folder/expected" ;;
	esac
done <"$file"
step </dev/null
echo "[  PASSED  ] $cases test(s)."
