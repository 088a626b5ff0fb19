# SPDX-License-Identifier: MIT
#
# Prints tables of Markdown from the drivers' lines "peer,question,threads,value,unit": the medians
# of the rounds, a row for each peer. A line "# ..." is the machine.

/^#/ {
	machine = substr($0, 3)
	next
}

{
	if (!($1 in is_known))
		peers[++peer_count] = $1
	is_known[$1] = 1
	values[$1, $2, $3, ++found[$1, $2, $3]] = $4
}

# Returns the median of a row of values; there is at least one.
function median(peer, question, threads,    list, n, i, j, kept)
{
	n = found[peer, question, threads]
	for (i = 1; i <= n; i++) {
		kept = values[peer, question, threads, i] + 0
		for (j = i - 1; j > 0 && list[j] > kept; j--)
			list[j + 1] = list[j]
		list[j + 1] = kept
	}
	return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2
}

function grouped(number)
{
	return number < 1000 ? number : grouped(int(number / 1000)) sprintf(",%03d", number % 1000)
}

# Prints a table. A column is "title|question|threads|decimals", columns are divided by ";".
function table(head, columns,    i, k, n, column, row, rule, is_empty)
{
	n = split(columns, column, ";")
	row = "| " head " |"
	rule = "|---|"
	for (k = 1; k <= n; k++) {
		split(column[k], part, "|")
		row = row " " part[1] " |"
		rule = rule "--:|"
	}
	print "\n" row "\n" rule
	for (i = 1; i <= peer_count; i++) {
		row = "| " peers[i] " |"
		is_empty = 1
		for (k = 1; k <= n; k++) {
			split(column[k], part, "|")
			if (!found[peers[i], part[2], part[3]]) {
				row = row " |"
				continue
			}
			is_empty = 0
			row = row sprintf(" %." part[4] "f |", median(peers[i], part[2], part[3]))
		}
		if (!is_empty)
			print row
	}
}

END {
	print machine "\n\nPeers: " versions ". Rounds: " rounds "."
	table(grouped(count) " timers, one thread", \
		"start: million a second|start|1|2;restart|restart|1|2;cancel|cancel|1|2;" \
		"due within 100 ms, all have run after: ms|crowd|1|0;" \
		"late p50: ms|late p50|1|2;p99|late p99|1|2;early, of " grouped(count / 20) "|early|1|0")
	table("Two threads, and processor time of a call", \
		"start: million a second|start|2|2;restart|restart|2|2;cancel|cancel|2|2;" \
		"two threads, start: ns|start processor|2|0;restart|restart processor|2|0;" \
		"cancel|cancel processor|2|0;one thread, start: ns|start processor|1|0;" \
		"restart|restart processor|1|0;cancel|cancel processor|1|0")
	table("A cache of " grouped(count) " keys", \
		"gets, one in ten a set: million a second|gets|1|1;two threads|gets|2|1;" \
		"room for a tenth, reads through|through|1|1;two threads|through|2|1;" \
		"hits: %|through hits|1|1;bytes an entry|bytes|1|0;" \
		"all expire, get p99.9: us|deadline p99.9|1|1;max|deadline max|1|0")
}
