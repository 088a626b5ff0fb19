/* SPDX-License-Identifier: MIT */
/*
 * These functions simulate a cache's policies exactly, on a single list of entries. Each replays a
 * trace, in which a miss sets the key, and returns the number of hits.
 */
#ifndef BENCH_SUPPORT_POLICIES_H
#define BENCH_SUPPORT_POLICIES_H

#include "traces.h"

#include <stdbool.h>
#include <stdint.h>

struct replay {
	const struct trace *trace;
	uint64_t limit; /* entries or, by weight, the sum of their sizes */
	bool by_weight; /* the trace has sizes */
};

/* Belady's optimum evicts the entry with the latest next use, or refuses it. Entries only. */
uint64_t simulate_optimum(const struct replay *replay);
uint64_t simulate_lru(const struct replay *replay);
/* CLOCK counts up to three uses of an entry, and each gives it one more round. */
uint64_t simulate_clock(const struct replay *replay);
/* S3-FIFO has a small queue of a tenth, and as many ghosts as nine tenths hold. Two uses move an
 * entry to the main queue. */
uint64_t simulate_s3fifo(const struct replay *replay);
/* ARC counts entries only. */
uint64_t simulate_arc(const struct replay *replay);
/* These are the rules of src/cache/policy.c in one shard, with a list of all ghosts. */
uint64_t simulate_library(const struct replay *replay);

/* Returns the weight of the access, as the limit counts it. */
static inline uint32_t replay_weight(const struct replay *replay, size_t access)
{
	return replay->by_weight ? replay->trace->size[access] : 1;
}

#endif
