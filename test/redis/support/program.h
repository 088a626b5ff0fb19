/* SPDX-License-Identifier: MIT */
/* program.h runs build/twr as a process. A failure ends the program. */
#ifndef REDIS_SUPPORT_PROGRAM_H
#define REDIS_SUPPORT_PROGRAM_H

#include <stdbool.h>

#include <sys/types.h>

struct program {
	pid_t pid;     /* 0 once it has been reaped */
	int output;    /* a file in memory with both its streams */
	int exit_code; /* 128 + signal if a signal ended it; 0 while it runs */
	char *text;    /* the last result of program_text() */
};

/*
 * Starts it with the arguments, which NULL ends. TWR_URL, TWR_NAMESPACE and TWR_PASSWORD are the
 * url, the namespace and the password; NULL leaves one unset. It is killed when the test ends.
 */
struct program_environment {
	const char *program; /* in the build's folder; NULL means twr */
	const char *url;
	const char *name_space;
	const char *password;
};

void program_start(struct program *program, const struct program_environment *environment,
		   const char *const *arguments);
/* Waits up to a minute for its end. Returns its exit code. */
int program_wait(struct program *program);
/* Returns its output so far; valid until the next call. */
const char *program_text(struct program *program);
/* Waits until it has written the text, has ended, or half a minute is over. Returns whether it has
 * written the text. */
int program_wait_text(struct program *program, const char *text);
/* Kills it if it still runs, and frees its output. */
void program_end(struct program *program);

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
