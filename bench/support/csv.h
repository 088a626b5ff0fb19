/* SPDX-License-Identifier: MIT */
/* A table for other programs: one header line, then rows. Without a path no call does anything. */
#ifndef BENCH_SUPPORT_CSV_H
#define BENCH_SUPPORT_CSV_H

#include <stdio.h>

struct csv {
	FILE *file; /* NULL: not asked for */
};

/* `path` may be NULL. A file that can't be written is a bad option: ends the program with 2. */
struct csv csv_open(const char *path, const char *header);

/* One row, printf's arguments, no newline. */
__attribute__((format(printf, 2, 3))) void csv_row(struct csv csv, const char *format, ...);

void csv_close(struct csv csv);

#endif
