/* SPDX-License-Identifier: MIT */
/*
 * These are the queues that bench/queues.c compares, behind one set of calls. All are first in,
 * first out for each producer, hold about the same number of commands, and let a producer sleep
 * while there is no room.
 */
#ifndef BENCH_SUPPORT_QUEUE_DESIGNS_H
#define BENCH_SUPPORT_QUEUE_DESIGNS_H

#include "runtime/command_queue.h"

#include <stddef.h>

enum {
	QUEUE_PRODUCERS = 64, /* at most */
	QUEUE_BATCH = 64,     /* at most in one peek */
	/* This is the minimum: with shared nodes a producer needs room for two commands. */
	QUEUE_CAPACITY = QUEUE_PRODUCERS * 2
};

struct queue_design {
	const char *name;  /* in CSV files */
	const char *title; /* in tables */
	/* Creates a queue. `capacity` is a power of two. Ends the program when memory is out. */
	void *(*create)(size_t capacity, size_t producers);
	void (*destroy)(void *queue);
	/* Pushes a command, whose hash is the producer's number. Producers call it. */
	void (*push)(void *queue, const struct command *command);
	/* Returns the number of next commands, up to QUEUE_BATCH. The consumer calls it. */
	size_t (*peek)(void *queue, const struct command **commands);
	/* Frees `count` commands of the last peek, at least one. The consumer calls it. */
	void (*pop)(void *queue, size_t count);
	/* Returns the failed claims of a producer, or is NULL for designs without. */
	uint64_t (*retries)(void);
};

/* A NULL name ends the list. */
extern const struct queue_design queue_designs[];
/* The others are compared with this one. */
extern const struct queue_design *const queue_baseline;

#endif
