/* SPDX-License-Identifier: MIT */
/*
 * An alarm is a timer that is made once, and is set and stopped without memory and without room in
 * the command queue. alarm.c says which thread may touch what, and when.
 */
#ifndef ALARM_H
#define ALARM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "handle.h"
#include "base/inbox.h"
#include "wheel/timer.h"

/* An alarm is what a struct tw_alarm has in it. It takes 88 bytes. */
struct alarm {
	struct timer timer; /* value: the argument */
	/* Any thread. */
	_Atomic(run_fn *) function; /* its run; once it is CLOSED, the close's */
	/* A set touches these three. */
	struct tw_wheel *wheel; /* constant */
	_Atomic uint64_t word;  /* tick and flags: see alarm.c */
	struct inbox_link change;
};

_Static_assert(sizeof(struct alarm) <= sizeof(struct tw_alarm) &&
		       _Alignof(struct alarm) <= _Alignof(struct tw_alarm),
	       "an alarm fits what programs have in their structs");

static inline struct alarm *alarm_of(struct tw_alarm *alarm)
{
	return (struct alarm *)(void *)alarm;
}

/* Knows the alarms that the owner is to see. A zeroed table is empty. Any thread. */
struct alarm_table {
	struct inbox changed;  /* taken by the owner */
	atomic_size_t closing; /* alarms closed whose functions have not returned */
};

/* ---- Any thread ---- */

/* Makes an alarm in memory of the program's. It ends by a close or a destroy. */
void alarm_init(struct alarm *alarm, struct tw_wheel *wheel, run_fn *run, void *argument);
/* Sets it to a tick as tw_alarm_set does. *changed says whether the owner is to be woken. */
enum tw_status alarm_set(struct alarm_table *table, struct alarm *alarm, uint64_t tick,
			 bool *changed);
/* Stops it as tw_alarm_stop does. */
enum tw_status alarm_stop(struct alarm *alarm);
/*
 * Disarms the alarm for good. When it does not run, closed(argument) is called. *changed says that
 * the owner is to be woken. It is the caller's last touch.
 *
 * Returns:
 *   TW_OK       `closed` will be called
 *   TW_CLOSED   another thread closes or destroys it, or has
 */
enum tw_status alarm_close(struct alarm_table *table, struct alarm *alarm, run_fn *closed,
			   bool *changed);
/* What a destroy waits for: the end of the run or, with a pool, that no worker has the alarm. */
struct run alarm_hold(const struct alarm *alarm, bool has_pool);
/*
 * Disarms the alarm for good, unless it is held and the caller does not wait. Then the alarm is
 * stopped, and lives on.
 *
 * Returns:
 *   TW_OK       it is disarmed. The caller waits for `hold`, then has the owner take the alarm out
 *               of its lists if alarm_is_known()
 *   TW_RUNNING  it is held
 *   TW_CLOSED   another thread closes or destroys it, or has
 */
enum tw_status alarm_destroy(struct alarm *alarm, const struct run *hold, bool waits);
/* Returns whether the owner may have an alarm that is disarmed for good. */
bool alarm_is_known(const struct alarm *alarm);
/* Returns what is to be called: its run, or what a close was given. */
run_fn *alarm_function(const struct alarm *alarm);
/* Returns whether a function that a close was given has still to return. */
bool alarm_table_is_closing(const struct alarm_table *table);

/* ---- Owner ---- */

/* Takes the next alarm to be seen to. Returns NULL if there is none. */
struct alarm *alarm_take_changed(struct alarm_table *table);

/* An alarm action is what is to be done with an alarm that is in no list. */
enum alarm_action {
	ALARM_KEEP, /* nothing; or it is away, or will be taken from the inbox */
	ALARM_FILE, /* it waits for its tick, timer.tick */
	ALARM_CLOSE /* its function is to be called, then alarm_table_end_close() */
};
/* Returns what is to be done with an alarm just taken from the inbox. */
enum alarm_action alarm_apply_change(struct alarm *alarm);
/* Returns what is to be done with an alarm that has left the wheel. */
enum alarm_action alarm_look(struct alarm *alarm);
/* The tick by which it was filed, timer.tick, has come. Returns true if it is to be handed over to
 * run: it is set to that tick or an earlier one. */
bool alarm_claim(struct alarm *alarm);
/* Returns whether it was handed over, and has not come back. */
bool alarm_is_away(const struct alarm *alarm);
/* Lets go of a disarmed alarm that is in no list. Returns false if it is on its way to the inbox,
 * from where it is to be taken first. */
bool alarm_let_go(struct alarm *alarm);

/* ---- Owner or worker, with one that was claimed ---- */

/* Begins the run. Returns false if the alarm was stopped, or set to after the tick `now`. */
bool alarm_begin(struct alarm *alarm, uint64_t now);
/* A function that a close was given has returned. */
void alarm_table_end_close(struct alarm_table *table);
/* Lets go of it, whether it has begun or not; handle_table_tell() comes next. Returns true if the
 * owner is to be woken. */
bool alarm_end(struct alarm_table *table, struct alarm *alarm);

static inline struct alarm *timer_alarm(struct timer *timer)
{
	return list_entry(timer, struct alarm, timer);
}

#endif
