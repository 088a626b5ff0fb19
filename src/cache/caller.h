/* SPDX-License-Identifier: MIT */
/*
 * A caller is one thread's part of a cache: its counts, which no other thread writes. Threads have
 * numbers, the least that are free, so a cache has as many callers as threads that run at once.
 */
#ifndef CACHE_CALLER_H
#define CACHE_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"

/* A thread has these counts, which tw_cache_get_stats() sums up. */
enum caller_count {
	COUNT_HITS,
	COUNT_MISSES,
	COUNT_ABSENT,
	COUNT_LOADS,
	COUNT_REFRESHES,
	COUNT_LOAD_ERRORS,
	COUNT_LOAD_WAITS,
	COUNT_WAIT_TIMEOUTS,
	COUNT_STALE,
	CALLER_COUNTS
};

/* A caller is alone on its lines. It outlives its thread: the next one with the number goes on. */
struct caller {
	_Alignas(128) _Atomic uint64_t counts[CALLER_COUNTS]; /* read by any thread */
	uint64_t random;                                      /* 0 if not begun (change.c) */
	unsigned callbacks; /* functions of the program that the cache calls now */
};

/* Row k of a cache has CALLER_ROW << k callers, and exists once one of its numbers is used. */
enum { CALLER_ROW = 16, CALLER_ROWS = 13 };

struct callers {
	uint64_t id; /* never used again in this process; constant */
	_Atomic(struct caller *) rows[CALLER_ROWS];
};

/* A caller memo has a thread's caller of the cache that it used last. */
struct caller_memo {
	uint64_t id;
	struct caller *caller;
};

extern _Thread_local struct caller_memo caller_memo __attribute__((tls_model("initial-exec")));
/* The id of the callers in whose tw_cache_compute the thread calls a function, or 0. That function
 * has no caller there: its calls would wait for the lock that it runs under. */
extern _Thread_local uint64_t caller_computes __attribute__((tls_model("initial-exec")));

/* Initializes the callers. Returns false if the system has no thread-specific data left. */
bool callers_init(struct callers *callers);
void callers_destroy(struct callers *callers);
struct caller *callers_seek(struct callers *callers);
/* Adds up the counts of all threads, also of ended ones. Returns the bytes that callers take. */
size_t callers_sum(const struct callers *callers, uint64_t sums[CALLER_COUNTS]);

/* Returns the calling thread's caller, or NULL if it computes or is out of memory. */
static inline struct caller *callers_find(struct callers *callers)
{
	return __builtin_expect(caller_memo.id == callers->id, 1) ? caller_memo.caller
								  : callers_seek(callers);
}

static inline void caller_count(struct caller *caller, enum caller_count count, uint64_t more)
{
	counter_add(&caller->counts[count], more);
}

#endif
