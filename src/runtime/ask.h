/* SPDX-License-Identifier: MIT */
/* What the public calls share: the wheel itself, and how to give its owner a command, to ask it
 * something, and to do its work. */
#ifndef ASK_H
#define ASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/event_count.h"
#include "base/fork_guard.h"
#include "base/key.h"
#include "owner_state.h"

struct tw_wheel {
	/* Constant after tw_create. */
	struct fork_guard guard; /* closed by a stop */
	struct key_hash_seed seed;
	enum tw_drive drive;
	uint64_t wake_mask; /* a napping owner is woken twice a lap of the queue */
	bool waits_when_full;
	/* Any thread. */
	_Alignas(CACHE_LINE) _Atomic uint64_t refused; /* statistic */
	struct owner owner;
};

static inline bool wheel_is_open(const struct tw_wheel *wheel)
{
	return fork_guard_is_open(&wheel->guard);
}

/* Returns TW_OK; TW_INVALID: there is no wheel; TW_CLOSED: it is stopped, or left behind in a
 * fork's child. */
static inline enum tw_status wheel_state(const struct tw_wheel *wheel)
{
	if (!wheel)
		return TW_INVALID;
	return wheel_is_open(wheel) ? TW_OK : TW_CLOSED;
}

/* Returns as wheel_state(), for calls that a stopped wheel takes, too. */
static inline enum tw_status wheel_presence(const struct tw_wheel *wheel)
{
	return fork_guard_is_left_behind(&wheel->guard) ? TW_CLOSED : TW_OK;
}

static inline void wheel_wake(struct tw_wheel *wheel)
{
	event_count_notify(&wheel->owner.event, EVENT_COUNT_NAPPING);
}

/* The queue is full: waits for a cell or fails. */
enum tw_status wheel_wait_for_cell(struct tw_wheel *wheel, struct command_cell **cell,
				   uint64_t *position);

/* Claims a cell of the queue, to fill and publish; waits or fails when the queue is full. */
static inline enum tw_status wheel_claim(struct tw_wheel *wheel, struct command_cell **cell,
					 uint64_t *position)
{
	*cell = command_queue_claim(&wheel->owner.queue, position);
	return *cell ? TW_OK : wheel_wait_for_cell(wheel, cell, position);
}

/* Publishes the command in the cell and notifies the owner. */
static inline void wheel_publish(struct tw_wheel *wheel, struct command_cell *cell,
				 uint64_t position)
{
	bool half_full = (position & wheel->wake_mask) == 0;

	command_queue_publish(cell, position);
	owner_note_call(&wheel->owner);
	event_count_notify(&wheel->owner.event,
			   half_full ? EVENT_COUNT_NAPPING : EVENT_COUNT_SLEEPING);
}

/* An alarm was changed. `is_listed` says that it has come into an inbox, `for_now` that something
 * is to be done with it now. */
static inline void wheel_note_change(struct tw_wheel *wheel, bool is_listed, bool for_now)
{
	if (is_listed)
		owner_note_call(&wheel->owner);
	if (for_now)
		event_count_hurry(&wheel->owner.event);
	else if (is_listed)
		event_count_notify(&wheel->owner.event, EVENT_COUNT_SLEEPING);
}

/* A limit has been reached: counts it and returns TW_FULL. */
enum tw_status wheel_refuse(struct tw_wheel *wheel);

/* Waits until all that is due has been done, and the commands that it gave are applied, or until
 * `deadline`: TW_TIMED_OUT. */
enum tw_status wheel_wait_idle(struct tw_wheel *wheel, tw_duration deadline);

/* Asks the owner, which sees the caller's commands before, and waits for the answer. Where the
 * caller is the owner, in an inline task: only what the owner answers at once. */
enum tw_status wheel_ask(struct tw_wheel *wheel, struct question *question);
/* Whether the caller runs in a task, release or drain function of this wheel. */
bool wheel_is_in_task(struct tw_wheel *wheel);

#endif
