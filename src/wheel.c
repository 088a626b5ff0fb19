/* SPDX-License-Identifier: MIT */
/*
 * What both layouts share. A timer is in one of four places:
 *
 *   a slot   until the slot comes up;
 *   coming   its slot came up, but perhaps not its time: it will be re-filed;
 *   due      its time has come, as far as known: it will expire;
 *   late     the same, left over when a later tick became due.
 *
 * Slots come up as whole lists, at once. The timers in them are looked at one by one in
 * wheel_expire(), a bounded number a call, so that a crowded slot stalls nobody. Whoever is looked
 * at too early (it was moved to a later tick, or comes from a coarser slot) is filed again by its
 * real expiry. So a move to a later tick need not touch the lists: it rewrites the timer, and the
 * slot it lies in comes up early for it.
 *
 * Unless early is not early enough. Where a wheel is advanced while busy, a timer in a crowd is
 * looked at after those that became due since, and wheel_next_tick() does not know of it. So two
 * moves to later file the timer anew at once: of a timer that is due already, for it may lie in due
 * or late; and by less than `patience` ticks, for its slot may come up no sooner than at its old
 * expiry. All others leave time to be looked at: patience ticks, or, for a timer that lies in a
 * coarser slot, the span that such a slot comes up early by. Nothing overtakes in an ordered wheel:
 * there each move to later just rewrites.
 *
 * Order. Slots are filled in any order: a timer set long ago may come down from a coarser slot
 * after one set later. Each command gives its timer the next sequence number, and an ordered wheel
 * sorts the due list by it. The list is nearly sorted, a few runs long, and the sort is a natural
 * merge sort: n comparisons for one run.
 *
 * Invariants: no timer in a slot is due (expiry > now). All timers of an ordered wheel's due list
 * have been added or came up at now. count is the number of timers in all four places.
 */
#include <assert.h>
#include <stdlib.h>

#include "prefetch.h"
#include "wheel_layout.h"

/* Ticks that a crowd may take to be worked off: at 1 ms a tick, well over a million timers. */
static const uint64_t patience = 512;

void wheel_init(struct wheel *wheel, const struct wheel_layout *layout, bool ordered)
{
	wheel->layout = layout;
	wheel->ordered = ordered;
	wheel->early_from = UINT64_MAX;
	wheel->due_is_unsorted = false;
	wheel->expired_late = false;
	wheel->now = 0;
	wheel->sequence = 0;
	wheel->count = 0;
	list_init(&wheel->due);
	list_init(&wheel->late);
	wheel->coming_used = 0;
	for (int level = 0; level < WHEEL_MAX_LEVELS; level++)
		list_init(&wheel->coming[level]);
}

struct wheel *wheel_create(enum tw_layout layout, size_t slots, bool ordered)
{
	if (layout == TW_LAYOUT_ROUNDS)
		return wheel_rounds_create(slots, ordered);
	return wheel_levels_create(slots, ordered);
}

void wheel_destroy(struct wheel *wheel)
{
	wheel->layout->destroy(wheel);
}

uint64_t wheel_now(const struct wheel *wheel)
{
	return wheel->now;
}

size_t wheel_count(const struct wheel *wheel)
{
	return wheel->count;
}

static void wheel_place(struct wheel *wheel, struct timer *timer)
{
	struct list *last = wheel->due.previous;

	if (timer->expiry > wheel->now) {
		wheel->layout->place(wheel, timer);
		return;
	}
	if (last != &wheel->due && timer_of_link(last)->sequence > timer->sequence)
		wheel->due_is_unsorted = true;
	list_append(&wheel->due, &timer->link);
}

void wheel_add(struct wheel *wheel, struct timer *timer)
{
	timer->sequence = ++wheel->sequence;
	wheel->count++;
	wheel_place(wheel, timer);
}

static void wheel_unlink(struct wheel *wheel, struct timer *timer)
{
	struct list *next = timer->link.next;

	list_remove(&timer->link);
	if (list_is_empty(next))
		wheel->layout->emptied(wheel, next);
}

bool wheel_move_unlinks(const struct wheel *wheel, const struct timer *timer, uint64_t expiry)
{
	if (expiry < timer->expiry || timer->expiry <= wheel->now)
		return true;
	if (wheel->ordered || expiry == timer->expiry || expiry - timer->expiry >= patience)
		return false;
	return timer->expiry - wheel->now < wheel->early_from;
}

void wheel_move(struct wheel *wheel, struct timer *timer, uint64_t expiry)
{
	bool unlinks = wheel_move_unlinks(wheel, timer, expiry);

	timer->expiry = expiry;
	timer->sequence = ++wheel->sequence;
	if (!unlinks)
		return;
	wheel_unlink(wheel, timer);
	wheel_place(wheel, timer);
}

void wheel_remove(struct wheel *wheel, struct timer *timer)
{
	wheel_unlink(wheel, timer);
	wheel->count--;
}

/* The first of the lists of timers to re-file that has any, finest level first, or NULL. */
static struct list *wheel_first_coming(struct wheel *wheel)
{
	while (wheel->coming_used != 0) {
		struct list *coming = &wheel->coming[__builtin_ctzll(wheel->coming_used)];

		if (!list_is_empty(coming))
			return coming;
		wheel->coming_used &= wheel->coming_used - 1;
	}
	return NULL;
}

