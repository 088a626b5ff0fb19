/* SPDX-License-Identifier: MIT */
/*
 * A queue age is how long the oldest command in the queue has waited, at most, at no cost to the
 * threads that give commands: the owner notes the queue's tail with the time; once the head is
 * there, all commands given before that time have been applied. Times are CLOCK_MONOTONIC's.
 *
 * The owner that falls asleep says that nothing waits: otherwise the first command after an hour
 * would look an hour old. The thread that wakes it says since when something may wait, or, where
 * something else did, the owner itself.
 */
#ifndef QUEUE_AGE_H
#define QUEUE_AGE_H

#include <stdatomic.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "command_queue.h"

struct queue_age {
	/* Any thread: no command waits that was given before; TW_FOREVER: none waits, the owner
	 * sleeps. A statistic: relaxed, orders nothing. */
	_Atomic tw_duration since;
	/* The owner's. */
	uint64_t noted_tail;
	tw_duration noted_at;
};

static inline void queue_age_init(struct queue_age *age, tw_duration now)
{
	*age = (struct queue_age){.noted_at = now};
	atomic_init(&age->since, now);
}

/* The owner: at the end of a turn. */
static inline void queue_age_note(struct queue_age *age, struct command_queue *queue,
				  tw_duration now)
{
	uint64_t head = command_queue_head(queue);

	if (head < age->noted_tail)
		return;
	/* relaxed: see above. */
	if (age->noted_at > atomic_load_explicit(&age->since, memory_order_relaxed))
		atomic_store_explicit(&age->since, age->noted_at, memory_order_relaxed);
	age->noted_tail = command_queue_tail(queue);
	age->noted_at = now;
	if (age->noted_tail == head)
		atomic_store_explicit(&age->since, now, memory_order_relaxed);
}

/* The owner: it has announced its sleep, and the queue was empty after that. */
static inline void queue_age_begin_sleep(struct queue_age *age)
{
	/* relaxed: see above. */
	atomic_store_explicit(&age->since, TW_FOREVER, memory_order_relaxed);
}

/* Any thread that is about to wake the owner, and the owner before a turn. */
static inline void queue_age_end_sleep(struct queue_age *age, tw_duration now)
{
	tw_duration asleep = TW_FOREVER;

	/* relaxed: see above. */
	if (atomic_load_explicit(&age->since, memory_order_relaxed) == asleep)
		(void)atomic_compare_exchange_strong_explicit(
			&age->since, &asleep, now, memory_order_relaxed, memory_order_relaxed);
}

/* Any thread: where the queue was seen not to be empty at that time. */
static inline tw_duration queue_age_read(const struct queue_age *age, tw_duration now)
{
	/* relaxed: see above. */
	tw_duration since = atomic_load_explicit(&age->since, memory_order_relaxed);

	return now > since ? now - since : 0;
}

#endif
