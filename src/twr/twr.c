/* SPDX-License-Identifier: MIT */
/* twr.c is the program: it reads the arguments, connects, and runs one command. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jansson.h>

#include "arguments.h"
#include "outcome.h"
#include "when.h"

typedef int command_run(struct tw_redis *redis, struct arguments *arguments);

#define COMMAND_RUN(enumerator, name, word, help) [COMMAND_##enumerator] = command_##name,
static command_run *const commands[] = {COMMANDS(COMMAND_RUN)};

/* Allocates for jansson, whose parser overruns a buffer that could not grow (its issue 362). */
static void *allocate_or_exit(size_t size)
{
	void *memory = malloc(size);

	if (!memory) {
		fputs("twr: out of memory\n", stderr);
		exit(EXIT_SYSTEM);
	}
	return memory;
}

/* Opens the namespace. Tries for the patience while Redis is unavailable. */
static enum tw_status open_patiently(struct tw_redis **redis,
				     const struct tw_redis_options *options,
				     struct tw_redis_error *error)
{
	tw_duration patience = options->patience ? options->patience : 5 * TW_SECOND;
	tw_duration begun = now_read();
	enum tw_status status;

	while ((status = tw_redis_open(redis, options, error)) == TW_REDIS_UNREACHABLE &&
	       now_read() - begun < patience)
		nanosleep(&(struct timespec){.tv_nsec = 100 * TW_MILLISECOND}, NULL);
	return status;
}

static int run(struct arguments *arguments)
{
	struct tw_redis_error error = {0};
	struct tw_redis *redis;
	enum tw_status status;
	int exit_code;

	if (arguments->command == COMMAND_WORKER) {
		/* It goes on without a reader of its output, and without memory for a page. */
		signal(SIGPIPE, SIG_IGN);
		json_set_alloc_funcs(malloc, free);
		return command_worker(NULL, arguments);
	}
	status = open_patiently(&redis, &arguments->redis, &error);
	if (status != TW_OK)
		return outcome(status, &error);
	exit_code = commands[arguments->command](redis, arguments);
	tw_redis_close(redis);
	return exit_code;
}

int main(int count, char **texts)
{
	struct arguments arguments;
	int exit_code;

	/* A reader that goes away, as head does, ends the program without a word. */
	signal(SIGPIPE, SIG_DFL);
	json_set_alloc_funcs(allocate_or_exit, free);
	exit_code = arguments_read(&arguments, count, texts);
	if (exit_code == EXIT_DONE && !arguments.answered)
		exit_code = run(&arguments);
	arguments_free(&arguments);
	/* A failed write becomes an error of the stream, as earlier ones did. */
	fflush(stdout);
	if (ferror(stdout) && exit_code == EXIT_DONE) {
		fputs("twr: standard output can't be written\n", stderr);
		return EXIT_SYSTEM;
	}
	return exit_code;
}