void wheel_take_coming(struct wheel *wheel, int level, struct list *slot)
{
	list_append_all(&wheel->coming[level], slot);
	wheel->coming_used |= (uint64_t)1 << level;
}

void wheel_take_due(struct wheel *wheel, struct list *slot)
{
	list_append_all(&wheel->due, slot);
	wheel->due_is_unsorted = true;
}

bool wheel_is_busy(struct wheel *wheel)
{
	return !list_is_empty(&wheel->due) || !list_is_empty(&wheel->late) ||
	       wheel_first_coming(wheel);
}

uint64_t wheel_next_tick(struct wheel *wheel)
{
	return wheel->layout->next_tick(wheel);
}

void wheel_advance(struct wheel *wheel, uint64_t tick)
{
	assert(tick >= wheel->now && !(wheel->ordered && wheel_is_busy(wheel)));
	if (tick == wheel->now)
		return;
	list_append_all(&wheel->late, &wheel->due);
	wheel->now = tick;
	wheel->layout->take_slots(wheel);
}

/* Cuts the run of rising sequence numbers that starts at `first` off a singly linked list. */
static struct list *run_end(struct list *first)
{
	struct list *last = first;
	struct list *rest;

	while (last->next && timer_of_link(last)->sequence < timer_of_link(last->next)->sequence)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	return rest;
}

static struct list *run_merge(struct list *a, struct list *b)
{
	struct list *merged = NULL;
	struct list **end = &merged;

	while (a && b) {
		struct list **least =
			timer_of_link(a)->sequence < timer_of_link(b)->sequence ? &a : &b;

		*end = *least;
		end = &(*end)->next;
		*least = *end;
	}
	*end = a ? a : b;
	return merged;
}

/* Sorts the due list by sequence: runs[i] holds the merge of 2^i runs, as the bits of a counter. */
static void wheel_sort_due(struct wheel *wheel)
{
	struct list *runs[64] = {0};
	struct list *rest = wheel->due.next;
	struct list *sorted = NULL;

	wheel->due_is_unsorted = false;
	if (list_is_empty(&wheel->due))
		return;
	wheel->due.previous->next = NULL;
	while (rest) {
		struct list *run = rest;
		int i = 0;

		rest = run_end(run);
		for (; runs[i]; i++) {
			run = run_merge(runs[i], run);
			runs[i] = NULL;
		}
		runs[i] = run;
	}
	for (int i = 0; i < 64; i++)
		sorted = run_merge(sorted, runs[i]);
	list_init(&wheel->due);
	while (sorted) {
		struct list *next = sorted->next;

		list_append(&wheel->due, sorted);
		sorted = next;
	}
}

/*
 * Where the next timer is to be taken from, or NULL. What is newly due comes first, what is left
 * over last; an ordered wheel knows what is due only after re-filing.
 */
static struct list *wheel_next_list(struct wheel *wheel)
{
	struct list *coming = wheel_first_coming(wheel);

	if (coming && (wheel->ordered || list_is_empty(&wheel->due)))
		return coming;
	if (wheel->ordered && wheel->due_is_unsorted)
		wheel_sort_due(wheel);
	if (!list_is_empty(&wheel->due))
		return &wheel->due;
	return list_is_empty(&wheel->late) ? NULL : &wheel->late;
}

size_t wheel_expire(struct wheel *wheel, struct timer **expired, size_t most)
{
	size_t count = 0;

	for (size_t seen = 0; seen < most; seen++) {
		struct list *list = wheel_next_list(wheel);
		struct timer *timer;

		if (!list || (list == &wheel->late && count > 0 && !wheel->expired_late))
			break;
		wheel->expired_late = list == &wheel->late;
		timer = timer_of_link(list_take_first(list));
		prefetch_to_write(timer->link.next);
		if (timer->expiry > wheel->now || (wheel->ordered && list != &wheel->due))
			wheel_place(wheel, timer);
		else
			expired[count++] = timer;
	}
	wheel->count -= count;
	return count;
}

bool wheel_expired_late(const struct wheel *wheel)
{
	return wheel->expired_late;
}

size_t wheel_take(struct wheel *wheel, struct timer **taken, size_t most)
{
	size_t count = 0;

	while (count < most && wheel->count > 0) {
		struct list *list = wheel_next_list(wheel);

		if (!list) {
			(void)wheel->layout->empty_slot(wheel);
			continue;
		}
		taken[count++] = timer_of_link(list_take_first(list));
		wheel->count--;
	}
	return count;
}

static size_t wheel_check_list(struct list *list)
{
	size_t count = 0;

	for (struct list *link = list->next; link != list; link = link->next, count++)
		assert(link->next->previous == link);
	return count;
}

void wheel_check(struct wheel *wheel)
{
	size_t count = wheel_check_list(&wheel->due) + wheel_check_list(&wheel->late);

	for (int level = 0; level < WHEEL_MAX_LEVELS; level++)
		count += wheel_check_list(&wheel->coming[level]);
	count += wheel->layout->check(wheel);
	assert(count == wheel->count);
	(void)count;
}
