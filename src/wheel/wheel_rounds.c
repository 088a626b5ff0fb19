/* SPDX-License-Identifier: MIT */
/*
 * One wheel of slots, as in go-zero and Netty: a timer lies in slot expiry % slots and waits there
 * for the hand to come round as often as it must. go-zero counts the rounds down in each timer, and
 * errs by a lap when a timer is moved across the hand; here a timer knows its expiry, and the round
 * it waits for follows from that.
 *
 * When a slot comes up, all its timers are looked at, a bounded number a call (wheel_expire), and
 * those of later rounds go back into it. That is the price of this layout, and the reason why the
 * levels are the default: a timer may cost a look each lap.
 *
 * The slot goes to due as a whole: which timer is of a later round is known only by looking, and
 * later ticks must be able to overtake what is left of it.
 *
 * Empty ticks cost nothing all the same. Each slot knows the earliest expiry that was filed in it
 * since it was last empty or came up, and a tournament tree over the slots knows the least of
 * these: the next tick at which any slot must be looked at. Removing or moving a timer leaves that
 * of its slot as it is while there are others; then the slot comes up once for nothing.
 *
 * Invariants: earliest[leaves + s] ≤ the expiry of every timer in slot s, > now; an inner node is
 * the lesser of its two children.
 */
#include <assert.h>
#include <stdlib.h>

#include "wheel_layout.h"

struct wheel_rounds {
	struct wheel wheel;
	size_t slot_count;
	struct list *slots;
	size_t leaves;      /* a power of two, at least slot_count */
	uint64_t *earliest; /* [1]: the root; node n has children 2n and 2n + 1 */
};

static struct wheel_rounds *rounds_of(struct wheel *wheel)
{
	return (struct wheel_rounds *)wheel;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void rounds_set_earliest(struct wheel_rounds *rounds, size_t slot, uint64_t expiry)
{
	size_t node = rounds->leaves + slot;

	rounds->earliest[node] = expiry;
	for (node /= 2; node >= 1; node /= 2) {
		uint64_t least = lesser(rounds->earliest[2 * node], rounds->earliest[2 * node + 1]);

		if (rounds->earliest[node] == least)
			break;
		rounds->earliest[node] = least;
	}
}

static void rounds_place(struct wheel *wheel, struct timer *timer)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t slot = (size_t)(timer->expiry % rounds->slot_count);

	wheel_link(wheel, &rounds->slots[slot], timer);
	if (timer->expiry < rounds->earliest[rounds->leaves + slot])
		rounds_set_earliest(rounds, slot, timer->expiry);
}

static uint64_t rounds_next_tick(struct wheel *wheel)
{
	return rounds_of(wheel)->earliest[1];
}

static void rounds_take_slots(struct wheel *wheel)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t slot = (size_t)(wheel->now % rounds->slot_count);

	assert(rounds->earliest[1] >= wheel->now);
	if (rounds->earliest[rounds->leaves + slot] > wheel->now)
		return;
	rounds_set_earliest(rounds, slot, TICK_NONE);
	wheel_take_due(wheel, &rounds->slots[slot]);
}

static void rounds_emptied(struct wheel *wheel, struct list *list)
{
	struct wheel_rounds *rounds = rounds_of(wheel);

	if (list >= rounds->slots && list < rounds->slots + rounds->slot_count)
		rounds_set_earliest(rounds, (size_t)(list - rounds->slots), TICK_NONE);
}

static bool rounds_empty_slot(struct wheel *wheel)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t node = 1;
	size_t slot;

	if (rounds->earliest[1] == TICK_NONE)
		return false;
	while (node < rounds->leaves)
		node = 2 * node + (rounds->earliest[2 * node] == TICK_NONE);
	slot = node - rounds->leaves;
	rounds_set_earliest(rounds, slot, TICK_NONE);
	list_append_all(&wheel->due, &rounds->slots[slot]);
	return true;
}

static size_t rounds_check(struct wheel *wheel)
{
	struct wheel_rounds *rounds = rounds_of(wheel);
	size_t count = 0;

	for (size_t i = 0; i < rounds->slot_count; i++) {
		struct list *slot = &rounds->slots[i];

		assert(rounds->earliest[rounds->leaves + i] > wheel->now);
		for (struct list *link = slot->next; link != slot; link = link->next, count++) {
			assert(link->next->previous == link);
			assert(timer_of_link(link)->expiry >= rounds->earliest[rounds->leaves + i]);
		}
	}
	for (size_t node = 1; node < rounds->leaves; node++)
		assert(rounds->earliest[node] ==
		       lesser(rounds->earliest[2 * node], rounds->earliest[2 * node + 1]));
	return count;
}

static void rounds_destroy(struct wheel *wheel)
{
	struct wheel_rounds *rounds = rounds_of(wheel);

	free(rounds->earliest);
	free(rounds->slots);
	free(rounds);
}

struct wheel *wheel_rounds_create(size_t slots, bool ordered)
{
	static const struct wheel_layout layout = {.place = rounds_place,
						   .next_tick = rounds_next_tick,
						   .take_slots = rounds_take_slots,
						   .emptied = rounds_emptied,
						   .empty_slot = rounds_empty_slot,
						   .check = rounds_check,
						   .destroy = rounds_destroy};
	struct wheel_rounds *rounds;
	size_t leaves = 2;

	while (leaves < slots)
		leaves *= 2;
	rounds = calloc(1, sizeof(*rounds));
	if (!rounds)
		return NULL;
	rounds->slot_count = slots;
	rounds->leaves = leaves;
	rounds->slots = malloc(slots * sizeof(*rounds->slots));
	rounds->earliest = malloc(2 * leaves * sizeof(*rounds->earliest));
	if (!rounds->slots || !rounds->earliest) {
		rounds_destroy(&rounds->wheel);
		return NULL;
	}
	for (size_t i = 0; i < slots; i++)
		list_init(&rounds->slots[i]);
	for (size_t i = 0; i < 2 * leaves; i++)
		rounds->earliest[i] = TICK_NONE;
	wheel_init(&rounds->wheel, &layout, ordered);
	return &rounds->wheel;
}
