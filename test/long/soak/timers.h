/* SPDX-License-Identifier: MIT */
/*
 * What wheels call, and timers by handle in all their kinds: each brings its value back to the book
 * once, by its last run, by its stop, or by what drains or stops the wheel.
 */
#ifndef SOAK_TIMERS_H
#define SOAK_TIMERS_H

#include "stage.h"

enum timer_kind { ONCE, RETRIED, PERIODIC, SCHEDULED, TIMER_KINDS };

/* A timer by handle, for the thread that may stop it. All zero: none. */
struct held {
	struct place *place;
	enum timer_kind kind;
	struct tw_timer timer;
	void *argument;
};

/* For tw_create, with the place's account as context, and for tw_drain. */
void timers_execute(void *account, const struct tw_task *task);
void timers_release(void *account, const struct tw_task *task, enum tw_reason reason);
void timers_drain(void *account, const struct tw_task *task);

/* Runs a value by handle, once. */
void timers_run_once(void *value);

/* One without an entry in the book is none. */
struct held held_start(struct place *place, struct book *book, struct generator *generator,
		       enum timer_kind kind);
/* Sooner or later than before; nothing for those that re-arm themselves. */
void held_reset(struct held *held, struct generator *generator);
void held_stop(struct held *held);

#endif
