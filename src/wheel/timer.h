/* SPDX-License-Identifier: MIT */
/*
 * The one object that travels: made by the thread that sets it, it is the set command in the queue,
 * the entry in a slot, and the job in the worker pool. One thread owns it at a time; it changes
 * hands at the command queue and at the worker pool.
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

/* What is to be done with a timer that left the wheel. */
enum timer_job {
	TIMER_RUN,
	TIMER_RELEASE, /* with its reason */
	TIMER_DRAIN    /* with its drain */
};

/* Where a timer's memory came from, which also tells what is behind its common part. */
enum timer_class {
	TIMER_KEYED, /* and those up to the next: by size of the key */
	TIMER_KEYED_LARGE = 7,
	TIMER_HANDLE,   /* struct handle */
	TIMER_PERIODIC, /* likewise, with a schedule */
	TIMER_ALARM     /* struct tw_alarm */
};

/* Where the owner knows a handle or an alarm to be. Only the maker of a handle says IN_QUEUE, only
 * the owner the others. */
enum timer_place {
	TIMER_IN_QUEUE,         /* a handle, with its set command */
	TIMER_STOPPED_IN_QUEUE, /* its change has been taken, its set command not yet */
	TIMER_IN_WHEEL,         /* of the pending set whose number it has */
	TIMER_IN_NEXT_TURN,     /* in the owner's list */
	TIMER_AWAY              /* handed over; or an alarm that waits for no tick */
};

/* The part that all timers have: what the wheel and the pool touch. 56 bytes. */
struct timer {
	tw_duration deadline; /* nanoseconds, not rounded to a tick */
	struct list link;     /* in a slot; later in a batch of jobs */
	union {
		uint64_t sequence;   /* in an ordered wheel: order of its last command */
		struct drain *drain; /* as a TIMER_DRAIN job */
	};
	void *value; /* of a handle: its argument */
	union {
		uint64_t tick;            /* of an alarm: its deadline */
		tw_duration submitted_at; /* in the first timer of a batch of jobs */
	};
	uint8_t job;    /* enum timer_job */
	uint8_t reason; /* enum tw_reason */
	uint8_t cohort; /* in the pool: which wait for idle counts it */
	uint8_t class;  /* enum timer_class, or a size class of a keyed timer */
	union {
		bool at_once;       /* in the wheel: due whatever its deadline says */
		uint8_t batch_size; /* in the first timer of a batch of jobs */
	};
	_Atomic uint8_t place; /* of a handle or alarm: enum timer_place */
	uint16_t pending_set;  /* of these: the number of the one it is in; the owner's */
};

/*
 * A timer with a key. Two cache lines for a key of up to 24 bytes; to find it, and to move it to
 * later, needs only the first. uthash's handle begins with three pointers that its macros on one
 * bucket never touch: a small key lies over them.
 */
struct keyed_timer {
	union {
		unsigned char small_key[offsetof(UT_hash_handle, hh_prev)];
		UT_hash_handle hh; /* where the key is, its size and hash */
	};
	struct timer timer;
	unsigned char large_key[];
};

enum {
	TIMER_SIZE_CLASSES = TIMER_KEYED_LARGE,
	TIMER_SMALL_KEY = sizeof(((struct keyed_timer *)0)->small_key)
};

/* Where timers come from. One a wheel; any thread. */
struct timer_store {
	struct slab slabs[TIMER_SIZE_CLASSES];
};

/* Timers that one thread is about to give back. */
struct timer_bin {
	struct slab_bin bins[TIMER_SIZE_CLASSES];
	struct slab_bin handles;
	struct slab_bin alarms;
};

void timer_store_init(struct timer_store *store);
void timer_store_destroy(struct timer_store *store);
/* Makes what lies in the bin available to all. */
void timer_store_flush(struct timer_store *store, struct timer_bin *bin);

/* A timer with a copy of the key; NULL: out of memory. key_size from 1 to TW_KEY_SIZE_MAX. */
struct keyed_timer *timer_new(struct timer_store *store, const void *key, size_t key_size,
			      uint32_t hash);
void timer_free(struct timer_store *store, struct timer_bin *bin, struct keyed_timer *timer);
/*
 * The same in two steps, for keys of up to TIMER_SMALL_KEY bytes: memory that is not touched yet,
 * for one timer, or NULL when it runs out; or for up to SLAB_MAGAZINE timers, or fewer; and the
 * timer in it.
 */
void *timer_take_memory(struct timer_store *store);
size_t timer_take_memories(struct timer_store *store, void **memories, size_t count);
void timer_give_memory(struct timer_store *store, struct timer_bin *bin, void *memory);
void timer_make(struct keyed_timer *timer, const void *key, size_t key_size, uint32_t hash);

/* relaxed, both: it publishes nothing; a thread that does not have the timer learns of no more. */
static inline enum timer_place timer_place(const struct timer *timer)
{
	return (enum timer_place)atomic_load_explicit(&timer->place, memory_order_relaxed);
}

static inline void timer_set_place(struct timer *timer, enum timer_place place)
{
	atomic_store_explicit(&timer->place, (uint8_t)place, memory_order_relaxed);
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

/* The timer has a key. */
static inline struct keyed_timer *timer_keyed(struct timer *timer)
{
	return list_entry(timer, struct keyed_timer, timer);
}

static inline struct timer *timer_of_link(struct list *link)
{
	return list_entry(link, struct timer, link);
}

#endif
