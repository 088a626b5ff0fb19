/* SPDX-License-Identifier: MIT */
/*
 * This program has a cleanup of its own, which runs when its thread is cancelled. Where it is
 * linked statically, the thread also unwinds frames of the C library that have cleanups.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "user.h"

/* clang takes it for granted that fgets() itself never unwinds. */
static char *(*volatile get_line)(char *, int, FILE *) = fgets;
static int freed;

static void free_line(char **line)
{
	free(*line);
	freed++;
}

static void *read_line(void *input)
{
	char *line __attribute__((cleanup(free_line))) = malloc(100);

	(void)!get_line(line, 100, input);
	return NULL;
}

/* Cancels a thread that waits in fgets(). */
static void cancel_reader(void *unused)
{
	int ends[2];
	FILE *input;
	pthread_t thread;
	void *result;

	(void)unused;
	if (pipe(ends) != 0 || !(input = fdopen(ends[0], "r")) ||
	    pthread_create(&thread, NULL, read_line, input) != 0)
		return;
	pthread_cancel(thread);
	if (pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED)
		freed = -1;
}

int main(void)
{
	PROBE(begin);
	return !run_by_timer(cancel_reader) || freed != 1;
}
