/* SPDX-License-Identifier: MIT */
/*
 * The wheel sort is a natural merge sort in steps.
 *
 * Invariants:
 *   each of the lists rises in sequence
 *   between two steps each timer is in one list, so that it can be removed
 *   runs[i] is empty for i ≥ height
 *
 * The timers of a tick come nearly sorted, because slots are filled in the order of commands. Only
 * timers that came down from a coarser slot, or were set again for the same tick, begin another
 * run. One run costs one examination a timer; with r runs each timer is merged about log2 r times
 * more.
 *
 * Runs are merged as a binary counter counts. A run that has ended is carried to level 0, its merge
 * with the run there to level 1, and so on to the first free level. At the end the carry goes
 * through all levels. A list that removals emptied counts as a list that was merged away.
 */
#include "wheel_sort.h"

#include <assert.h>

void wheel_sort_init(struct wheel_sort *sort)
{
	*sort = (struct wheel_sort){0};
	list_init(&sort->run);
	list_init(&sort->carry);
	list_init(&sort->merged);
	for (int level = 0; level < WHEEL_SORT_LEVELS; level++)
		list_init(&sort->runs[level]);
}

static bool link_is_before(struct list *a, struct list *b)
{
	return timer_of_link(a)->sequence < timer_of_link(b)->sequence;
}

bool wheel_sort_is_merging(const struct wheel_sort *sort)
{
	if (sort->is_ending)
		return sort->level < sort->height;
	return !list_is_empty(&sort->carry) || !list_is_empty(&sort->merged);
}

static void wheel_sort_carry(struct wheel_sort *sort)
{
	list_append_all(&sort->carry, &sort->run);
	sort->level = 0;
}

void wheel_sort_merge(struct wheel_sort *sort)
{
	struct list *carry = &sort->carry;
	struct list *run = &sort->runs[sort->level];

	if (!list_is_empty(run) && !list_is_empty(carry)) {
		struct list *lesser = link_is_before(run->next, carry->next) ? run : carry;

		list_append(&sort->merged, list_take_first(lesser));
		return;
	}
	if (!sort->is_ending && list_is_empty(&sort->merged)) {
		/* The level is free: the carry stays there. */
		list_append_all(run, carry);
		if (sort->height <= sort->level)
			sort->height = sort->level + 1;
		return;
	}
	list_append_all(&sort->merged, run);
	list_append_all(&sort->merged, carry);
	list_append_all(carry, &sort->merged);
	sort->level++;
}

void wheel_sort_add(struct wheel_sort *sort, struct timer *timer)
{
	sort->is_active = true;
	if (!list_is_empty(&sort->run) && link_is_before(&timer->link, sort->run.previous))
		wheel_sort_carry(sort);
	list_append(&sort->run, &timer->link);
}

void wheel_sort_end(struct wheel_sort *sort)
{
	sort->is_ending = true;
	wheel_sort_carry(sort);
}

void wheel_sort_take(struct wheel_sort *sort, struct list *to)
{
	struct list *all = &sort->carry;

	list_append_all(all, &sort->merged);
	list_append_all(all, &sort->run);
	for (int level = 0; level < sort->height; level++)
		list_append_all(all, &sort->runs[level]);
	list_append_all(all, to);
	list_append_all(to, all);
	sort->is_active = false;
	sort->is_ending = false;
	sort->height = 0;
}

static size_t run_check(const struct list *run)
{
	size_t count = 0;

	for (struct list *link = run->next; link != run; link = link->next, count++) {
		assert(link->next->previous == link);
		assert(link->next == run || link_is_before(link, link->next));
	}
	return count;
}

size_t wheel_sort_check(const struct wheel_sort *sort)
{
	size_t count = run_check(&sort->run) + run_check(&sort->carry) + run_check(&sort->merged);

	for (int level = 0; level < WHEEL_SORT_LEVELS; level++) {
		count += run_check(&sort->runs[level]);
		assert(level < sort->height || list_is_empty(&sort->runs[level]));
	}
	assert(sort->is_active || count == 0);
	return count;
}
