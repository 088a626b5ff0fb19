/* SPDX-License-Identifier: MIT */
/*
 * What a case of a cache consists of, and what is known of its values: for cache_world.c, which has
 * the keys that are written and looked up, and cache_loads.c, which has those that are loaded.
 */
#ifndef SIM_CACHE_WORLD_H
#define SIM_CACHE_WORLD_H

#include "world.h"

#include <timingwheel/cache.h>

#include "base/clock.h"
#include "caller.h"

enum {
	USERS_MOST = 4,
	KEYS_A_USER = 3,
	LOADED_KEYS = 3,
	KEYS = USERS_MOST * KEYS_A_USER + LOADED_KEYS,
	FIRST_LOADED = USERS_MOST * KEYS_A_USER,
	VALUES_MOST = 2048,
	PINS_A_USER = 4,
	ITEMS_MOST = 5, /* of a call with many keys */
	NAME_SIZE = 64,
	LONGEST = 1500
};

enum fate {
	OFFERED, /* by a set or a load that is not over, or by a load that was: kept or not */
	ACCEPTED,
	REFUSED,
	DROPPED /* taken over by a load that failed, or was given another: nobody finds it */
};

struct value {
	unsigned key;
	size_t size;
	enum fate fate;
	bool is_adopted;
	bool is_loaded;
	bool is_popped;
	uint64_t write; /* number of the write, of its key; of one that is loaded 0 */
	uint64_t began; /* when its set or load began, in events */
	uint64_t over;  /* when that was over, at the latest; 0: not known */
	/* Clears that were over before it was set, and deletes and touches of its key. */
	uint64_t clears;
	uint64_t deletes;
	uint64_t key_touches;
	tw_duration low; /* its deadline */
	tw_duration high;
	tw_duration life; /* of one that is loaded */
	uint64_t touches;
	unsigned pins;
	unsigned told;
	unsigned freed;
	unsigned char memory[LONGEST]; /* of one that is adopted */
};

/* How the last load of a key has ended. */
enum outcome { NOT_YET, LOADED, FAILED, ABSENT };

struct key {
	/* Of its one writer. */
	uint64_t writes_begun;
	uint64_t writes_over;  /* the number of the last that is */
	struct value *current; /* NULL: deleted, as far as its writer knows */
	uint64_t touches_begun;
	uint64_t touches_over;
	uint64_t changed; /* when the last one began of those sets and deletes that are over */
	uint64_t deletes_begun;
	uint64_t deletes_over;
	/* When the load began whose value was found, the last one so found. */
	uint64_t seen;
	/* Of its loads. */
	bool is_loading;
	enum outcome outcome;
	uint64_t load_began;
	uint64_t loaded; /* when the last one began of those that are over, or about to be */
	unsigned failures;
	unsigned absences;
};

/* What a reader knows before it looks. */
struct look {
	unsigned key;
	uint64_t event;
	uint64_t writes_over;
	uint64_t writes_begun;
	uint64_t gone; /* no value is there whose set was over by then, or whose load had begun */
	uint64_t seen;
	struct value *current;
	uint64_t touches;    /* of that */
	unsigned own_writes; /* that the looker has begun since then */
	unsigned failures;
	unsigned absences;
	enum outcome outcome;
	tw_duration now;
};

struct user {
	struct caller caller;
	const struct tw_cache_entry *pins[PINS_A_USER];
	/* Of the take that is under way. */
	struct user *outer; /* the next one that takes */
	pthread_t taker;
	const char *call;
	const struct look *looks; /* of the keys it takes */
	unsigned look_count;
	struct value *loaded[ITEMS_MOST];
	unsigned loaded_count;
	bool is_guest; /* called from a loader or a callback */
};

extern struct world {
	struct tw_cache *cache;
	struct tw_cache_options options;
	struct tw_wheel *wheel; /* NULL: the cache's own */
	struct tw_options wheel_options;
	tw_duration interval;
	tw_duration expire;
	bool is_manual;
	bool has_limits;
	bool writes_much;
	bool loads_all; /* keys that are written, too */
	bool loads_much;
	bool is_ending;
	bool is_over;    /* tw_cache_destroy has returned */
	bool stop_begun; /* of the cache, by tw_cache_stop */
	bool is_stopped; /* that has returned */
	bool wheel_is_stopped;
	bool in_listener;
	bool ends_threads; /* a user is cancelled, or ends in its loader */
	unsigned users;
	unsigned calls;
	unsigned sleeping; /* listeners and loaders */
	uint64_t events;
	uint64_t clears_begun;
	uint64_t clears_over;
	uint64_t cleared; /* when the last one began of those that are over */
	/* For the statistics. */
	uint64_t asked;
	uint64_t told; /* calls of on_remove */
	struct user user[USERS_MOST];
	struct key key[KEYS];
	unsigned values;
} world;

extern struct value values[VALUES_MOST];

tw_duration now_here(void);
void check_stopped(bool was_stopped, const char *call, enum tw_status status);
/* In nanoseconds, at most. */
void sleep_for(tw_duration most);
tw_duration draw_lifetime(void);

#define CALL(user, expression)                                                     \
	__extension__({                                                            \
		bool was_stopped = world.is_stopped;                               \
		enum tw_status answer = CALLER_CALLS(&(user)->caller, expression); \
		check_stopped(was_stopped, #expression, answer);                   \
		answer;                                                            \
	})

size_t key_name(unsigned key, char *name);
/* NULL: there are too many. */
struct value *value_new(unsigned key);
struct value *value_of_entry(const struct tw_cache_entry *entry);
int value_number(const struct value *value);
/* As the cache frees an adopted value. */
void free_value(void *memory, size_t size, void *context);

struct look look_begin(unsigned number);
/* The value may be told to the reader, whether it may still be read or not. */
void check_known(const struct look *look, const struct value *value);
void check_not_found(const struct look *look);

void user_delete(struct user *user, unsigned number);
void user_get(struct user *user, unsigned number);
void user_pin(struct user *user, const struct tw_cache_entry *entry);
void user_unpin_all(struct user *user);

#endif
