/* SPDX-License-Identifier: MIT */
/* A CSV file has one header line, then rows. Without a path no call does anything. */
#ifndef BENCH_SUPPORT_CSV_H
#define BENCH_SUPPORT_CSV_H

#include <stdio.h>

struct csv {
	FILE *file; /* NULL without a path */
};

/* Opens the file. `path` may be NULL. Ends the program with 2 if it can't be written. */
struct csv csv_open(const char *path, const char *header);

/* Writes one row, with printf's arguments and no newline. */
__attribute__((format(printf, 2, 3))) void csv_row(struct csv csv, const char *format, ...);

void csv_close(struct csv csv);

#endif
