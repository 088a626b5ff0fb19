# SPDX-License-Identifier: MIT
#
# Sums up callgrind's dumps, each with the cost of one operation, and divides by its count. The first
# file has the addresses of locked instructions and system calls, as text: mawk reads no
# hexadecimal numbers.

FILENAME == ARGV[1] { kind[$1] = $2; next }

FNR == 1 { name = ""; is_call = 0 }

/^desc: Trigger: Client Request: / {
	split($5, parts, "/")
	name = parts[1]
	count = parts[2]
}

/^events:/ {
	for (i = 2; i <= NF; i++)
		column[$i] = i
}

# The line behind "calls=" has what was called cost, which is counted there.
/^calls=/ { is_call = 1; next }

/^0x/ {
	if (!is_call && $1 in kind)
		sum[name, kind[$1]] += $3
	is_call = 0
}

/^summary:/ && name != "" {
	if (!(name in times))
		order[++names] = name
	times[name] += count
	instructions[name] += $(column["Ir"])
	d1[name] += $(column["D1mr"]) + $(column["D1mw"])
	ll[name] += $(column["DLmr"]) + $(column["DLmw"])
}

END {
	for (i = 1; i <= names; i++) {
		name = order[i]
		printf "%-28s %9.1f %6.1f %6.1f %7.2f %7.2f\n", name,
			instructions[name] / times[name], d1[name] / times[name],
			ll[name] / times[name], sum[name, "locked"] / times[name],
			sum[name, "call"] / times[name]
	}
}
