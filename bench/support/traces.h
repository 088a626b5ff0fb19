/* SPDX-License-Identifier: MIT */
/*
 * A trace is a list of accesses to keys, which is replayed through a cache. A folder has the keys
 * of a trace in NAME.u32, as little-endian 32-bit numbers, and may have the sizes of their values
 * in NAME.size, one for each access. Either may be compressed, as NAME.u32.xz. All functions end
 * the program when something fails.
 */
#ifndef BENCH_SUPPORT_TRACES_H
#define BENCH_SUPPORT_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace {
	char name[64];
	size_t length;   /* accesses */
	uint32_t keys;   /* distinct ones */
	uint32_t *key;   /* one per access; keys are numbered from 0 as they first appear */
	uint32_t *size;  /* one per access, at least 1; NULL if the trace has no sizes */
	uint64_t weight; /* the sum of each key's last size */
};

/* Returns the number of traces in a folder, and their names in *names, sorted. */
size_t traces_find(const char *folder, char ***names);

/* Reads a trace of a folder. */
struct trace *trace_read(const char *folder, const char *name);

/* Makes a trace of `key`, which it takes over. With `has_sizes` each key has a size of 16 to 4,096
 * that follows from its number. */
struct trace *trace_make(const char *name, uint32_t *key, size_t length, bool has_sizes);

void trace_destroy(struct trace *trace);

#endif
