/* SPDX-License-Identifier: MIT */
/*
 * The model of a wheel knows what may become of each value that the wheel was given. Each user
 * (wheel_user.h) has keys of its own, so that the commands for a key are known in their order; the
 * wheel decides alone whether a timer ran before or after a command.
 *
 * Each value that the wheel accepted follows these laws:  - it comes back once, and a refused value
 * never does;  - it runs at a deadline that a command gave it, and not before: each command has a
 * window of
 *    the deadlines it can have given, for the clock was read before and after the call;
 *  - a flush removes the windows that were still to come and that a later command has undone;  -
 * after an idle wait all values are back that were due or undone before;  - questions about its key
 * get the model's answer, where the model knows.
 *
 * The model is exact where no call overlaps another: one thread drives the wheel, with inline
 * tasks, on the manual clock. Each window is one deadline then, and only the last command is in
 * force. All events are known in their order: immediate effects of commands come in the order of
 * the commands, and before all else; the others run in their tick, and in it by their last
 * commands. One thing is left open: whether a timer that a task set in the past runs before or
 * after the others of that tick.
 *
 * Any thread may report events to the model. A value's lock orders no more than the value's own
 * events, so that the thread sanitizer finds accesses that the wheel leaves unordered.
 */
#ifndef MODEL_WHEEL_MODEL_H
#define MODEL_WHEEL_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <timingwheel/timingwheel.h>

struct model;
struct wheel_user;

/* A way is how a value comes back. */
enum model_way { WAY_REPLACED, WAY_REMOVED, WAY_STOPPED, WAY_RUN, WAY_DRAINED, WAY_TAKEN, WAYS };

/* The program gives the model these functions. All but `fail` and `draw_delay` may be NULL. */
struct model_hooks {
	void (*fail)(struct model *model, const char *text);
	/* Draws a delay of at least 1. */
	tw_duration (*draw_delay)(struct wheel_user *user);
	void (*call_begins)(struct wheel_user *user, const char *call);
	void (*call_ended)(struct wheel_user *user, const char *call, enum tw_status status);
	/* Acts in a task, release or drain function that has been checked. */
	void (*in_task)(struct model *model, enum model_way way, const struct tw_task *task);
	void (*trace)(const char *format, ...) __attribute__((format(printf, 1, 2)));
};

/* Owed values must come back before all else, in the exact case. */
struct owed {
	void *token;
	enum model_way way;
	uint64_t group; /* values of one group come in any order */
};

struct model {
	/* These are constant while the wheel is used. */
	struct tw_wheel *wheel;
	struct tw_options options;
	tw_duration interval;
	bool is_exact;
	const struct model_hooks *hooks;
	struct wheel_user *users;
	unsigned user_count;
	/* Any thread may use these. */
	_Atomic uint64_t commands;
	_Atomic uint64_t drains_begun;
	_Atomic uint64_t drains_ended;
	atomic_uint
		takes; /* takes under way: their values may be out of the wheel, and not yet back */
	atomic_bool stop_begun;
	atomic_bool stop_ended;
	atomic_bool is_quiet; /* stopped, and waited for: no task may begin */
	_Atomic uint64_t given;
	_Atomic uint64_t back[WAYS];
	/* These are for the exact case. */
	tw_duration now;
	tw_duration target; /* the current drive's */
	size_t pending;
	bool in_task;
	struct owed *owed;
	size_t owed_first;
	size_t owed_count;
	size_t owed_most;
	uint64_t groups;
};

/* Makes the model's wheel: its context, release and execute functions are the model's. */
enum tw_status model_begin(struct model *model, tw_duration interval, size_t slots,
			   const struct tw_options *options);
/* Ends the model. The users are those from `users` on. */
void model_end(struct model *model);

void model_fail(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
tw_duration model_now(const struct model *model);
bool model_is_manual(const struct model *model);
/* Returns how many values have not come back. */
uint64_t model_open(struct model *model);

/* ---- Values. A token is a value as the wheel sees it ---- */

/* Offers a value of the key, which runs from `low` on. Returns NULL if all are in use. */
void *model_offer(struct wheel_user *user, unsigned key, tw_duration low);
/* The call has ended: the value was taken with a deadline up to `high`. */
void model_accept(struct wheel_user *user, unsigned key, void *token, tw_duration high);
void model_refuse(struct model *model, void *token);

/* Values of timers by handle have no key: they run this, once. */
#define MODEL_NO_KEY UINT32_MAX
void model_run_once(void *token);

/* A move of the user's key by that delay begins. Returns its order, or 0 if nothing is known to be
 * there. The last of several moves to begin is the first to end. */
uint64_t model_move_begin(struct wheel_user *user, unsigned key, tw_duration delay);
void model_move_end(struct wheel_user *user, unsigned key, uint64_t order, tw_duration delay,
		    bool is_accepted);

/* A command has replaced or removed the value of the user's key, or a drain or stop has taken
 * it. */
void model_undo(struct wheel_user *user, unsigned key, enum model_way way);
/* All commands of the user have been applied by now. */
void model_strike(struct wheel_user *user, tw_duration now);
/* A value comes back that way. */
void model_return(struct model *model, void *token, enum model_way way, const struct tw_task *task);

/* A look has what is known of a key before a question about it. */
struct model_look {
	void *token;
	bool was_there; /* certain in the exact case; otherwise it may have left since then */
	tw_duration before;
	tw_duration deadline; /* in the exact case */
};

struct model_look model_look(struct wheel_user *user, unsigned key);
/* Checks the answer. `left` is the time that remains, or -1. */
void model_judge_look(struct wheel_user *user, unsigned key, const struct model_look *look,
		      bool is_found, tw_duration left);

/* An idle wait has ended; it began at `before`, after `commands` commands. */
void model_judge_idle(struct wheel_user *user, tw_duration before, uint64_t commands,
		      bool was_stopped);
/* The wheel is destroyed. */
void model_judge_end(struct model *model);
/* All threads sleep until then: no value may be due for longer than `slack`. */
void model_judge_sleep(struct model *model, tw_duration slack, tw_duration until);

/* ---- The exact case ---- */

/* Begins a group: values that leave the wheel in any order. */
void model_begin_group(struct model *model);
/* These surround a call that drives the wheel up to `target`. */
void model_begin_drive(struct model *model, tw_duration target);
void model_end_drive(struct model *model);
/* Returns the time of the next tick at which a timer runs, or TW_FOREVER if none will. */
tw_duration model_next_time(const struct model *model);

/* ---- Names of keys ---- */

struct model_name {
	unsigned char bytes[48];
	size_t size; /* differs from key to key; some are longer than a cell of the queue takes */
};

struct model_name model_name(unsigned user, unsigned key);

/* These are for tw_drain and tw_each, with the model as context. */
void model_drain(void *model, const struct tw_task *task);
int model_visit(void *model, const struct tw_pending_timer *timer);
/* Checks that the walk, which has ended, was complete, in the exact case. */
void model_end_walk(struct model *model);

#endif
