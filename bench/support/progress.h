/* SPDX-License-Identifier: MIT */
/*
 * Progress shows how far a long run is: on a terminal one line that is overwritten, in a pipe or
 * file plain lines, once a second. Only one thread may call.
 */
#ifndef BENCH_SUPPORT_PROGRESS_H
#define BENCH_SUPPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	FILE *stream;
	bool quiet;
	int columns;      /* 0 without a terminal */
	int64_t interval; /* nanoseconds between two lines */
	int64_t next;
};

struct progress progress_start(FILE *stream, bool quiet);

/* Returns whether it is time for another line; ask before composing it. */
bool progress_is_due(struct progress *progress);

/* Shows a line, with printf's arguments and no newline, cut to a terminal's width. */
__attribute__((format(printf, 2, 3))) void progress_show(struct progress *progress,
							 const char *format, ...);

/* Erases the line on a terminal. */
void progress_wipe(struct progress *progress);

#endif
