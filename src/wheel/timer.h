/* SPDX-License-Identifier: MIT */
/*
 * A timer is the one object that travels. The thread that sets it makes it; then it is the set
 * command in the queue, the entry in a slot, and the job in the worker pool.
 *
 * Invariants:
 *   one thread owns a timer at a time; it changes owners at the command queue and at the worker
 *     pool
 *   only the owner of a timer touches this struct
 */
#ifndef TIMER_H
#define TIMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include <timingwheel/timingwheel.h>

#include "base/list.h"
#include "base/slab.h"

struct drain;

/* The job of a timer that has left the wheel. */
enum timer_job {
	TIMER_RUN,     /* run its task */
	TIMER_RELEASE, /* call the release function with `reason` */
	TIMER_DRAIN,   /* call the function of `drain` */
	TIMER_CLOSE    /* call the function that a close of the alarm was given */
};

/* The class of a timer says where its memory came from, and what follows struct timer in it. */
enum timer_class {
	TIMER_KEYED, /* 0 to 6: a keyed timer, of that size class */
	TIMER_KEYED_LARGE = 7,
	TIMER_HANDLE,   /* struct alarm in memory of the wheel's, a handle */
	TIMER_PERIODIC, /* a handle that has a schedule */
	TIMER_ALARM     /* struct alarm in memory of the program's */
};

/* The place of a timer without a key, as the owner knows it. */
enum timer_place {
	TIMER_NEW,      /* a handle's, before the owner has seen it */
	TIMER_IN_WHEEL, /* in the wheel */
	TIMER_IN_JOBS,  /* about to run inline: in a list of the owner's */
	TIMER_AWAY      /* in none of the owner's lists */
};

/* The part of a timer that the wheel and the pool touch. It has 48 bytes. */
struct timer {
	tw_duration deadline; /* nanoseconds, not rounded to a tick */
	struct list link;     /* in a slot, later in a batch of jobs */
	union {
		uint64_t sequence;   /* in an ordered wheel: the number of its last command */
		struct drain *drain; /* for TIMER_DRAIN */
	};
	void *value;        /* the value of a key, or the argument of a handle or alarm */
	uint8_t job;        /* enum timer_job */
	uint8_t reason;     /* enum tw_reason */
	uint8_t wait_group; /* in the pool: the parity of the group that counts it */
	uint8_t class;      /* enum timer_class, or a size class of a keyed timer */
	union {
		bool is_for_now;    /* in the wheel: due, whatever the deadline */
		uint8_t batch_size; /* in the first timer of a batch of jobs */
	};
	uint8_t place;  /* enum timer_place of a timer without a key */
	uint16_t epoch; /* that of its set: see runtime/pending.h */
};

/*
 * A keyed timer has two cache lines for a key of up to 24 bytes. Finding it and moving it to a
 * later deadline touch only the first. uthash's handle begins with three pointers that its macros
 * for one bucket never touch: a small key uses their place.
 */
struct keyed_timer {
	union {
		unsigned char small_key[offsetof(UT_hash_handle, hh_prev)];
		UT_hash_handle hh; /* the key's address, size and hash */
	};
	struct timer timer;
	unsigned char large_key[];
};

enum {
	TIMER_SIZE_CLASSES = TIMER_KEYED_LARGE,
	TIMER_SMALL_KEY = sizeof(((struct keyed_timer *)0)->small_key)
};

/* The store of a wheel has the memory of all its timers. Any thread may use it. */
struct timer_store {
	struct slab slabs[TIMER_SIZE_CLASSES];
};

/* A bin holds timers that one thread is giving back. A zeroed bin is empty. */
struct timer_bin {
	struct slab_bin bins[TIMER_SIZE_CLASSES];
	struct slab_bin handles;
};

void timer_store_init(struct timer_store *store);
void timer_store_destroy(struct timer_store *store);
/* Empties the bin: any thread can take its memory after that. */
void timer_store_flush(struct timer_store *store, struct timer_bin *bin);

/* Returns a timer with a copy of the key, or NULL if out of memory. `key_size` is 1 to
 * TW_KEY_SIZE_MAX. */
struct keyed_timer *timer_new(struct timer_store *store, const void *key, size_t key_size,
			      uint32_t hash);
void timer_free(struct timer_store *store, struct timer_bin *bin, struct keyed_timer *timer);

/* The next three functions do timer_new() in two steps, for keys of up to TIMER_SMALL_KEY bytes. */

/* Returns untouched memory for one timer, or NULL if out of memory. */
void *timer_take_memory(struct timer_store *store);
void timer_give_memory(struct timer_store *store, struct timer_bin *bin, void *memory);
/* Makes a timer in `timer`, which is memory of the two functions above. */
void timer_make(struct keyed_timer *timer, const void *key, size_t key_size, uint32_t hash);

static inline enum timer_place timer_place(const struct timer *timer)
{
	return (enum timer_place)timer->place;
}

static inline void timer_set_place(struct timer *timer, enum timer_place place)
{
	timer->place = (uint8_t)place;
}

static inline bool timer_is_handle(const struct timer *timer)
{
	return timer->class == TIMER_HANDLE || timer->class == TIMER_PERIODIC;
}

static inline bool timer_is_alarm(const struct timer *timer)
{
	return timer->class == TIMER_ALARM;
}

static inline bool timer_has_key(const struct timer *timer)
{
	return timer->class < TIMER_HANDLE;
}

/* Returns the keyed timer around `timer`, which must have a key. */
static inline struct keyed_timer *timer_keyed(struct timer *timer)
{
	return list_entry(timer, struct keyed_timer, timer);
}

static inline struct timer *timer_of_link(struct list *link)
{
	return list_entry(link, struct timer, link);
}

#endif
