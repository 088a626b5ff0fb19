/* SPDX-License-Identifier: MIT */
/*
 * One wheel of slots, as in go-zero and Netty: a timer lies in slot tick % slots and waits there
 * for the hand to come round as often as it must. go-zero counts the rounds down in each timer, and
 * errs by a lap when a timer is moved across the hand; here a timer knows its deadline, and the
 * round it waits for follows from that.
 *
 * When a slot comes up, all its timers are looked at, a bounded number a call (wheel_expire), and
 * those of later rounds go back into it. That is the price of this layout, and the reason why the
 * levels are the default: a timer may cost a look each lap.
 *
 * The slot goes to due as a whole: which timer is of a later round is known only by looking, and
 * later ticks must be able to overtake what is left of it.
 *
 * Empty ticks cost nothing all the same. Each slot knows the earliest tick that was filed in it
 * since it was last empty or came up, and a tournament tree over the slots knows the least of
 * these: the next tick at which any slot must be looked at. Removing or moving a timer leaves that
 * of its slot as it is while there are others; then the slot comes up once for nothing.
 *
 * The tree holds complements, so that zeroed memory says that there is no timer.
 *
 * Invariants: earliest at leaf s ≤ the tick of every timer in slot s, > now; at an inner node
 * it is the lesser of that at its two children.
 */
#include <assert.h>
#include <stdlib.h>

#include "wheel_layout.h"

struct wheel_rounds {
	struct wheel wheel;
	size_t slot_count;
	struct list *slots;
	size_t leaves;  /* a power of two, at least slot_count */
	uint64_t *tree; /* ~ earliest; [1]: the root; node n has children 2n and 2n + 1 */
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
	/* Of a list that lies elsewhere it is some large number. */
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
