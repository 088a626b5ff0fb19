/* SPDX-License-Identifier: MIT */
/* A source is what a cache loads from; takers are threads that take from it. */
#ifndef SUPPORT_CACHE_SOURCE_H
#define SUPPORT_CACHE_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cache_recorder.h"
#include "gate.h"

/* These are the loader's result and actions. */
struct source {
	const char *value; /* NULL for none */
	enum tw_status status;
	tw_duration expire;
	/* If `gated`, the loader reports that it has begun and waits until it may continue. */
	bool gated;
	struct gate gate;
	/* These are for tests' own loaders. */
	struct tw_cache *cache;
	tw_duration wait;
	atomic_int loads;
};

void source_open(struct source *source, const char *value);
/* This is the loader; its argument is the source. */
enum tw_status source_load(void *source, const void *key, size_t key_size,
			   struct tw_cache_loading *loading);

/* SOURCED(kind, name, open, .stale_if_error = 5) { ... } is a case with an open cache `recorder`
 * that loads from `source`. `open` opens both, for a variant and with such options; the cache is
 * closed when the case has returned. */
typedef struct cache_recorder *source_opener(void *state, struct source *source,
					     struct tw_cache_options more);
#define SOURCED(kind, name, open, ...)             \
	TEST_GIVEN(kind, name, SOURCED_PARAMETERS, \
		   source_give(open, *state, (struct tw_cache_options){__VA_ARGS__}, name))
#define SOURCED_PARAMETERS struct cache_recorder *recorder, struct source *source
void source_give(source_opener *open, void *state, struct tw_cache_options more,
		 void (*run)(SOURCED_PARAMETERS));

/* Calls tw_cache_take with the source. Any thread may call it. */
enum tw_status take(struct cache_recorder *recorder, const char *key, struct source *source,
		    tw_duration wait, const struct tw_cache_entry **entry);

/* Checks that the take returns this value, and releases its pin. */
#define assert_taken(recorder, key, source, value) \
	assert_taken_(recorder, key, source, value, __FILE__, __LINE__)
void assert_taken_(struct cache_recorder *recorder, const char *key, struct source *source,
		   const char *value, const char *file, int line);
/* Checks that the take fails with this status. */
#define assert_not_taken(recorder, key, source, status) \
	assert_not_taken_(recorder, key, source, status, __FILE__, __LINE__)
void assert_not_taken_(struct cache_recorder *recorder, const char *key, struct source *source,
		       enum tw_status expected, const char *file, int line);

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
/* Starts a taker, which has begun to load and waits at the gate on return. */
void taker_start_load(struct taker *taker, struct cache_recorder *recorder, const char *key,
		      struct source *source);
/* Waits for its end, and checks the status and, on TW_OK, the value. */
#define assert_taker_ends(taker, status, value) \
	assert_taker_ends_(taker, status, value, __FILE__, __LINE__)
void assert_taker_ends_(struct taker *taker, enum tw_status status, const char *value,
			const char *file, int line);

#endif
