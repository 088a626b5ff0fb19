# SPDX-License-Identifier: MIT
#
# Draws the first table of peers.md as SVG: bars of million starts, restarts and cancels a second.

BEGIN {
	FS = " *[|] *"
	split("start restart cancel", calls, " ")
	split("#2a6f97 #61a5c2 #c9ada7", colours, " ")
}

/^\| [0-9,]+ timers/ { inside = 1 }
inside && !NF { inside = 0 }

inside && $3 ~ /^[0-9]/ {
	peers[++count] = $2
	for (k = 1; k <= 3; k++) {
		rates[count, k] = $(k + 2)
		if ($(k + 2) + 0 > most)
			most = $(k + 2)
	}
}

END {
	print "<svg xmlns='http://www.w3.org/2000/svg' width='760' height='" 40 * count + 50 "'",
		"font-family='sans-serif' font-size='12'>"
	print "<rect width='760' height='100%' fill='white'/>"
	print "<text x='170' y='18'>Million calls a second, one thread:</text>"
	for (k = 1; k <= 3; k++)
		printf "<text x='%d' y='18' fill='%s'>%s</text>\n", 330 + 70 * k, colours[k], calls[k]
	for (i = 1; i <= count; i++) {
		y = 40 * i - 10
		printf "<text x='160' y='%d' text-anchor='end'>%s</text>\n", y + 22, peers[i]
		for (k = 1; k <= 3; k++)
			printf "<rect x='170' y='%d' width='%.1f' height='10' fill='%s'/>" \
				"<text x='%.1f' y='%d' font-size='10'>%s</text>\n",
				y + 11 * (k - 1), 530 * rates[i, k] / most, colours[k],
				174 + 530 * rates[i, k] / most, y + 11 * k - 2, rates[i, k]
	}
	print "</svg>"
}
