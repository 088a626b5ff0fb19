/* SPDX-License-Identifier: MIT */
/*
 * A user is a thread that gives a wheel random calls, tells the model of them, and has the answers
 * judged. What it does is drawn by the program, of the acts below.
 */
#ifndef MODEL_WHEEL_USER_H
#define MODEL_WHEEL_USER_H

#include "support/random.h"
#include "wheel_model.h"
#include "wheel_timers.h"

struct wheel_user {
	/* Constant. */
	struct model *model;
	unsigned number; /* in its keys; below MODEL_USERS where it has timers */
	unsigned keys;
	bool is_shared; /* others command its keys too: nothing is known of the order of commands */
	bool is_loose;  /* and they move its values */
	size_t value_count;
	size_t value_size;
	unsigned windows; /* of a value, at most */
	void *values;
	struct timer_set *timers;
	void *argument; /* the program's */
	/* The thread's. */
	struct random random;
	atomic_flag lock; /* of one that is shared, for threads that are it by turns */
	size_t next_value;
	void **current; /* tokens by key: the last that were accepted */
	struct model_alarm alarms[MODEL_ALARMS];
	/* Of those of its timers that ran inline, and of their commands. */
	tw_duration last_tick;
	uint64_t last_order;
};

/* Allocates the values: the user has as many, each with so many windows. */
void wheel_user_open(struct wheel_user *user, struct model *model, unsigned number, unsigned keys,
		     size_t values, unsigned windows);
void wheel_user_close(struct wheel_user *user);

/* One of a program's acts, and how often it is drawn among the others. */
struct wheel_act {
	void (*act)(struct wheel_user *user);
	unsigned weight;
};

void wheel_user_act(struct wheel_user *user, const struct wheel_act *acts);

/* CALL(user, needs_place, tw_flush(wheel)): the status, judged, with all that goes with a call. */
#define USER_CALL(user, needs_place, expression)                                          \
	__extension__({                                                                   \
		bool call_was_stopped = user_call_begins(user, #expression, needs_place); \
		enum tw_status call_status = (expression);                                \
		user_call_ended(user, #expression, call_status, call_was_stopped);        \
		call_status;                                                              \
	})
bool user_call_begins(struct wheel_user *user, const char *call, bool needs_place);
void user_call_ended(struct wheel_user *user, const char *call, enum tw_status status,
		     bool was_stopped);

/* By key. */
void act_set(struct wheel_user *user);
void act_set_at(struct wheel_user *user);
void act_set_many(struct wheel_user *user);
void act_add(struct wheel_user *user);
void act_move(struct wheel_user *user);
void act_move_many(struct wheel_user *user);
void act_remove(struct wheel_user *user);
void act_remove_many(struct wheel_user *user);
void act_ask(struct wheel_user *user);
void act_take(struct wheel_user *user);

/* Keys from the first on, at most as many as a batch has. Returns how many were accepted. */
enum { BATCH_MOST = 40 };
size_t act_set_range(struct wheel_user *user, unsigned first, size_t count, tw_duration delay);
size_t act_remove_range(struct wheel_user *user, unsigned first, size_t count);

/* For all keys and timers. */
void act_flush(struct wheel_user *user);
void act_wait_idle(struct wheel_user *user);
/* Waits until a deadline soon; not where the model is exact. */
void act_wait_idle_until(struct wheel_user *user);
void act_drain(struct wheel_user *user);
void act_stop(struct wheel_user *user);
void act_look_at_stats(struct wheel_user *user);
void act_give_memory_back(struct wheel_user *user);
/* A manual clock, or a wheel that callers drive. */
void act_advance(struct wheel_user *user, tw_duration by);
void act_poll(struct wheel_user *user);
void act_walk(struct wheel_user *user);

#endif
