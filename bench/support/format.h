/* SPDX-License-Identifier: MIT */
/* These functions format numbers for people: format_count(1000000) is 1,000,000. */
#ifndef BENCH_SUPPORT_FORMAT_H
#define BENCH_SUPPORT_FORMAT_H

#include <stdint.h>

struct text {
	char characters[48];
};

struct text format_count(int64_t count);

/* Formats three digits and a unit: "812 ns", "1.23 ms", "10 s". */
struct text format_duration(int64_t nanoseconds);

/* Formats bytes: "812 B", "201 MiB". */
struct text format_bytes(int64_t bytes);

/* Formats commands a second: "0.83 million" or "83,210". */
struct text format_rate(double per_second);

#endif
