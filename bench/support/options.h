/* SPDX-License-Identifier: MIT */
/*
 * This parses a bench's command line: --name=value, --name value, flags; --help is written from the
 * table.
 *
 *     int64_t count = 1000000;
 *     const struct program_option options[] = {
 *         {"count", OPTION_COUNT, &count, .least = 1, .most = 100000000, .help = "timers"},
 *         {0},
 *     };
 *     options_parse(argc, argv, "What does it answer?", options);
 *
 * An error is reported on stderr, in a line that names the option, and ends the program with 2.
 */
#ifndef BENCH_SUPPORT_OPTIONS_H
#define BENCH_SUPPORT_OPTIONS_H

#include <stdint.h>

enum option_kind {
	OPTION_COUNT,    /* int64_t: 250000, 250k, 1m, 2g */
	OPTION_DURATION, /* int64_t nanoseconds: 500us, 1ms, 10s, 1h */
	OPTION_SECONDS,  /* int64_t nanoseconds, where a bare number is seconds */
	OPTION_CHOICE,   /* int: the position of the word in `choices` */
	OPTION_TEXT,     /* const char *: a file's path */
	OPTION_FLAG      /* bool, no value */
};

struct program_option {
	const char *name; /* without the dashes; NULL ends the table */
	enum option_kind kind;
	void *target;  /* holds the default */
	int64_t least; /* bounds of a number */
	int64_t most;
	const char *choices; /* "levels,rounds" */
	const char *help;
};

void options_parse(int argc, char **argv, const char *question,
		   const struct program_option *options);

/* Prints what is wrong with the command line and ends the program with 2, like printf. */
__attribute__((format(printf, 1, 2), noreturn)) void options_refuse(const char *format, ...);

#endif
