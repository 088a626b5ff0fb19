/* SPDX-License-Identifier: MIT */
/*
 * The order of a walk is one that no change of the timers changes: a place in it is a number, and
 * is kept by the caller, so the owner remembers nothing of a walk between two steps.
 *
 * Timers with keys come first, by the hash of their key with its bits reversed. The timers of a
 * bucket have the low bits of the hash in common, all or all but the highest of those that
 * select a bucket: reversed, that is an interval, however often the index grows or shrinks. A split
 * cuts the interval in two, a merge joins two. So a step begins in the bucket that has the
 * position, leaves out what is before it, and ends where the bucket's interval ends.
 *
 * Handles come then, by the number of their memory, which is that of their id. A handle stays where
 * it is. Free memory is skipped by the slab's sets of what is free, so a walk costs what is in use,
 * not what once was; handles that are not pending are passed over one by one.
 * The walk ends where the table ended when the walk began: what lies behind came later. So it ends
 * however many come.
 *
 * Invariants: a timer has one place in the order as long as it lives, whatever its deadline; a step
 * meets all that are pending from its first place to its last; positions rise.
 */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

enum { TIMERS_A_STEP = 128, KEY_BYTES = 16384 };

/* Where the handles begin. */
static const uint64_t first_handle = (uint64_t)1 << 32;

void walk_destroy(struct walk *walk)
{
	free(walk->timers);
	free(walk->keys);
}

/* Makes room for `count` timers and `bytes` of keys, where none is copied. Returns false if there
 * is no memory; then `room` is 0. */
static bool walk_reserve(struct walk *walk, size_t count, size_t bytes)
{
	walk_destroy(walk);
	walk->room = count > TIMERS_A_STEP ? count : TIMERS_A_STEP;
	walk->bytes = bytes > KEY_BYTES ? bytes : KEY_BYTES;
	walk->timers = calloc(walk->room, sizeof(*walk->timers));
	walk->keys = malloc(walk->bytes);
	if (!walk->timers || !walk->keys)
		walk->room = 0;
	return walk->room > 0;
}

static uint32_t reversed(uint32_t bits)
{
	bits = (bits & 0x55555555) << 1 | (bits >> 1 & 0x55555555);
	bits = (bits & 0x33333333) << 2 | (bits >> 2 & 0x33333333);
	bits = (bits & 0x0f0f0f0f) << 4 | (bits >> 4 & 0x0f0f0f0f);
	return __builtin_bswap32(bits);
}

/* The timers of a bucket from the position on. */
struct stretch {
	struct keyed_timer *first; /* or NULL */
	uint32_t position;
	uint64_t end;
};

/* Returns the first from `timer` on in its chain that is not before the position, or NULL. */
static struct keyed_timer *stretch_from(const struct stretch *stretch, struct keyed_timer *timer)
{
	while (timer && reversed(timer->hh.hashv) < stretch->position)
		timer = timer_index_next_in_bucket(timer);
	return timer;
}

static struct stretch stretch_at(const struct timer_index *index, uint32_t position)
{
	struct stretch stretch = {.position = position};
	unsigned bits;

	stretch.first =
		stretch_from(&stretch, timer_index_bucket(index, reversed(position), &bits));
	stretch.end = (position | (uint64_t)UINT32_MAX >> bits) + 1;
	return stretch;
}

static struct keyed_timer *stretch_next(const struct stretch *stretch,
					const struct keyed_timer *timer)
{
	return stretch_from(stretch, timer_index_next_in_bucket(timer));
}

static struct tw_pending_timer keyed_view(const struct keyed_timer *timer)
{
	return (struct tw_pending_timer){.key = timer->hh.key,
					 .key_size = timer->hh.keylen,
					 .value = timer->timer.value,
					 .deadline = timer->timer.deadline};
}

static struct tw_pending_timer handle_view(const struct alarm *alarm, tw_duration deadline)
{
	struct tw_task task = {0};

	handle_describe(alarm, &task);
	return (struct tw_pending_timer){
		.value = alarm->timer.value,
		.deadline = deadline,
		.timer = task.timer,
		.run = task.run,
		.period = alarm->timer.class == TIMER_PERIODIC ? alarm->schedule->period : 0};
}

/* Returns whether a handle that the owner has is pending: not stopped, nor stale, nor on its way to
 * the wheel. Then *deadline is set. */
static bool handle_is_pending(struct alarm *alarm, const struct pending *pending,
			      tw_duration *deadline)
{
	uint64_t generation;

	return timer_place(&alarm->timer) == TIMER_IN_WHEEL &&
	       !pending_is_stale(pending, &alarm->timer) &&
	       alarm_state(alarm, &generation, deadline) == ALARM_IS_FILED;
}

/* Returns whether there is room for the stretch; where nothing is copied yet, it is made. */
static bool walk_has_room(struct walk *walk, const struct stretch *stretch)
{
	size_t count = walk->count;
	size_t bytes = walk->used;

	for (const struct keyed_timer *timer = stretch->first; timer;
	     timer = stretch_next(stretch, timer)) {
		count++;
		bytes += timer->hh.keylen;
	}
	return (count <= walk->room && bytes <= walk->bytes) ||
	       (walk->count == 0 && walk_reserve(walk, count, bytes));
}

static void walk_copy(struct walk *walk, const struct stretch *stretch,
		      const struct pending *pending)
{
	for (const struct keyed_timer *timer = stretch->first; timer;
	     timer = stretch_next(stretch, timer)) {
		struct tw_pending_timer *copy = &walk->timers[walk->count];

		if (pending_is_stale(pending, &timer->timer))
			continue;
		walk->count++;
		*copy = keyed_view(timer);
		memcpy(walk->keys + walk->used, copy->key, copy->key_size);
		copy->key = walk->keys + walk->used;
		walk->used += copy->key_size;
	}
}

/* Copies timers with keys. Returns false if the step ends here. */
static bool walk_keys(struct walk *walk, const struct pending *pending)
{
	for (int looks = 0; walk->position < first_handle; looks++) {
		struct stretch stretch;

		if (looks == BUCKETS_A_STEP)
			return false;
		stretch = stretch_at(&pending->index, (uint32_t)walk->position);
		if (!walk_has_room(walk, &stretch))
			return false;
		walk_copy(walk, &stretch, pending);
		walk->position = stretch.end;
	}
	return true;
}

static void walk_handles(struct walk *walk, const struct pending *pending,
			 struct handle_table *handles)
{
	struct handle_scan scan = {.number = walk->position - first_handle,
				   .end = walk->handles,
				   .looks = HANDLES_A_STEP};
	struct alarm *alarm;
	tw_duration deadline;

	while (walk->count < walk->room && (alarm = handle_next(handles, &scan)))
		if (handle_is_pending(alarm, pending, &deadline))
			walk->timers[walk->count++] = handle_view(alarm, deadline);
	walk->position = scan.number < scan.end ? first_handle + scan.number : WALK_END;
}

bool walk_step(struct walk *walk, const struct pending *pending, struct handle_table *handles)
{
	walk->count = 0;
	walk->used = 0;
	if (walk->position == 0)
		walk->handles = handle_table_end(handles);
	if ((walk->room > 0 || walk_reserve(walk, 0, 0)) && walk_keys(walk, pending))
		walk_handles(walk, pending, handles);
	return walk->room > 0;
}
