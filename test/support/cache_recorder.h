/* SPDX-License-Identifier: MIT */
/*
 * The recorder has a cache on a wheel with a manual clock, and records removals for the main thread
 * to read. The variants are those of recorder.h.
 */
#ifndef SUPPORT_CACHE_RECORDER_H
#define SUPPORT_CACHE_RECORDER_H

#include <pthread.h>
#include <stddef.h>

#include <timingwheel/cache.h>

#include "recorder.h"

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
	const struct variant *variant;
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	/* This is called after recording. */
	void (*on_remove)(struct cache_recorder *, const struct tw_cache_entry *,
			  enum tw_cache_cause);
	void *argument; /* for that function */

	atomic_bool is_over; /* the case has returned: on_remove is not called */
	struct journal removals;
};

/* Creates a recorder with a wheel of INTERVAL ticks and no cache. */
struct cache_recorder *cache_recorder_create(const struct variant *variant);
/* Creates a recorder with another tick and as many slots, and `more` options. */
struct cache_recorder *cache_recorder_create_with(const struct variant *variant,
						  tw_duration interval, size_t slots,
						  struct tw_options more);
/* Returns the options with the recorder's wheel and listener and no jitter, for changes before
 * cache_recorder_start. */
struct tw_cache_options cache_recorder_options(struct cache_recorder *recorder);
/* Creates the cache; the test fails if that fails. */
void cache_recorder_start(struct cache_recorder *recorder, tw_duration expire,
			  const struct tw_cache_options *options);
/* Does the three above at once. */
struct cache_recorder *cache_recorder_open(const struct variant *variant, tw_duration expire);
/* Opens a recorder with `more` options. */
struct cache_recorder *cache_recorder_open_with(const struct variant *variant, tw_duration expire,
						struct tw_cache_options more);
/* Opens a recorder with `more` options and no listener: no removal is recorded. */
struct cache_recorder *cache_recorder_open_quiet(const struct variant *variant, tw_duration expire,
						 struct tw_cache_options more);
/* Destroys the recorder, its wheel, and its cache if there is one, whose counts must agree. */
void cache_recorder_close(struct cache_recorder *recorder);

/* CACHED(kind, name, TW_HOUR, .max_entries = 5) { ... } is a case with an open cache `recorder`
 * whose entries live that long, and with these options, or none; CACHED_QUIET() one without a
 * listener; CACHED_BY() one that the expression `open` opens for the variant *state. It is closed
 * when the case has returned: by then no call or function may use a variable of the case. */
#define CACHED(kind, name, expire, ...) \
	CACHED_BY(                      \
		kind, name,             \
		cache_recorder_open_with(*state, expire, (struct tw_cache_options){__VA_ARGS__}))
#define CACHED_QUIET(kind, name, expire, ...) \
	CACHED_BY(                            \
		kind, name,                   \
		cache_recorder_open_quiet(*state, expire, (struct tw_cache_options){__VA_ARGS__}))
#define CACHED_BY(kind, name, open) \
	TEST_GIVEN(kind, name, struct cache_recorder *recorder, cache_recorder_give(open, name))
void cache_recorder_give(struct cache_recorder *recorder, void (*run)(struct cache_recorder *));

/* Returns the default weight of an entry: its cell, and its share of the table. */
uint64_t cache_weight(size_t key_size, size_t value_size);

/* This is for tw_cache_options. */
void record_removal(void *recorder, const struct tw_cache_entry *entry, enum tw_cache_cause cause);

/* These calls must succeed. They take strings, which are stored without their zero byte. Only the
 * main thread may call them. */
void cache_set(struct cache_recorder *recorder, const char *key, const char *value);
/* Sets each letter as a key with itself as value. */
void cache_set_letters(struct cache_recorder *recorder, const char *letters);
void cache_set_for(struct cache_recorder *recorder, const char *key, const char *value,
		   tw_duration expire);
enum tw_status cache_get(struct cache_recorder *recorder, const char *key);
const struct tw_cache_entry *cache_pinned(struct cache_recorder *recorder, const char *key);
struct tw_cache_stats cache_stats(struct cache_recorder *recorder);

/* Moves the clock. */
void cache_advance(struct cache_recorder *recorder, tw_duration by);
/* Moves the clock, and waits for the tasks and for tasks that those set. */
void cache_pass(struct cache_recorder *recorder, tw_duration by);
/* Calls tw_cache_flush, and checks the cache. */
void cache_settle(struct cache_recorder *recorder);

size_t removal_count(struct cache_recorder *recorder);
size_t removal_count_of(struct cache_recorder *recorder, enum tw_cache_cause cause);
struct removal removal_at(struct cache_recorder *recorder, size_t index);
/* Returns how often an entry with this value was removed. */
size_t times_removed(struct cache_recorder *recorder, const char *value);

/* Checks that the key has this value, or none that may be read. */
#define assert_holds(recorder, key, value) \
	assert_holds_((recorder)->cache, key, value, __FILE__, __LINE__)
void assert_holds_(struct tw_cache *cache, const char *key, const char *value, const char *file,
		   int line);
#define assert_holds_none(recorder, key) assert_status(cache_get(recorder, key), TW_NOT_FOUND)
/* Checks that the key has this value until `time` has passed, and then none. */
#define assert_lives_for(recorder, key, value, time) \
	assert_lives_for_(recorder, key, value, time, __FILE__, __LINE__)
void assert_lives_for_(struct cache_recorder *recorder, const char *key, const char *value,
		       tw_duration time, const char *file, int line);
/* Checks that an entry with this value was removed once, for this cause. */
#define assert_removed(recorder, value, cause) \
	assert_removed_(recorder, value, cause, __FILE__, __LINE__)
void assert_removed_(struct cache_recorder *recorder, const char *value, enum tw_cache_cause cause,
		     const char *file, int line);
/* Checks that the entry has this value. */
#define assert_value(entry, value) assert_value_(entry, value, __FILE__, __LINE__)
void assert_value_(const struct tw_cache_entry *entry, const char *value, const char *file,
		   int line);
/* Checks that each added entry is still there or was removed for one cause, at rest. */
#define assert_balanced(cache) assert_balanced_(cache, __FILE__, __LINE__)
void assert_balanced_(struct tw_cache *cache, const char *file, int line);

#endif
