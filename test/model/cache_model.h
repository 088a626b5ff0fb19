/* SPDX-License-Identifier: MIT */
/*
 * This models a cache that is used by any number of threads: which value each key may have, until
 * when, how many loads may run, and which removals must be reported with which cause.
 *
 * The model is notified when each call begins and ends. Correct answers follow from the calls that
 * were over before a call began, and those that overlap it: a value is found unless a later change
 * of its key was over by then. A key whose last change overlapped no other is known: then the
 * answer is exact. One thread alone (`is_alone`), for which removals are reported after each call,
 * knows all keys, deadlines, evictions and statistics.
 *
 * cache_calls.c and cache_takes.c make random calls and compare. The program has the host_*
 * functions: cache_trial.c for tests and fuzzers; test/model/sim and test/long/soak have their own.
 * All of this runs in one thread at a time: host_leave() and host_enter() surround each call of the
 * library, and each callback.
 */
#ifndef MODEL_CACHE_MODEL_H
#define MODEL_CACHE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/cache.h>

enum { CACHE_PINS = 4, CACHE_MANY = 6, CACHE_NAME_SIZE = 64, CACHE_ASKS = 256, CACHE_KEPT = 32 };
enum { CACHE_KEYS_MOST = 200, CACHE_SIZE_MOST = 1500 };
enum { LOADER_ERROR = 200 }; /* a status that only loaders return */

struct span {
	tw_duration low;
	tw_duration high;
};

enum cache_fate {
	CACHE_OFFERED,  /* by a set or a load that is not over, or by a load that was: maybe kept */
	CACHE_ACCEPTED, /* in the cache */
	CACHE_REFUSED,
	CACHE_DROPPED /* taken over by a load that failed, or not kept: no call finds it */
};

/* A value was offered by a set or a load. It is here until it has left and has no pins. */
struct cache_value {
	uint64_t number; /* unique; 0 for a free place */
	unsigned key;
	size_t size;
	uint64_t weight;
	enum cache_fate fate;
	bool is_adopted;
	bool is_loaded;
	bool is_popped;
	unsigned pins;
	uint64_t began; /* when its set or load began, in events */
	uint64_t over;  /* when that was over, or it was found; 0 before */
	uint64_t puts;  /* the key's puts that were over when it began; the two below count alike */
	uint64_t deletes;
	uint64_t touches; /* touches included in its deadline */
	tw_duration life;
	struct span end;      /* end of its lifetime */
	struct span deadline; /* end, or sooner if it is idle */
	unsigned leaves; /* set if a call has removed it: bits of the causes that may be reported */
	uint64_t left;   /* when that was over; or when a load was no longer there */
	uint64_t reported; /* when on_remove was called */
	enum tw_cache_cause cause;
	bool is_retired;
	bool is_lent;  /* the cache has adopted its bytes */
	bool is_freed; /* and freed them */
	struct cache_model *model;
	struct cache_value *next; /* next in a list */
	unsigned char bytes[CACHE_SIZE_MOST];
};

/* An outcome is how the last load of a key has ended. */
enum cache_outcome { CACHE_NOT_YET, CACHE_LOADED, CACHE_FAILED, CACHE_ABSENT };

struct cache_key {
	bool is_known;               /* the last change overlapped no other */
	struct cache_value *current; /* its value, maybe past its deadline, or NULL */
	uint64_t since;              /* when that change began */
	uint64_t gone;               /* when the latest of the completed changes began */
	uint64_t seen;               /* the latest begin of a value that was found */
	unsigned open;               /* changes under way */
	const void *opener;          /* the client that began them all, or NULL */
	uint64_t changes;            /* changes begun, except those without effect */
	uint64_t overlaps;
	uint64_t puts_begun;
	uint64_t puts_over;
	uint64_t deletes_begun;
	uint64_t deletes_over;
	uint64_t touches_begun;
	uint64_t touches_over;
	unsigned loading;      /* running loads */
	uint64_t loading_over; /* puts and deletes over before the first of them */
	enum cache_outcome outcome;
	uint64_t loads;  /* loads begun */
	uint64_t loaded; /* the latest begin of a load that is over, or about to be */
	unsigned failures;
	unsigned absences;
	bool is_outgrown;         /* a load has brought a value that is too heavy to keep */
	tw_duration absent_until; /* known to one thread alone */
};

enum key_call_kind {
	CALL_LOOK, /* counts, and is a use */
	CALL_PEEK,
	CALL_TAKE,
	CALL_TOUCH, /* the kinds from here on change the key */
	CALL_DELETE,
	CALL_CLEAR, /* a delete that does not report whether there was an entry */
	CALL_SET,
	CALL_ADD,
	CALL_REPLACE
};

/* A key call is what a call does with one of its keys, and what is known before it. */
struct key_call {
	struct cache_model *model;
	enum key_call_kind kind;
	unsigned key;
	char name[CACHE_NAME_SIZE];
	size_t size; /* name's size */
	struct cache_key then;
	uint64_t number; /* the number of the key's value */
	uint64_t began;  /* in events */
	uint64_t inserts;
	tw_duration now;
	struct cache_value *value; /* the value that is set */
	tw_duration life;
};

