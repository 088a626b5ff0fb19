# SPDX-License-Identifier: MIT
#
# Compares the CSV files BENCH.TURN.base.csv and BENCH.TURN.now.csv of bench/compare.sh, `turns` of
# each. The columns "contender" and "measure" identify a row, and "value" has its figure.

function note(row, value)
{
	if (!(row in known)) {
		known[row] = 1
		rows[++row_count] = row
	}
	values[row, side, turn] = value
}

# Sorts list[1..n] and returns the middle.
function median(list, n,    i, j, kept)
{
	for (i = 2; i <= n; i++) {
		kept = list[i]
		for (j = i - 1; j > 0 && list[j] > kept; j--)
			list[j + 1] = list[j]
		list[j + 1] = kept
	}
	return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2
}

function figure(value)
{
	return sprintf(value < 1e3 ? "%.4g" : value < 1e6 ? "%.0f" : "%.2f m",
		value < 1e6 ? value : value / 1e6)
}

function compare(row,    turn, n, base, now, ratio, better)
{
	for (turn = 1; turn <= turns; turn++) {
		if (values[row, "base", turn] <= 0 || values[row, "now", turn] <= 0)
			continue
		base[++n] = values[row, "base", turn]
		now[n] = values[row, "now", turn]
		ratio[n] = row ~ /per_second$/ ? now[n] / base[n] : base[n] / now[n]
	}
	if (!n)
		return
	better = median(ratio, n)
	printf "%-46s %11s %11s %7.3f  %.3f to %.3f%s\n", row, figure(median(base, n)),
		figure(median(now, n)), better, ratio[1], ratio[n],
		(n > 1 && (ratio[1] > 1 || ratio[n] < 1) ? " *" : "")
}

FNR == 1 {
	count = split(FILENAME, path, "/")
	split(path[count], name, ".")
	turn = name[2]
	side = name[3]
	for (i = 1; i <= NF; i++)
		titles[i] = $i
	next
}

{
	row = name[1]
	for (i = 1; i <= NF; i++) {
		if (titles[i] ~ /^(contender|measure)$/)
			row = row " " $i
		else if (titles[i] == "value")
			note(row, $i)
	}
}

END {
	printf "%-46s %11s %11s %7s  %s\n", "", "base", "now", "better", "worst to best turn"
	for (i = 1; i <= row_count; i++)
		compare(rows[i])
}
