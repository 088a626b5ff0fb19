/* SPDX-License-Identifier: MIT */
#include "format.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct text format_count(int64_t count)
{
	struct text plain, grouped;
	size_t length, written = 0;

	snprintf(plain.characters, sizeof(plain.characters), "%" PRId64, count);
	length = strlen(plain.characters);
	for (size_t i = 0; i < length; i++) {
		grouped.characters[written++] = plain.characters[i];
		if (plain.characters[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
			grouped.characters[written++] = ',';
	}
	grouped.characters[written] = '\0';
	return grouped;
}

/* Formats `number` with three digits and `unit`, a whole number without a point. */
static struct text format_scaled(double number, const char *unit)
{
	double size = number < 0 ? -number : number;
	int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
	bool whole = number == (double)(int64_t)number;
	struct text text;

	snprintf(text.characters, sizeof(text.characters), "%.*f %s", whole ? 0 : decimals, number,
		 unit);
	return text;
}

struct text format_duration(int64_t nanoseconds)
{
	double size = nanoseconds < 0 ? -(double)nanoseconds : (double)nanoseconds;
	struct text text;

	if (size >= 999.5e6)
		return format_scaled((double)nanoseconds / 1e9, "s");
	if (size >= 999.5e3)
		return format_scaled((double)nanoseconds / 1e6, "ms");
	if (size >= 999.5)
		return format_scaled((double)nanoseconds / 1e3, "us");
	snprintf(text.characters, sizeof(text.characters), "%" PRId64 " ns", nanoseconds);
	return text;
}

struct text format_bytes(int64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
	double number = (double)bytes / 1024;
	size_t unit = 0;
	struct text text;

	if (bytes < 1024 && bytes > -1024) {
		snprintf(text.characters, sizeof(text.characters), "%" PRId64 " B", bytes);
		return text;
	}
	while ((number >= 1023.5 || number <= -1023.5) && unit < 3) {
		number /= 1024;
		unit++;
	}
	return format_scaled(number, units[unit]);
}

struct text format_rate(double per_second)
{
	if (per_second >= 99999.5)
		return format_scaled(per_second / 1e6, "million");
	return format_count((int64_t)(per_second + 0.5));
}