struct cache_model;

/* A client is a thread that calls the cache, or a callback that does. */
struct cache_client {
	struct cache_model *model;
	unsigned number;
	unsigned first_key; /* the first of the keys it mostly changes */
	unsigned own_keys;
	const struct tw_cache_entry *pins[CACHE_PINS];
	bool is_guest; /* called from a loader or a callback */
	void *host;
	/* These belong to the take under way. */
	struct cache_client *outer; /* the next taker in the list */
	uint64_t thread;
	const struct key_call *take;
	struct cache_load *loaded;
	bool has_loaded;
};

/* A load is under way in its loader, or kept by it. */
struct cache_load {
	struct tw_cache_loading *loading;
	struct cache_client *taker; /* NULL on the pool, or if kept */
	unsigned key;
	struct key_call take; /* its taker's */
	uint64_t began;
	uint64_t refused; /* refused allocations when it began */
	struct cache_value *given;
	enum cache_outcome outcome;
	bool is_out; /* kept, or ended by itself: not by the loader's return */
};

/* An ask is a take with a callback. */
struct cache_ask {
	struct key_call take;
	bool is_listed; /* the call has returned, and succeeded */
	bool is_refused;
	unsigned reported;
	unsigned epoch;
};

struct cache_model {
	/* The program sets these before cache_model_open(). */
	struct tw_cache *cache;
	struct tw_wheel *wheel;
	struct tw_cache_options options;
	tw_duration expire;    /* the cache's own */
	tw_duration unit;      /* lifetimes are some of these */
	unsigned key_count;    /* names are made of their numbers */
	unsigned first_loaded; /* keys from here on are loaded, and have no writer */
	unsigned value_count;
	bool is_alone;
	bool adopts;
	bool sets_limits;
	bool writes_much;
	bool loads_much;
	bool loads_all; /* written keys, too */
	bool keeps;     /* loaders may keep their loads, which other threads end */
	bool keeps_all;
	unsigned failures; /* in 16 loads */

	/* These are the cache's state. */
	bool has_limits; /* or had limits */
	bool stop_begun;
	bool is_stopped;
	bool wheel_is_stopped;
	bool is_ending;
	bool is_over; /* tw_cache_destroy has returned */

	struct cache_key *keys;
	struct cache_value *values;
	struct cache_value *free_values;
	unsigned placed;                /* places from here on were never used */
	struct cache_value *retired[2]; /* free when all calls of that epoch are over */
	unsigned in_epoch[2];
	unsigned epoch;
	uint64_t numbers;
	uint64_t events;
	tw_duration now; /* time of the model's last call */
	bool in_listener;
	uint64_t reported;

	/* These are for loads. */
	struct cache_client *takers; /* takes under way, of all threads */
	unsigned running;            /* loaders and callbacks that run */
	unsigned ask_count;
	unsigned pending; /* callbacks to come */
	struct cache_ask asks[CACHE_ASKS];
	unsigned kept_count;
	struct cache_load kept[CACHE_KEPT];

	/* These are for the statistics. */
	uint64_t asked;
	uint64_t hits;
	uint64_t absences;
	uint64_t loads;
	uint64_t loads_failed;
	uint64_t timeouts;
	uint64_t stale;
	uint64_t removed[TW_CACHE_CAUSES];

	/* These describe the call under way, for one thread alone. */
	bool has_guest; /* another call is made inside: some may have left before others came */
	uint64_t heaviest;
	unsigned evicted;
	uint64_t inserts;
};

/* ---- The program's functions for the model ---- */

uint64_t host_draw(uint64_t limit);
_Noreturn void host_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void host_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
tw_duration host_now(const struct cache_model *model);
/* Enters the library, by a call or back from a callback; host_leave() comes after it. `client` is
 * NULL in a thread of the library's. */
void host_enter(struct cache_client *client, const char *call);
void host_leave(struct cache_client *client);
/* Takes some time, in a callback. */
void host_pause(struct cache_model *model);
/* Returns the number of allocations refused so far. */
uint64_t host_refusals(void);
uint64_t host_thread(void);
/* Notes that a load was kept. */
void host_kept(void);

/* Draws a number from `least` to `most`. */
static inline int64_t draw_from(int64_t least, int64_t most)
{
	return least + (int64_t)host_draw((uint64_t)(most - least) + 1);
}

/* ---- The model ---- */

/* Opens the model. The program has set some fields, and the rest is zero. */
void cache_model_open(struct cache_model *model);
/* Checks that all values were reported and freed, once cache and pins are gone. `inserts` is the
 * number of inserts, or 0 if that is not known. */
void cache_model_close(struct cache_model *model, uint64_t inserts);
/* These surround each call and callback, until its answer is checked: the values that it may meet
 * keep their places. cache_model_end() takes the result of cache_model_begin(). */
