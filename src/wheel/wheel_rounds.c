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
 * When a slot comes up, it goes to `due` as a whole. wheel_expire() examines all its timers, a
 * bounded number a call, and puts those of later rounds back. So a timer may cost an examination
 * each lap: this is why levels are the default.
 *
 * Empty ticks cost nothing. Each slot has the earliest tick filed in it since it was last empty or
 * came up. A tournament tree over the slots has the minimum: the next tick at which a slot must
 * come up. Removing or moving a timer leaves that: the slot comes up in vain, unless it is empty.
 */
#include "wheel_layout.h"

#include <assert.h>

static uint64_t earliest_at(const struct rounds *rounds, size_t node)
{
	return ~rounds->tree[node];
}

static uint64_t earliest_below(const struct rounds *rounds, size_t node)
{
	uint64_t left = earliest_at(rounds, 2 * node);
	uint64_t right = earliest_at(rounds, 2 * node + 1);

	return left < right ? left : right;
}

static void rounds_set_earliest(struct rounds *rounds, size_t slot, uint64_t tick)
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

void rounds_place(struct wheel *wheel, struct timer *timer, uint64_t tick)
{
	struct rounds *rounds = &wheel->rounds;
	size_t number = (size_t)(tick % rounds->slot_count);
	struct list *slot = &rounds->slots[number];

	if (wheel_slot_is_empty(slot) || tick < earliest_at(rounds, rounds->leaves + number))
		rounds_set_earliest(rounds, number, tick);
	wheel_link(wheel, slot, timer);
}

uint64_t rounds_next_tick(struct wheel *wheel)
{
	struct rounds *rounds = &wheel->rounds;

	for (;;) {
		uint64_t tick = earliest_at(rounds, 1);
		size_t number = (size_t)(tick % rounds->slot_count);

		if (tick == TICK_NONE || !wheel_slot_is_empty(&rounds->slots[number]))
			return tick;
		/* Its timers were removed or moved. */
		rounds_set_earliest(rounds, number, TICK_NONE);
	}
}

void rounds_take_slots(struct wheel *wheel)
{
	struct rounds *rounds = &wheel->rounds;
	size_t number = (size_t)(wheel->now % rounds->slot_count);

	assert(earliest_at(rounds, 1) >= wheel->now);
	if (earliest_at(rounds, rounds->leaves + number) > wheel->now)
		return;
	rounds_set_earliest(rounds, number, TICK_NONE);
	wheel_take_due(wheel, &rounds->slots[number]);
}

size_t rounds_check(const struct wheel *wheel)
{
	const struct rounds *rounds = &wheel->rounds;
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

bool rounds_init(struct wheel *wheel, size_t slots)
{
	struct rounds *rounds = &wheel->rounds;

	rounds->slot_count = slots;
	rounds->leaves = 2;
	while (rounds->leaves < slots)
		rounds->leaves *= 2;
	wheel->memory_size =
		slots * sizeof(*rounds->slots) + 2 * rounds->leaves * sizeof(*rounds->tree);
	wheel->memory = pages_map_untouched(wheel->memory_size);
	if (!wheel->memory)
		return false;
	rounds->slots = wheel->memory;
	rounds->tree = (uint64_t *)(void *)(rounds->slots + slots);
	return true;
}
