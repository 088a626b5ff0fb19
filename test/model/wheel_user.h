/* SPDX-License-Identifier: MIT */
/*
 * A user is a thread that makes random calls to a wheel, reports them to the model, and has the
 * answers checked. The program draws its acts from those below.
 */
#ifndef MODEL_WHEEL_USER_H
#define MODEL_WHEEL_USER_H

#include "support/random.h"
#include "wheel_model.h"
#include "wheel_timers.h"

struct wheel_user {
	/* These are constant. */
	struct model *model;
	unsigned number; /* used in its keys; below MODEL_USERS where it has timers */
	unsigned keys;
	bool is_shared; /* others command its keys, too: the order of commands is not known */
	bool is_loose;  /* others also move its values */
	size_t value_count;
	size_t value_size;
	unsigned windows; /* maximum per value */
	void *values;
	struct timer_set *timers;
	void *argument; /* the program's */
	/* These are the thread's. */
	struct random random;
	atomic_flag lock; /* used if threads share the user in turn */
	size_t next_value;
	void **current; /* tokens by key: the last accepted ones */
	struct model_alarm alarms[MODEL_ALARMS];
	/* These are the last tick, deadline and order of its timers that ran inline. */
	tw_duration last_tick;
	tw_duration last_deadline;
	uint64_t last_order;
};

/* Allocates the user's `values` values, with `windows` windows each. */
void wheel_user_open(struct wheel_user *user, struct model *model, unsigned number, unsigned keys,
		     size_t values, unsigned windows);
void wheel_user_close(struct wheel_user *user);

/* An act of a program has a weight among the others. */
struct wheel_act {
	void (*act)(struct wheel_user *user);
	unsigned weight;
};

void wheel_user_act(struct wheel_user *user, const struct wheel_act *acts);

/* CALL(user, tw_flush(wheel)) makes the call, checks its status, and does what goes
 * with a call. */
#define USER_CALL(user, expression)                                                \
	__extension__({                                                            \
		bool call_was_stopped = user_call_begins(user, #expression);       \
		enum tw_status call_status = (expression);                         \
		user_call_ended(user, #expression, call_status, call_was_stopped); \
		call_status;                                                       \
	})
bool user_call_begins(struct wheel_user *user, const char *call);
void user_call_ended(struct wheel_user *user, const char *call, enum tw_status status,
		     bool was_stopped);

/* These are calls by key. */
void act_set(struct wheel_user *user);
/* Sets some keys, at most CROWD_MOST, to be due together. */
enum { CROWD_MOST = 40 };
void act_set_crowd(struct wheel_user *user);
void act_add(struct wheel_user *user);
void act_move(struct wheel_user *user);
void act_remove(struct wheel_user *user);
void act_ask(struct wheel_user *user);
void act_take(struct wheel_user *user);

/* These are for a given key. They return whether the call was accepted. */
bool act_set_key(struct wheel_user *user, unsigned key, tw_duration delay);
bool act_remove_key(struct wheel_user *user, unsigned key);

/* These are for all keys and timers. */
void act_flush(struct wheel_user *user);
void act_wait_idle(struct wheel_user *user);
/* Waits until a deadline soon, unless the model is exact. */
void act_wait_idle_until(struct wheel_user *user);
void act_drain(struct wheel_user *user);
void act_stop(struct wheel_user *user);
void act_look_at_stats(struct wheel_user *user);
/* Advances a manual clock, or a wheel that callers drive. */
void act_advance(struct wheel_user *user, tw_duration by);
void act_poll(struct wheel_user *user);
void act_walk(struct wheel_user *user);

#endif
