/* SPDX-License-Identifier: MIT */
/*
 * A driver of bench-peers gives a library's timers to the questions of timers.c. Timers are numbers
 * from 0 on. A line "peer,question,threads,value,unit" is printed for each answer.
 */
#ifndef BENCH_PEERS_TIMERS_H
#define BENCH_PEERS_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a call for a timer, whose delay is in milliseconds. */
typedef void timers_call(size_t i, int64_t delay);

struct timers_peer {
	const char *name;
	bool has_producers; /* several threads may call at the same time */
	/* Prepares timers, for calls of one thread or of several. The process ends with them. */
	void (*open)(size_t count, bool many);
	timers_call *start;
	timers_call *restart; /* a pending timer */
	timers_call *cancel;  /* a pending timer; the delay means nothing */
	/* Returns when all calls have been applied; NULL where they are at once. */
	void (*settle)(void);
	/* Reads the clock that delays count from; NULL where a start does. */
	void (*look)(void);
	/* Lets timers run in the calling thread, or waits while another runs them. */
	void (*turn)(void);
};

/* The driver calls this when a timer runs. */
void timers_ran(size_t i);

/* Asks about `count` timers, main's argument. Returns main's status: 1 if a question failed. */
int timers_ask(const struct timers_peer *peer, const char *count);

#ifdef __cplusplus
}
#endif

#endif
