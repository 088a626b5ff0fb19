/* SPDX-License-Identifier: MIT */
/*
 * A driver of bench-peers gives a library's cache to the questions of caches.c. Keys have 16 bytes,
 * values 64. A line "peer,question,threads,value,unit" is printed for each answer.
 */
#ifndef BENCH_PEERS_CACHES_H
#define BENCH_PEERS_CACHES_H

#include "support/keys.h"

#include <stdbool.h>
#include <stdint.h>

struct cached {
	uint64_t words[8];
};

struct caches_peer {
	const char *name;
	/* Creates a cache for at most `limit` entries, 0 for no limit. The process ends with it. */
	void *(*open)(uint64_t limit);
	void (*set)(void *cache, const struct random_key *key, const struct cached *value);
	/* Returns whether the key is there, and copies its value. */
	bool (*get)(void *cache, const struct random_key *key, struct cached *value);
	/* Gets the value, or loads it by caches_load(). Returns whether it was there. NULL if the
	 * library has no such call. */
	bool (*take)(void *cache, const struct random_key *key, struct cached *value);
	/* Sets an entry that expires after `lifetime` ns; NULL if entries don't expire. */
	void (*set_for)(void *cache, const struct random_key *key, const struct cached *value,
			int64_t lifetime);
};

/* Loads a value of the source, at once. */
struct cached caches_load(const struct random_key *key);

/* Asks about `count` keys, main's argument. Returns main's status: 1 if a question failed. */
int caches_ask(const struct caches_peer *peer, const char *count);

#endif
