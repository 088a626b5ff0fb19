/* SPDX-License-Identifier: MIT */
/*
 * This layout is one wheel of slots, as in go-zero and Netty. A timer lies in slot tick % slots and
 * waits there for its round.
 *
 * Invariants:
 *   earliest at leaf s is after now, and not after the tick of any timer in slot s
 *   earliest at an inner node is the lesser of earliest at its two children
 *
 * go-zero counts rounds down in each timer, and errs by a lap when a timer is moved across the
 * hand. Here the timer's deadline decides its round.
 *
 * When a slot comes up, wheel_expire() examines all its timers, a bounded number a call, and puts
 * those of later rounds back. So a timer may cost an examination each lap: this is why levels are
 * the default.
 *
 * The slot goes to `due` as a whole: only an examination finds the timers of later rounds, and
 * later ticks must be able to overtake the rest of the slot.
 *
 * Empty ticks cost nothing. Each slot has the earliest tick filed in it since it was last empty or
 * came up. A tournament tree over the slots has the minimum: the next tick at which a slot must
 * come up. Removing or moving a timer does not change its slot's earliest tick while other timers
 * are in the slot; the slot then comes up once in vain.
 *
 * The tree has complements, so that zeroed memory means that there is no timer.
 */
#include <assert.h>
#include <stdlib.h>

#include "wheel_layout.h"

struct wheel_rounds {
	struct wheel wheel;
	size_t slot_count;
	struct list *slots;
	size_t leaves;  /* a power of two, at least slot_count */
	uint64_t *tree; /* ~ earliest; node 1 is the root; node n has children 2n and 2n + 1 */
};

static struct wheel_rounds *rounds_of(struct wheel *wheel)
{
	return (struct wheel_rounds *)wheel;
}

static uint64_t earliest_at(const struct wheel_rounds *rounds, size_t node)
{
	return ~rounds->tree[node];
}

static uint64_t earliest_below(const struct wheel_rounds *rounds, size_t node)
{
	uint64_t left = earliest_at(rounds, 2 * node);
	uint64_t right = earliest_at(rounds, 2 * node + 1);

	return left < right ? left : right;
}

static void rounds_set_earliest(struct wheel_rounds *rounds, size_t slot, uint64_t tick)
{
	size_t node = rounds->leaves + slot;

	rounds->tree[node] = ~tick;
	for (node /= 2; node >= 1; node /= 2) {
		uint64_t earliest = earliest_below(rounds, node);

		if (earliest_at(rounds, node) == earliest)
			break;
		rounds->tree[node] = ~earliest;
	}
}

static void rounds_place(struct wheel *wheel, struct timer *timer, uint64_t tick)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t slot = (size_t)(tick % rounds->slot_count);

	wheel_link(wheel, &rounds->slots[slot], timer);
	if (tick < earliest_at(rounds, rounds->leaves + slot))
		rounds_set_earliest(rounds, slot, tick);
}

static uint64_t rounds_next_tick(struct wheel *wheel)
{
	return earliest_at(rounds_of(wheel), 1);
}

static void rounds_take_slots(struct wheel *wheel)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t slot = (size_t)(wheel->now % rounds->slot_count);

	assert(earliest_at(rounds, 1) >= wheel->now);
	if (earliest_at(rounds, rounds->leaves + slot) > wheel->now)
		return;
	rounds_set_earliest(rounds, slot, TICK_NONE);
	wheel_take_due(wheel, &rounds->slots[slot]);
}

static void rounds_emptied(struct wheel *wheel, struct list *list)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	/* For a list that is no slot this is at least slot_count. */
	size_t slot = ((uintptr_t)list - (uintptr_t)rounds->slots) / sizeof(*list);

	if (slot < rounds->slot_count)
		rounds_set_earliest(rounds, slot, TICK_NONE);
}

static size_t rounds_check(struct wheel *wheel)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t count = 0;

	for (size_t i = 0; i < rounds->slot_count; i++) {
		uint64_t earliest = earliest_at(rounds, rounds->leaves + i);

		assert(earliest > wheel->now);
		count += wheel_check_list(wheel, &rounds->slots[i], earliest);
	}
	for (size_t node = 1; node < rounds->leaves; node++)
		assert(earliest_at(rounds, node) == earliest_below(rounds, node));
	return count;
}

struct wheel *wheel_rounds_create(size_t slots, bool ordered)
{
	static const struct wheel_layout layout = {.place = rounds_place,
						   .next_tick = rounds_next_tick,
						   .take_slots = rounds_take_slots,
						   .emptied = rounds_emptied,
						   .check = rounds_check};
	struct wheel_rounds *rounds;
	size_t leaves = 2;

	while (leaves < slots)
		leaves *= 2;
	rounds = calloc(1, sizeof(*rounds));
	if (!rounds)
		return NULL;
	rounds->slot_count = slots;
	rounds->leaves = leaves;
	if (!pages_map(&rounds->wheel.pages,
		       slots * sizeof(*rounds->slots) + 2 * leaves * sizeof(*rounds->tree))) {
		free(rounds);
		return NULL;
	}
	rounds->slots = (struct list *)(void *)rounds->wheel.pages.memory;
	rounds->tree = (uint64_t *)(void *)(rounds->slots + slots);
	wheel_init(&rounds->wheel, &layout, ordered);
	return &rounds->wheel;
}
