/* SPDX-License-Identifier: MIT */
/*
 * A timer by handle is made, stopped and reset by any thread, and runs once or by a schedule.
 * handle.c says which thread may touch what, and when.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/inbox.h"
#include "base/limit.h"
#include "base/slab.h"
#include "wheel/timer.h"

/* A run, or the function that a close is given. */
typedef void run_fn(void *argument);

/* A schedule is what repeats. It is constant once made. */
struct schedule {
	void (*run)(void *argument);
	tw_duration (*next)(void *argument, tw_duration previous); /* or NULL: period and missed */
	tw_duration period;
	enum tw_missed missed;
};

/* 88 bytes. The memory stays a handle's for as long as the wheel lives. */
struct handle {
	struct timer timer; /* value: the argument */
	union {
		void (*run)(void *argument);
		struct schedule *schedule; /* a periodic one's */
	};
	_Atomic uint64_t state;       /* generation, phase and flags: see handle.c */
	struct inbox_link change;     /* in one of the table's inboxes */
	_Atomic tw_duration deadline; /* by its last set or reset */
};

/* A flag of the state: the handle has a new deadline. */
enum { HANDLE_WAS_RESET = 1 << 3 };

/* Whether the owner has it. Also for one that may be freed by now: no other thread says so of any.
 * */
static inline bool handle_is_here(const struct handle *handle, uint16_t pending)
{
	enum timer_place place = timer_place(&handle->timer);

	return place == TIMER_IN_NEXT_TURN ||
	       (place == TIMER_IN_WHEEL && handle->timer.pending_set == pending);
}

/*
 * Stops go to several inboxes, chosen by the handle's id: a link lies in the memory of the one
 * before it, and was last written by another core. As many lists as these are walked at once.
 */
enum { HANDLE_INBOXES = 8 };

/* All handles of a wheel, and those that the owner is to see. */
struct handle_table {
	struct slab slab;                     /* any thread */
	struct slab_hooks hooks;              /* constant */
	_Atomic(struct chunk *) *chunks;      /* by number; set once each */
	struct inbox stopped[HANDLE_INBOXES]; /* while pending */
	struct inbox changed;                 /* reset to run sooner, or back from a worker */
	/* Threads that wait for a run to end, a handle's or an alarm's. */
	_Alignas(CACHE_LINE) atomic_int waiters;
	pthread_mutex_t lock;
	pthread_cond_t run_ended;
};

/* Returns false if there is no memory. */
bool handle_table_init(struct handle_table *table);
void handle_table_destroy(struct handle_table *table);

/* Any thread: makes a pending handle, to be set, and *id. Returns NULL if there is no memory. */
struct handle *handle_new(struct handle_table *table, uint64_t *id);
/* Gives a new one its deadline, which has passed if it is for now. */
static inline void handle_arm(struct handle *handle, tw_duration deadline, bool for_now)
{
	handle->timer.deadline = deadline;
	handle->timer.by_tick = for_now;
	/* relaxed: published as the rest of it is. */
	atomic_store_explicit(&handle->deadline, deadline, memory_order_relaxed);
}
/* Gives back one that no other thread has, or can find by its id. */
void handle_free(struct handle_table *table, struct slab_bin *bin, struct handle *handle);
/* Says that run is a schedule's; before it is set. */
void handle_make_periodic(struct handle *handle, struct schedule *schedule);

/* Any thread: returns the handle of an id, maybe another timer's by now, or NULL if the id is no
 * wheel's. What a stop or a reset changes first comes into the cache. */
struct handle *handle_fetch(const struct handle_table *table, uint64_t id);
/* Any thread. Returns as tw_timer_stop; with TW_OK the owner is to be woken. */
enum tw_status handle_stop(struct handle_table *table, uint64_t id);
/*
 * Any thread, with what handle_fetch() returned. Returns as tw_timer_reset; with TW_OK the timer
 * has the deadline, which has passed if it is for now; *changed is set if the owner is to be woken.
 */
enum tw_status handle_reset(struct handle_table *table, struct handle *handle, uint64_t id,
			    tw_duration deadline, bool for_now, bool *changed);
/* Any thread. Returns as tw_timer_take; with TW_OK the owner is to be woken. */
enum tw_status handle_take_value(struct handle_table *table, uint64_t id, void **value);

/* The run of a handle's timer or of an alarm is under way while *word is `running` under the mask.
 */
struct run {
	const _Atomic uint64_t *word;
	uint64_t mask;
	uint64_t running;
};

static inline bool run_is_under_way(const struct run *run)
{
	/* seq_cst: after the announcement in handle_table_wait(); pairs with handle_exchange(),
	 * handle_end_last() and alarm_exchange(). */
	return (atomic_load_explicit(run->word, memory_order_seq_cst) & run->mask) == run->running;
}

