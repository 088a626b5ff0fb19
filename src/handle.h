/* SPDX-License-Identifier: MIT */
/*
 * Timers by handle: made, stopped and reset by any thread, run once or by a schedule. Who may touch
 * what at which time is told in handle.c.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "slab.h"
#include "timer.h"

/* What repeats. Constant once made. */
struct schedule {
	void (*run)(void *argument);
	tw_duration (*next)(void *argument, tw_duration previous); /* NULL: period and missed */
	tw_duration period;
	enum tw_missed missed;
};

/* 88 bytes. The memory stays a handle's for as long as the wheel lives. */
struct handle {
	struct timer timer; /* value: the argument */
	union {
		void (*run)(void *argument);
		struct schedule *schedule; /* of a periodic one */
	};
	_Atomic uint64_t state; /* generation, phase and flags: see handle.c */
	_Atomic(struct handle *) next_change;
	_Atomic tw_duration new_deadline; /* while its state says so */
};

/* Where the owner knows a handle to be. */
enum handle_place {
	HANDLE_IN_QUEUE,
	HANDLE_STOPPED_IN_QUEUE, /* its change has been taken, its set command not yet */
	HANDLE_IN_WHEEL,         /* of the shelf whose number it has */
	HANDLE_IN_NEXT_TURN,     /* in the owner's list */
	HANDLE_AWAY              /* handed over */
};

/* All handles of a wheel, and those that have changed since the owner last looked. */
struct handle_table {
	struct slab slab;                     /* any thread */
	_Atomic(struct slab_chunk *) *chunks; /* by number; set once each */
	/* Any thread adds, the owner takes. */
	_Alignas(CACHE_LINE) _Atomic(struct handle *) newest;
	_Alignas(CACHE_LINE) struct handle *oldest; /* the owner's */
	struct handle stub;
	/* Who waits for a run to end. */
	_Alignas(CACHE_LINE) atomic_int waiters;
	pthread_mutex_t lock;
	pthread_cond_t run_ended;
};

/* False: out of memory. */
bool handle_table_init(struct handle_table *table);
void handle_table_destroy(struct handle_table *table);

/* Any thread: a pending one, to be set; NULL: out of memory. Its id goes to *id. */
struct handle *handle_new(struct handle_table *table, uint64_t *id);
/* Gives back one that nobody else has, or can find by its id. */
void handle_free(struct handle_table *table, struct slab_bin *bin, struct handle *handle);
/* Says that run is a schedule's; before it is set. */
void handle_make_periodic(struct handle *handle, struct schedule *schedule);

/*
 * Any thread. TW_OK, TW_RUNNING or TW_NOT_FOUND as the public calls; *changed: the owner is to be
 * woken.
 */
enum tw_status handle_stop(struct handle_table *table, uint64_t id, bool *changed);
enum tw_status handle_reset(struct handle_table *table, uint64_t id, tw_duration deadline,
			    bool *changed);
/* Waits until the run, if it is running, has ended. */
void handle_wait(struct handle_table *table, uint64_t id);
/* Whether this thread is inside that timer's run. */
bool handle_runs_here(struct handle_table *table, uint64_t id);

/* Owner. */
struct handle *handle_take_change(struct handle_table *table);
bool handle_table_has_changes(struct handle_table *table);
/* What to do about a change, or about a set command. */
enum handle_action {
	HANDLE_KEEP,   /* nothing */
	HANDLE_FREE,   /* nobody else has it any more */
	HANDLE_REFILE, /* its deadline is a new one; if it was away, it is back */
	HANDLE_REPEAT  /* the same, by its schedule */
};
enum handle_action handle_apply_change(struct handle *handle, uint16_t shelf);
enum handle_action handle_apply_set(struct handle *handle);
/* Takes a timer that left the wheel out of reach of stop and reset; false: it was stopped. */
bool handle_claim(struct handle *handle);

/* Owner or worker. */
/* A run: from handle_begin to handle_end. The caller's, one a run. */
struct handle_run {
	struct handle *handle;
	struct handle_run *outer; /* the run of the same thread that it is in */
};
enum handle_start {
	HANDLE_BEGUN,   /* the caller is to call its function, and handle_end */
	HANDLE_STOPPED, /* it was stopped before; it is no longer the caller's */
	HANDLE_RESET    /* it was reset before: it is the owner's again, who is to be woken */
};
enum handle_start handle_begin(struct handle_table *table, struct slab_bin *bin,
			       struct handle *handle, struct handle_run *run);
void handle_call(struct handle *handle);
/* Of one that runs: its id. */
uint64_t handle_running_id(const struct handle *handle);
/* Lets go of it. True: it is to run again, and the owner to be woken. */
bool handle_end(struct handle_table *table, struct slab_bin *bin, struct handle_run *run,
		tw_duration began);
/* After handle_claim: frees it, now or when its last change is taken. */
void handle_let_go(struct handle_table *table, struct slab_bin *bin, struct handle *handle);

static inline struct handle *timer_handle(struct timer *timer)
{
	return list_entry(timer, struct handle, timer);
}

#endif
