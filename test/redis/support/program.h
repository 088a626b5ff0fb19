/* SPDX-License-Identifier: MIT */
/* Runs build/twr as a process of its own. What should not fail ends the program. */
#ifndef REDIS_SUPPORT_PROGRAM_H
#define REDIS_SUPPORT_PROGRAM_H

#include <sys/ioctl.h>
#include <sys/types.h>

struct program {
	pid_t pid;     /* 0: it has ended */
	int output;    /* a file in memory with both its streams */
	int terminal;  /* the other side of its terminal; 0: it has none */
	int exit_code; /* 128 + signal if one ended it; 0 as long as it runs */
	char *text;    /* what program_text answered last */
};

/*
 * Starts it with the arguments, NULL at the end. TWR_URL is the url, TWR_NAMESPACE the name space
 * (NULL: not set), TWR_PASSWORD the password (NULL: not set). It dies when the test does.
 */
struct program_environment {
	const char *program; /* in the build's folder; NULL: twr */
	const char *url;
	const char *name_space;
	const char *password;
	/* NULL: none. Else its streams are a terminal of that size, with what the output has. */
	const struct winsize *terminal;
	const char *standard_output; /* the path of a file for that alone; NULL: none */
};

void program_start(struct program *program, const struct program_environment *environment,
		   const char *const *arguments);
/* Waits for its end, up to a minute; answers its exit code. */
int program_wait(struct program *program);
/* What it has written so far; valid until the next call. */
const char *program_text(struct program *program);
/* Waits until it has written the text, or ended, or half a minute is over. 1: it has written it. */
int program_wait_text(struct program *program, const char *text);
/* Kills it if it still runs, and frees what it wrote. */
void program_end(struct program *program);

/* Runs it to its end; program_end it. Answers the exit code. */
int program_run(struct program *program, const struct program_environment *environment,
		const char *const *arguments);

/* A list of arguments for these calls. */
#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
