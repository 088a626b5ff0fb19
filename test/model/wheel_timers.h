/* SPDX-License-Identifier: MIT */
/*
 * Timers by handle and alarms: random calls for them, and what is known of each. A timer's runs do
 * not overlap; it does not run early, nor after it was stopped; and its argument becomes somebody's
 * once: by its last run, its stop, or what drains or stops the wheel. In the exact case (see
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

/* A timer by handle; its argument. */
struct model_timer {
	atomic_flag lock;
	struct model *model;
	enum timer_kind kind;
	bool is_accepted;
	bool is_running;
	bool ends; /* its schedule, after a few runs; nobody stops it */
	struct tw_timer timer;
	tw_duration low; /* of the next run; resets under way may bring it sooner */
	tw_duration period;
	tw_duration low_reset;              /* by resets since the last run began */
	tw_duration asked[MODEL_USERS + 1]; /* by resets under way, of each user and its own run */
	uint64_t resets_begun;
	uint64_t resets; /* by others than its own run; accepted, or under way */
	uint64_t runs;
	uint64_t runs_most;
	uint64_t drains; /* over before it was set */
	uint64_t own_resets;
	unsigned stops; /* begun */
	unsigned given; /* how often the argument has become somebody's */
	/* Of the exact case. */
	bool is_armed;
	bool at_once; /* when the wheel is next driven */
	bool is_told; /* by a walk */
	bool is_owed; /* that drain or stop is to give it back */
	tw_duration deadline;
	uint64_t order; /* of its last command or run */
	bool is_moved;  /* that was a reset: the timer keeps no order with others of its tick */
};

/* The timers that some users share: each may stop and reset those of the others. */
struct timer_set {
	unsigned most;
	bool is_reused; /* those that have ended are set anew: only their setter resets them */
	bool may_repeat;
	bool may_end; /* schedules by themselves: where nothing stops or drains the wheel */
	tw_duration period_least;
	_Atomic unsigned count;
	struct model_timer *timers;
	/* Of the exact case. */
	tw_duration last_time;
	uint64_t last_order;
};

struct model_alarm {
	atomic_flag lock;
	struct model *model;
	struct tw_alarm *alarm;
	bool is_running;
	bool is_set;     /* by the last call that came back, and has not begun since */
	bool is_closing; /* a function is to be called */
	bool is_closed;  /* it has been called */
	uint64_t runs;
	uint64_t runs_most;
	tw_duration low;
	tw_duration high; /* of the last set */
};

void act_start_timer(struct wheel_user *user);
void act_stop_timer(struct wheel_user *user);
void act_reset_timer(struct wheel_user *user);
void act_stop_timers(struct wheel_user *user);
void act_reset_timers(struct wheel_user *user);
void act_ask_timer(struct wheel_user *user);
void act_use_alarm(struct wheel_user *user);

/* Each of the user's calls for timers finds them in its set. */
void timer_set_begin(struct timer_set *timers, struct model_timer *memory, unsigned most);
void alarms_begin(struct wheel_user *user);
void alarms_create(struct wheel_user *user);
/* Destroys or closes each. */
void alarms_destroy(struct wheel_user *user);
/* Returns whether all that closes are to call has been called. Alarms may be created again then. */
bool alarms_are_closed(struct wheel_user *user);
/* After tw_destroy. */
void alarms_judge_end(struct wheel_user *user);
void timers_stop_all(struct wheel_user *user);
/* The argument of a timer comes back by a drain or a stop. */
void timer_give(const struct tw_task *task, enum model_way way);
int timer_visit(struct model *model, const struct tw_pending_timer *timer);

/* In the exact case: the wheel has been driven; all pending timers are about to leave it. */
void timers_judge_drive(struct wheel_user *user);
void timers_owe(struct wheel_user *user);
void timers_end_walk(struct wheel_user *user);
/* The wheel is destroyed: each argument is somebody's. */
void timers_judge_end(struct model *model, struct timer_set *timers);
void alarms_judge_sleep(struct wheel_user *user, tw_duration slack, tw_duration until);

#endif
