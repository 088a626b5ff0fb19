/* SPDX-License-Identifier: MIT */
/*
 * A wheel that is too simple to be wrong: an array of keys. It foretells the events of a real one
 * that is driven by the caller, with inline tasks, on the manual clock.
 *
 * A command is given to the model when it is given to the wheel, and applied when the wheel must
 * have applied it: before the next event, and before a call that drives the wheel returns. What a
 * command causes at once (a release, a drain, a task that is past due) is queued as expected. When
 * nothing is, the next event must be the armed timer with the earliest tick; of these, the one
 * whose last command is the oldest. One thing is left open: whether a timer that a task set in the
 * past runs before or after the others of that tick.
 */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <timingwheel/timingwheel.h>

#include "recorder.h"

enum command_kind {
	COMMAND_SET,
	COMMAND_SET_AT,
	COMMAND_MOVE,
	COMMAND_REMOVE,
	COMMAND_DRAIN,
	/* These have an answer. */
	COMMAND_CONTAINS,
	COMMAND_ADD,
	COMMAND_TAKE
};

/* What a command finds under its key when it is applied. */
struct found {
	bool armed;
	tw_duration deadline;
	uint32_t value;
};

struct command {
	enum command_kind kind;
	uint32_t key;
	uint32_t value;
	tw_duration time;    /* delay or deadline, as given to the wheel */
	bool in_task;        /* given in one */
	struct found *found; /* or NULL: written when it is applied */
};

struct expected {
	enum event_kind kind;
	enum tw_reason reason;
	uint32_t key;
	uint32_t value;
	tw_duration deadline;
	tw_duration lateness;
	uint64_t group; /* those of one group come in any order */
};

struct expected_queue {
	struct expected *events; /* from first on */
	size_t first;
	size_t count;
	size_t capacity;
};

/* A command, and what it means at the time when it is given. */
struct dated_command {
	struct command command;
	tw_duration deadline; /* not rounded to a tick */
	int64_t tick;         /* at which it may run: later for a set under one interval */
	bool at_once;         /* runs when it is applied */
};

struct model {
	uint32_t keys;
	tw_duration interval;
	tw_duration now;
	int64_t target_tick; /* of the advance under way */
	uint32_t armed;      /* timers */
	uint64_t orders;     /* timers armed so far */
	uint64_t groups;     /* of expected events so far */

	/* By key. */
	int64_t *tick; /* MODEL_NOT_ARMED; MODEL_NEVER */
	uint64_t *order;
	tw_duration *deadline;
	uint32_t *value;

	struct dated_command *commands; /* given and not yet applied */
	size_t command_count;
	size_t command_capacity;
	struct expected_queue expected;
	/* Set in the past by tasks: they come in this order, at any time of the tick. */
	struct expected_queue overdue;
};

#define MODEL_NOT_ARMED INT64_MIN
#define MODEL_NEVER INT64_MAX

struct model *model_create(uint32_t keys, tw_duration interval);
void model_destroy(struct model *model);

void model_give(struct model *model, const struct command *command);
void model_apply_all(struct model *model);
void model_stop(struct model *model);

/* The clock will move to that time; and it has. */
void model_begin_advance(struct model *model, tw_duration target);
void model_end_advance(struct model *model, tw_duration target);

/*
 * The event that comes now, when one with this value was met. False: nothing was to come. The
 * model's clock moves on to it.
 */
bool model_foretell(struct model *model, uint32_t met_value, struct expected *expected);
/* An event that should have come by now; NULL: none. Timers that tasks set in the past apart. */
const struct expected *model_missing(struct model *model);
const struct expected *model_overdue(const struct model *model);
/* Time of the next tick at which a timer runs, however far; TW_FOREVER: none will. */
tw_duration model_next_time(const struct model *model);

#endif