/* Fills in the timer's run. Returns false if there is no such timer. Any thread. */
bool handle_find_run(const struct handle_table *table, uint64_t id, struct run *run);
/* Waits until the run has ended. */
void handle_table_wait(struct handle_table *table, const struct run *run);
/* A run may have ended: a handle's, or an alarm's. */
void handle_table_tell(struct handle_table *table);

/* Owner, from here on. Takes up to `most` that were stopped: returns their number. */
size_t handle_take_stopped(struct handle_table *table, struct handle **taken, size_t most);
/* Returns whether there are none, as mostly after a task. */
static inline bool handle_none_is_stopped(const struct handle_table *table)
{
	uintptr_t some = 0;

#pragma GCC unroll 8
	for (size_t i = 0; i < HANDLE_INBOXES; i++)
		some |= inbox_contents(&table->stopped[i]);
	return some == 0;
}
/* Takes the next that was reset to run sooner, or has come back. Returns NULL if there is none. */
struct handle *handle_take_changed(struct handle_table *table);
bool handle_table_has_some(struct handle_table *table);
/* Marks behind the changes that are there now, and whether all before them were taken. */
struct handle_marks {
	uint64_t stopped[HANDLE_INBOXES];
	uint64_t changed;
};
void handle_table_mark(const struct handle_table *table, struct handle_marks *marks);
bool handle_table_is_past(const struct handle_table *table, const struct handle_marks *marks);
/* What to do about one that was taken, or about a command. */
enum handle_action {
	HANDLE_KEEP,   /* nothing */
	HANDLE_FREE,   /* no other thread has it any more */
	HANDLE_REMOVE, /* as HANDLE_FREE; it was pending, and is to be counted as removed */
	HANDLE_FILE,   /* it is in no list, and is to be filed by its deadline */
	HANDLE_MOVE    /* it is in a list, and has a new deadline */
};
/* `is_here` is what handle_is_here() returns. */
enum handle_action handle_apply_stop(struct handle *handle, bool is_here);
enum handle_action handle_apply_change(struct handle *handle, bool is_here);
enum handle_action handle_apply_set(struct handle *handle);
/* Returns whether a handle whose deadline has come was reset since, at a glance. */
static inline bool handle_looks_reset(const struct handle *handle)
{
	/* relaxed: where a reset is not seen here, handle_begin() sees it. */
	return atomic_load_explicit(&handle->state, memory_order_relaxed) & HANDLE_WAS_RESET;
}
/* Returns false if it was reset: it has its new deadline, and is to be filed. */
bool handle_is_due(struct handle *handle);
/* The deadline of that timer: TW_OK; TW_RUNNING; TW_NOT_FOUND: it is done, stopped or drained. */
enum tw_status handle_deadline(struct handle_table *table, uint64_t id, uint16_t pending,
			       tw_duration *deadline);
/* All handles have numbers from 0 to before this, by their memory, which no timer leaves. */
uint64_t handle_table_end(const struct handle_table *table);
/* A scan looks for pending handles in the order of their numbers. */
struct handle_scan {
	uint64_t number;      /* the scan has passed all handles before it */
	uint64_t end;         /* the scan ends before this number */
	size_t looks;         /* handles that may still be looked at; up to 71 more are */
	uint64_t used;        /* bit i is set if the memory of handle number + i may be in use */
	tw_duration deadline; /* that of the handle found last */
};
/* Returns the next handle on this pending set. NULL where there is none before the end, or where
 * `looks` is 0. Free memory costs no look. */
const struct handle *handle_next(struct handle_table *table, struct handle_scan *scan,
				 uint16_t pending);
/* Returns the period of tw_every, or 0 if there is none. */
tw_duration handle_period(const struct handle *handle);
/* Takes a timer that left the wheel out of reach of stop and reset, with the deadline that it has.
 * Returns false if it was stopped. */
bool handle_claim(struct handle *handle);

/* Owner or worker. */
enum handle_start {
	HANDLE_BEGUN,   /* the caller is to call its function, handle_end, and handle_table_tell */
	HANDLE_STOPPED, /* it was stopped before; it is no longer the caller's */
	HANDLE_RESET    /* it was reset before: it is the owner's again, to be woken */
};
enum handle_start handle_begin(struct handle_table *table, struct slab_bin *bin,
			       struct handle *handle);
/* Fills in the id and the function of a handle that the caller has. */
void handle_describe(const struct handle *handle, struct tw_task *task);
/* Lets go of it. Returns whether it is to run again, and the owner to be woken. If not, its place
 * is given back before its run has ended for those that wait. */
bool handle_end(struct handle_table *table, struct slab_bin *bin, struct handle *handle,
		struct limit *places, tw_duration began);
/* Lets go of a timer that is stopped: frees it, now or when its last change is taken. */
void handle_let_go(struct handle_table *table, struct slab_bin *bin, struct handle *handle);

static inline struct handle *timer_handle(struct timer *timer)
{
	return list_entry(timer, struct handle, timer);
}

#endif
