/* SPDX-License-Identifier: MIT */
/* A source that a cache loads from, and threads that take from it, for tests of tw_cache_take. */
#ifndef SUPPORT_CACHE_SOURCE_H
#define SUPPORT_CACHE_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cache_recorder.h"
#include "gate.h"

/* What the loader gives and does. */
struct source {
	const char *value; /* NULL: none is given */
	enum tw_status status;
	tw_duration expire;
	/* If `gated`, the loader says that it has begun and waits until it may go on. */
	bool gated;
	struct gate gate;
	bool dies;
	/* These are for tests' own loaders. */
	struct tw_cache *cache;
	tw_duration wait;
	atomic_int loads;
};

void source_open(struct source *source, const char *value);
/* The loader; its argument is the source. */
enum tw_status source_load(void *source, const void *key, size_t key_size,
			   struct tw_cache_loading *loading);

/* tw_cache_take from the source. Any thread. */
enum tw_status take(struct cache_recorder *recorder, const char *key, struct source *source,
		    tw_duration wait, const struct tw_cache_entry **entry);

/* The take gives this value; its pin is given back. */
#define assert_taken(recorder, key, source, value) \
	assert_taken_(recorder, key, source, value, __FILE__, __LINE__)
void assert_taken_(struct cache_recorder *recorder, const char *key, struct source *source,
		   const char *value, const char *file, int line);
/* The take fails like this. */
#define assert_not_taken(recorder, key, source, status) \
	assert_not_taken_(recorder, key, source, status, __FILE__, __LINE__)
void assert_not_taken_(struct cache_recorder *recorder, const char *key, struct source *source,
		       enum tw_status expected, const char *file, int line);

enum { TAKERS = 20 };

struct taker {
	pthread_t thread;
	struct cache_recorder *recorder;
	const char *key;
	struct source *source;
	tw_duration wait;
	enum tw_status status;
	const struct tw_cache_entry *entry;
};

void taker_start(struct taker *taker, struct cache_recorder *recorder, const char *key,
		 struct source *source, tw_duration wait);
/* One that has begun to load and now waits at the gate. */
void taker_start_load(struct taker *taker, struct cache_recorder *recorder, const char *key,
		      struct source *source);
/* TAKERS of them, who wait for the load that runs. */
void start_waiters(struct taker *takers, struct cache_recorder *recorder, const char *key,
		   struct source *source);

/* A load that has begun and waits at the gate, and TAKERS who wait for it. */
struct load {
	struct source source;
	struct taker first;
	struct taker others[TAKERS];
};

/* The source has been opened. */
void load_start(struct load *load, struct cache_recorder *recorder, const char *key);
/* Opens the gate; all end alike. */
#define assert_load_ends(load, status, value) \
	assert_load_ends_(load, status, value, __FILE__, __LINE__)
void assert_load_ends_(struct load *load, enum tw_status status, const char *value,
		       const char *file, int line);

/* Waits for its end; on TW_OK it has this value. */
#define assert_taker_ends(taker, status, value) \
	assert_taker_ends_(taker, status, value, __FILE__, __LINE__)
void assert_taker_ends_(struct taker *taker, enum tw_status status, const char *value,
			const char *file, int line);
/* All TAKERS. */
#define assert_takers_end(takers, status, value) \
	assert_takers_end_(takers, status, value, __FILE__, __LINE__)
void assert_takers_end_(struct taker *takers, enum tw_status status, const char *value,
			const char *file, int line);

#endif
