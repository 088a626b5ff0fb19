/* SPDX-License-Identifier: MIT */
/*
 * These are random calls for timers by handle and alarms, and what is known of each. A timer's runs
 * do not overlap; it does not run early, nor after it was stopped; and its argument gets one owner:
 * by its last run, its stop, or the drain or stop of the wheel. In the exact case (see
 * wheel_model.h) each run and answer is known.
 */
#ifndef MODEL_WHEEL_TIMERS_H
#define MODEL_WHEEL_TIMERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <timingwheel/timingwheel.h>

#include "wheel_model.h"

enum { MODEL_USERS = 8, MODEL_ALARMS = 2 };

enum timer_kind { ONE_SHOT, PERIODIC, SCHEDULED };

/* A timer by handle has this as its argument. */
struct model_timer {
	atomic_flag lock;
	struct model *model;
	enum timer_kind kind;
	bool is_accepted;
	bool is_running;
	bool ends; /* its schedule ends after a few runs; no call stops it */
	struct tw_timer timer;
	tw_duration low; /* the next run's; resets under way may bring it forward */
	tw_duration period;
	tw_duration low_reset;              /* by resets since the last run began */
	tw_duration asked[MODEL_USERS + 1]; /* by resets under way, for each user and its own run */
	uint64_t resets_begun;
	uint64_t resets; /* by others than its own run; accepted, or under way */
	uint64_t runs;
	uint64_t runs_most;
	uint64_t drains; /* drains over before it was set */
	uint64_t own_resets;
	unsigned stops; /* stops begun */
	unsigned given; /* times that the argument got an owner */
	/* These are for the exact case. */
	bool is_armed;
	bool at_once;    /* when the wheel is next driven */
	bool is_visited; /* visited by a walk */
	bool is_owed;    /* that drain or stop is to give it back */
	tw_duration deadline;
	uint64_t order; /* its last command's or run's */
	bool is_moved;  /* that was a reset: the timer keeps no order with others of its tick */
};

/* Some users share these timers: each may stop and reset those of the others. */
struct timer_set {
	unsigned most;
	bool is_reused; /* ended timers are set again: only their setter resets them */
	bool may_end;   /* schedules may end by themselves: nothing stops or drains the wheel */
	tw_duration period_least;
	_Atomic unsigned count;
	struct model_timer *timers;
	/* These are for the exact case. */
	tw_duration last_time; /* a run's, after all that were set to run at once */
	tw_duration last_deadline;
	uint64_t last_order;
};

struct model_alarm {
	atomic_flag lock;
	struct model *model;
	struct tw_alarm alarm;
	bool is_there;
	bool is_running;
	bool is_set;     /* by the last call that returned, and no run has begun since */
	bool is_closing; /* a function is to be called */
	bool is_closed;  /* it has been called */
	uint64_t runs;
	uint64_t runs_most;
	tw_duration low;
	tw_duration high; /* the last set's */
};

void act_start_timer(struct wheel_user *user);
void act_stop_timer(struct wheel_user *user);
void act_reset_timer(struct wheel_user *user);
void act_ask_timer(struct wheel_user *user);
void act_use_alarm(struct wheel_user *user);

/* Each of the user's calls for timers finds them in its set. */
void timer_set_begin(struct timer_set *timers, struct model_timer *memory, unsigned most);
void alarms_begin(struct wheel_user *user);
void alarms_create(struct wheel_user *user);
/* Destroys or closes each. */
void alarms_destroy(struct wheel_user *user);
/* Returns whether the `closed` functions have been called for all. Alarms may be created again
 * then. */
bool alarms_are_closed(struct wheel_user *user);
/* Checks the alarms after tw_destroy. */
void alarms_judge_end(struct wheel_user *user);
void timers_stop_all(struct wheel_user *user);
/* The argument of a timer comes back by a drain or a stop. */
void timer_give(const struct tw_task *task, enum model_way way);
int timer_visit(struct model *model, const struct tw_pending_timer *timer);

/* In the exact case the wheel has been driven, and all pending timers are about to leave it. */
void timers_judge_drive(struct wheel_user *user);
void timers_owe(struct wheel_user *user);
void timers_end_walk(struct wheel_user *user);
/* Checks that each argument got an owner; the wheel is destroyed. */
void timers_judge_end(struct model *model, struct timer_set *timers);
void alarms_judge_sleep(struct wheel_user *user, tw_duration slack, tw_duration until);

#endif
