/* SPDX-License-Identifier: MIT */
/*
 * A trace is a list of accesses to keys, which is replayed through a cache. A folder has the keys
 * of a trace in NAME.u32, as little-endian 32-bit numbers, or compressed in NAME.u32.xz. All
 * functions end the program when something fails.
 */
#ifndef BENCH_SUPPORT_TRACES_H
#define BENCH_SUPPORT_TRACES_H

#include <stddef.h>
#include <stdint.h>

struct trace {
	char name[64];
	size_t length; /* accesses */
	size_t from;   /* hits count from this access on */
	uint32_t keys; /* distinct ones */
	uint32_t *key; /* one per access; keys are numbered from 0 as they first appear */
};

/* Returns the number of traces in a folder, and their names in *names, sorted. */
size_t traces_find(const char *folder, char ***names);

/* Reads a trace of a folder. */
struct trace *trace_read(const char *folder, const char *name);

/* Makes a trace of `key`, which it takes over. Its first half only fills the cache. */
struct trace *trace_make(const char *name, uint32_t *key, size_t length);

void trace_destroy(struct trace *trace);

#endif