unsigned cache_model_begin(struct cache_model *model);
void cache_model_end(struct cache_model *model, unsigned epoch);
/* Compares the statistics, while no call runs. */
void cache_model_check_stats(struct cache_model *model);
/* Checks that the cache has no more than allowed, for one thread alone, after a call's removals
 * were reported. */
void cache_model_settle(struct cache_model *model, tw_duration interval);
/* These surround a tw_cache_flush that returns TW_OK, and check that all earlier removals are
 * reported. cache_flush_end() takes the result of cache_flush_begin(). */
uint64_t cache_flush_begin(struct cache_model *model);
void cache_flush_end(struct cache_model *model, uint64_t event);

/* Checks that all values due before then have left, when all threads sleep. */
void cache_model_check_overdue(const struct cache_model *model, tw_duration then);

/* These are for tw_cache_options, with the model as context. */
void cache_model_on_remove(void *model, const struct tw_cache_entry *entry,
			   enum tw_cache_cause cause);
uint64_t cache_model_weigh(void *context, const void *key, size_t key_size, const void *value,
			   size_t value_size);
/* This is the cache's own loader, with the model as load_context. */
tw_cache_load cache_model_load;

size_t cache_key_name(unsigned key, char *name);

/* Returns whether the key's value is known. */
bool cache_key_is_known(const struct cache_model *model, unsigned key);

/* Returns NULL if there are too many. */
struct cache_value *cache_value_new(struct cache_model *model, unsigned key, tw_duration life);
struct cache_value *cache_value_of(struct cache_model *model, unsigned key, const void *bytes,
				   size_t size);
struct cache_value *cache_value_of_entry(struct cache_model *model,
					 const struct tw_cache_entry *entry);
/* Returns whether the value is too heavy to be kept. */
bool cache_value_is_too_heavy(const struct cache_value *value);
/* Ends the call that offered the value. */
void cache_value_settle(struct cache_value *value, bool is_accepted);
/* The cache calls this for an adopted value, with the value as context. */
void cache_value_free(void *memory, size_t size, void *value);
/* Lets its place be used again, if possible. */
void cache_value_retire(struct cache_value *value);

/* Begins a call of that client, for each of its keys; `value` is the one it sets. */
struct key_call key_call_begin(struct cache_client *client, enum key_call_kind kind, unsigned key,
			       struct cache_value *value, tw_duration life);
/* Checks the answer, and the value that was found, if it is known. */
void key_call_end(struct key_call *call, enum tw_status status, struct cache_value *found);
/* Checks, in the call or at its end, that the value may be found, or none if it is NULL. */
void key_call_see(struct key_call *call, struct cache_value *found);
/* Returns whether the key was known, and no call has changed it. */
bool key_call_is_settled(const struct key_call *call);
/* Checks a take's value, which may not be in the cache any more. */
void key_call_check_known(const struct key_call *call, const struct cache_value *value);
/* Returns whether a touch may have moved the deadline of the found value since. */
bool key_call_met_touch(const struct key_call *call);
/* Checks the found value's deadline. */
void key_call_check_deadline(struct key_call *call, tw_duration deadline);
/* Counts for the statistics, with the value that was found, if it is known. */
void key_call_count(struct key_call *call, bool is_hit, struct cache_value *found);
/* Returns whether, for one thread alone, a failed load of the key must give a value past its
 * deadline. */
bool key_call_has_stale(struct key_call *call);
/* Notes what a load has put, its value or an absence, when its taker has returned. */
void cache_load_settle(struct cache_model *model, const struct cache_load *load);

/* ---- Calls ---- */

/* Makes a random call, and compares its answer. */
void cache_client_call(struct cache_client *client);

void client_set(struct cache_client *client, unsigned key);
void client_get(struct cache_client *client, unsigned key);
void client_delete(struct cache_client *client, unsigned key);
void client_flush(struct cache_client *client);
void client_pin(struct cache_client *client, const struct tw_cache_entry *entry);
void client_unpin_all(struct cache_client *client);
tw_duration cache_draw_lifetime(struct cache_model *model);

void client_take_async(struct cache_client *client, unsigned key);
/* Draws a key to take. */
unsigned client_draw_taken(const struct cache_model *model);
/* Checks the answer of a call for many keys, or for none. */
void client_check_answer(const char *call, enum tw_status status, size_t sum, size_t counted);
/* Makes a random take. */
void client_load(struct cache_client *client);
/* Ends one of the loads that are kept. */
void client_end_kept(struct cache_client *client);

/* A begun call has the data that decide how it may end. */
struct call_begun {
	bool was_stopped;
	uint64_t refused;
};
struct call_begun client_enter(struct cache_client *client, const char *call);
void client_leave(struct cache_client *client, const char *call, struct call_begun begun,
		  enum tw_status status);

#define CACHE_CALL(client, expression)                                       \
	__extension__({                                                      \
		struct call_begun begun = client_enter(client, #expression); \
		enum tw_status answer = (expression);                        \
		client_leave(client, #expression, begun, answer);            \
		answer;                                                      \
	})

#endif
