/* SPDX-License-Identifier: MIT */
/*
 * A cache on a wheel with the manual clock, whose removals are written down for the main thread to
 * look at. The variants are those of recorder.h.
 */
#ifndef SUPPORT_CACHE_RECORDER_H
#define SUPPORT_CACHE_RECORDER_H

#include <pthread.h>
#include <stddef.h>

#include <timingwheel/cache.h>

#include "recorder.h"

/* Entries of a cmocka test table: where the calling thread does all, and with all threads. */
#define TEST_CACHE(test) TEST_IN(levels_inline, test), TEST_IN(levels_threads, test)

struct removal {
	enum tw_cache_cause cause;
	size_t key_size;
	size_t value_size;
	unsigned char key[32]; /* the first bytes of both */
	unsigned char value[32];
	tw_duration deadline;
	tw_duration now; /* tw_now during the call */
};

struct cache_recorder {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	/* Called after recording. */
	void (*on_remove)(struct cache_recorder *, const struct tw_cache_entry *,
			  enum tw_cache_cause);
	void *argument; /* for that */

	struct journal removals;
};

/* With a wheel of INTERVAL ticks, and no cache yet. */
struct cache_recorder *cache_recorder_create(const struct variant *variant);
/* The same with another tick and as many slots, and what `more` says beyond the variant. */
struct cache_recorder *cache_recorder_create_with(const struct variant *variant,
						  tw_duration interval, size_t slots,
						  struct tw_options more);
/* The recorder's wheel and listener, no jitter; tests change them before cache_recorder_start. */
struct tw_cache_options cache_recorder_options(struct cache_recorder *recorder);
/* Makes the cache; the test fails if that fails. */
void cache_recorder_start(struct cache_recorder *recorder, tw_duration expire,
			  const struct tw_cache_options *options);
/* The three above at once. */
/* What an entry weighs where nothing else is said: its cell, and its share of the table. */
uint64_t cache_weight(size_t key_size, size_t value_size);
struct cache_recorder *cache_recorder_open(const struct variant *variant, tw_duration expire);
/* The same, and what `more` says holds too. */
struct cache_recorder *cache_recorder_open_with(const struct variant *variant, tw_duration expire,
						struct tw_cache_options more);
/* That without the listener: no removal is written down. */
struct cache_recorder *cache_recorder_open_quiet(const struct variant *variant, tw_duration expire,
						 struct tw_cache_options more);
/* Destroys the cache if there is one still, the wheel and the recorder. */
void cache_recorder_close(struct cache_recorder *recorder);
/* The same of one whose cache is at rest, and whose counts must add up. */
void cache_recorder_close_balanced(struct cache_recorder *recorder);

/* For tw_cache_options. */
void record_removal(void *recorder, const struct tw_cache_entry *entry, enum tw_cache_cause cause);

/* Calls that must succeed, with strings, which are stored without their zero byte. Main thread. */
void cache_set(struct cache_recorder *recorder, const char *key, const char *value);
/* Each letter is a key and its value. */
void cache_set_letters(struct cache_recorder *recorder, const char *letters);
void cache_set_for(struct cache_recorder *recorder, const char *key, const char *value,
		   tw_duration expire);
enum tw_status cache_get(struct cache_recorder *recorder, const char *key);
const struct tw_cache_entry *cache_pinned(struct cache_recorder *recorder, const char *key);
struct tw_cache_stats cache_stats(struct cache_recorder *recorder);

/* Moves the clock, and waits for the tasks and for theirs. */
void cache_pass(struct cache_recorder *recorder, tw_duration by);
/* tw_cache_flush. */
void cache_settle(struct cache_recorder *recorder);

size_t removal_count(struct cache_recorder *recorder);
size_t removal_count_of(struct cache_recorder *recorder, enum tw_cache_cause cause);
struct removal removal_at(struct cache_recorder *recorder, size_t index);
/* How often an entry with this value has left. */
size_t times_removed(struct cache_recorder *recorder, const char *value);

/* The key has this value, or none that may be read. */
#define assert_holds(recorder, key, value) \
	assert_holds_((recorder)->cache, key, value, __FILE__, __LINE__)
void assert_holds_(struct tw_cache *cache, const char *key, const char *value, const char *file,
		   int line);
#define assert_holds_none(recorder, key) assert_status(cache_get(recorder, key), TW_NOT_FOUND)
/* The key has this value until so much time has passed, and then none. */
#define assert_lives_for(recorder, key, value, time) \
	assert_lives_for_(recorder, key, value, time, __FILE__, __LINE__)
void assert_lives_for_(struct cache_recorder *recorder, const char *key, const char *value,
		       tw_duration time, const char *file, int line);
/* An entry with this value has left, once, for this cause. */
#define assert_removed(recorder, value, cause) \
	assert_removed_(recorder, value, cause, __FILE__, __LINE__)
void assert_removed_(struct cache_recorder *recorder, const char *value, enum tw_cache_cause cause,
		     const char *file, int line);
/* The entry has this value. */
#define assert_value(entry, value) assert_value_(entry, value, __FILE__, __LINE__)
void assert_value_(const struct tw_cache_entry *entry, const char *value, const char *file,
		   int line);
/* What came in is there still or has left for one cause. The cache is at rest. */
#define assert_balanced(cache) assert_balanced_(cache, __FILE__, __LINE__)
void assert_balanced_(struct tw_cache *cache, const char *file, int line);

#endif
