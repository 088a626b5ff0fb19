/* SPDX-License-Identifier: MIT */
/*
 * What both layouts share. A timer is in one of these places:
 *
 *   a slot   until the slot comes up;
 *   coming   its slot came up, but perhaps not its time: it will be re-filed;
 *   due      its time has come, as far as known: it will expire;
 *   late     the same, left over when a later tick became due; not in an ordered wheel;
 *   sort     in an ordered wheel: due, on the way from coming to due.
 *
 * Slots come up as whole lists, at once. Their timers are looked at one by one in wheel_expire(), a
 * bounded number a call, so that a crowded slot stalls nothing else; and those to be re-filed take
 * turns, so that a crowd in one does not hold up the others. A timer looked at too early (it was
 * moved to a later tick, or comes from a coarser slot) is filed again by its deadline. So a move to
 * a later tick need not touch the lists, nor the line that the links are in: it rewrites the
 * deadline, and the timer's slot comes up early for it.
 *
 * Unless early is not early enough. Where a wheel is advanced while busy, a timer in a crowd is
 * looked at after those that became due since, and wheel_next_tick() does not know of it. So two
 * moves to later file the timer anew at once: of a timer that is due already, for it may lie in due
 * or late; and by less than the patience, for its slot may come up no sooner than at its old tick.
 * All others leave time to be looked at: the patience, or, for a timer that lies in a coarser slot,
 * the span that such a slot comes up early by. Nothing overtakes in an ordered wheel: there each
 * move to later just rewrites.
 *
 * Order. Slots are filled in any order: a timer set long ago may come down from a coarser slot
 * after one set later. Each command gives its timer the next sequence number, and an ordered wheel
 * sorts by it what came up at a tick, before any of it expires. So there every slot that comes up
 * goes to coming; each timer is looked at, and those due are sorted: n looks for n timers that are
 * in order, n log r more where they are r runs. That too is done in bounded steps: a million timers
 * due in one tick keep the owner from nothing but their own tick. Timers that are added or moved to
 * now meanwhile are last in order, and wait in due.
 *
 * Invariants: no timer in a slot is due. All timers of an ordered wheel's due list
 * are due, rise in sequence, and come after all that are in coming or sort. count is the number of
 * timers in all places.
 */
#include "wheel.h"

#include <assert.h>
#include <stdlib.h>

#include "base/prefetch.h"
#include "wheel_layout.h"

/* Of an ordered wheel: steps of looking or sorting that count as one timer taken in hand. */
enum { SORT_STEPS = 8 };
/* Timers of a list to re-file that are looked at before the next list's. */
enum { COMING_SHARE = 16 };

/* From now on it is that tick. */
static void wheel_set_now(struct wheel *wheel, uint64_t tick)
{
	wheel->now = tick;
	wheel->now_time = tick_time(&wheel->ticks, tick);
	/* At the end of time, too, TW_FOREVER is not now. */
	if (wheel->now_time == TW_FOREVER)
		wheel->now_time--;
	if (wheel->due_until < wheel->now_time)
		wheel->due_until = wheel->now_time;
}

struct wheel *wheel_create(enum tw_layout layout, size_t slots, const struct ticks *ticks,
			   bool ordered, tw_duration patience)
{
	struct wheel *wheel = layout == TW_LAYOUT_ROUNDS ? wheel_rounds_create(slots, ordered)
							 : wheel_levels_create(slots, ordered);

	if (!wheel)
		return NULL;
	wheel->ticks = *ticks;
	wheel->patience = patience;
	wheel->early_after = TW_FOREVER;
	if (wheel->early_from <= (uint64_t)(TW_FOREVER / ticks->interval))
		wheel->early_after = (tw_duration)(wheel->early_from - 1) * ticks->interval;
	wheel->due_until = INT64_MIN;
	wheel_set_now(wheel, 0);
	return wheel;
}

bool wheel_discard(struct wheel *wheel)
{
	if (!pages_unmap_some(&wheel->pages))
		return false;
	free(wheel);
	return true;
}

uint64_t wheel_now(const struct wheel *wheel)
{
	return wheel->now;
}

size_t wheel_count(const struct wheel *wheel)
{
	return wheel->count;
}

bool wheel_is_due(const struct wheel *wheel, const struct timer *timer)
{
	return timer->deadline <= wheel->now_time || timer->at_once;
}

/* The timer is not due. An alarm knows the tick of its deadline. */
static void wheel_place_in_slot(struct wheel *wheel, struct timer *timer)
{
	uint64_t tick =
		timer_is_alarm(timer) ? timer->tick : tick_after(&wheel->ticks, timer->deadline);

	wheel->layout->place(wheel, timer, tick);
}

static void wheel_place(struct wheel *wheel, struct timer *timer)
{
	if (wheel->ordered)
		timer->sequence = ++wheel->sequence;
	if (!wheel_is_due(wheel, timer)) {
		wheel_place_in_slot(wheel, timer);
		return;
	}
	if (wheel->due_until < timer->deadline)
		wheel->due_until = timer->deadline;
	wheel_link(wheel, &wheel->due, timer);
}

void wheel_add(struct wheel *wheel, struct timer *timer)
{
	wheel->count++;
	wheel_place(wheel, timer);
}

static void wheel_unlink(struct wheel *wheel, struct timer *timer)
{
	struct list *next = timer->link.next;

	list_remove(&timer->link);
	if (wheel->layout->emptied && list_is_empty(next))
		wheel->layout->emptied(wheel, next);
}

bool wheel_move_unlinks(const struct wheel *wheel, tw_duration before, tw_duration after)
{
	if (after < before || before <= wheel->due_until)
		return true;
	if (wheel->ordered || after == before || after - before >= wheel->patience)
		return false;
	return before - wheel->now_time <= wheel->early_after;
}

void wheel_moved(struct wheel *wheel, struct timer *timer, tw_duration before, bool at_once)
{
	if (at_once || wheel_move_unlinks(wheel, before, timer->deadline)) {
		wheel_unlink(wheel, timer);
		timer->at_once = at_once;
		wheel_place(wheel, timer);
	} else if (wheel->ordered) {
		timer->sequence = ++wheel->sequence;
	}
}

void wheel_remove(struct wheel *wheel, struct timer *timer)
{
	wheel_unlink(wheel, timer);
	wheel->count--;
}

/*
 * Returns a list of timers to re-file, or NULL. They take turns, so that a crowd in one of them
 * does not hold up the others.
 */
static __attribute__((noinline)) struct list *wheel_find_coming(struct wheel *wheel)
{
	while (wheel->coming_used != 0) {
		uint64_t from = wheel->coming_used >> wheel->coming_turn << wheel->coming_turn;
		unsigned turn = (unsigned)__builtin_ctzll(from ? from : wheel->coming_used);

		if (turn != wheel->coming_turn)
			wheel->coming_seen = 0;
		wheel->coming_turn = turn;
		if (!list_is_empty(&wheel->coming[turn]))
			return &wheel->coming[turn];
		wheel->coming_used &= ~((uint64_t)1 << turn);
	}
	return NULL;
}

/* Each timer asks several times: mostly there is none. */
static inline struct list *wheel_next_coming(struct wheel *wheel)
{
	return wheel->coming_used != 0 ? wheel_find_coming(wheel) : NULL;
}

bool wheel_is_busy(struct wheel *wheel)
{
	return !list_is_empty(&wheel->due) || !list_is_empty(&wheel->late) ||
	       wheel->sort.is_active || wheel_next_coming(wheel);
}

bool wheel_has_due(const struct wheel *wheel)
{
	return !list_is_empty(&wheel->due);
}

void wheel_put_off(struct wheel *wheel)
{
	list_append_all(&wheel->late, &wheel->due);
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
	wheel_put_off(wheel);
	wheel_set_now(wheel, tick);
	wheel->layout->take_slots(wheel);
}

/* The next timer of a list to re-file. */
static struct timer *wheel_look_at_coming(struct wheel *wheel, struct list *coming)
{
	if (++wheel->coming_seen % COMING_SHARE == 0)
		wheel->coming_turn = (wheel->coming_turn + 1) % WHEEL_COMING;
	return timer_of_link(coming->next);
}

/* Takes the first timer out of `coming`, a list to re-file. The next one but one is fetched: the
 * next one's links are at hand. */
static void wheel_take_out(struct wheel *wheel, struct list *coming, struct timer *timer)
{
	struct list *next = timer->link.next;

	list_remove(&timer->link);
	if (next == coming) {
		wheel->coming_used &= ~((uint64_t)1 << (coming - wheel->coming));
		return;
	}
	prefetch_to_write(next->next);
	prefetch_to_write(&timer_of_link(next->next)->deadline);
}

/* Looks at one timer, or goes on sorting. False: all that came up is sorted, and in due. */
static bool wheel_sort_step(struct wheel *wheel)
{
	struct wheel_sort *sort = &wheel->sort;
	struct list *coming;

	if (wheel_sort_is_merging(sort)) {
		wheel_sort_merge(sort);
		return true;
	}
	coming = wheel_next_coming(wheel);
	if (coming) {
		struct timer *timer = wheel_look_at_coming(wheel, coming);

		wheel_take_out(wheel, coming, timer);
		if (wheel_is_due(wheel, timer))
			wheel_sort_add(sort, timer);
		else
			wheel_place_in_slot(wheel, timer);
		return true;
	}
	if (sort->is_active && !sort->is_ending) {
		wheel_sort_end(sort);
		return true;
	}
	if (sort->is_active)
		wheel_sort_take(sort, &wheel->due);
	return false;
}

/* Of an ordered wheel; true: there is more to sort before a timer may expire. */
static bool wheel_sort_some(struct wheel *wheel)
{
	for (int i = 0; i < SORT_STEPS; i++)
		if (!wheel_sort_step(wheel))
			return false;
	return true;
}

/* Where the next timer to look at is, or NULL: what is newly due first, what is left over last. */
static struct list *wheel_next_list(struct wheel *wheel)
{
	struct list *coming;

	if (!list_is_empty(&wheel->due))
		return &wheel->due;
	coming = wheel_next_coming(wheel);
	if (coming)
		return coming;
	return list_is_empty(&wheel->late) ? NULL : &wheel->late;
}

/* Cuts off the first timers of a list, up to `most`, and has their deadlines fetched: not the list
 * but these are a miss each. */
static size_t wheel_cut(struct list *list, struct timer **timers, size_t most)
{
	struct list *link = list->next;
	size_t count = 0;

	for (; count < most && link != list; link = link->next) {
		timers[count] = timer_of_link(link);
		prefetch_to_write(&timers[count++]->deadline);
	}
	list->next = link;
	link->previous = list;
	return count;
}

/* Of timers in no list, files those that are not due; the others stay in the array. */
static size_t wheel_keep_due(struct wheel *wheel, struct timer **timers, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (wheel_is_due(wheel, timers[i]))
			timers[kept++] = timers[i];
		else
			wheel_place_in_slot(wheel, timers[i]);
	}
	return kept;
}

/* It was to expire at an earlier tick. */
static bool wheel_is_overdue(const struct wheel *wheel, const struct timer *timer)
{
	assert(wheel->now > 0);
	return timer->deadline <= tick_time(&wheel->ticks, wheel->now - 1);
}

size_t wheel_expire(struct wheel *wheel, struct timer **expired, size_t most)
{
	size_t count = 0;
	size_t looked;

	for (size_t seen = 0; seen < most; seen += looked) {
		struct list *list;
		size_t due;
		bool late;

		looked = 1;
		if (wheel->ordered && wheel_sort_some(wheel))
			continue;
		list = wheel_next_list(wheel);
		if (!list)
			break;
		late = list == &wheel->late;
		if (list != &wheel->due && !late) {
			expired[count] = wheel_look_at_coming(wheel, list);
			late = wheel_is_overdue(wheel, expired[count]);
		}
		if (count > 0 && late != wheel->expired_late)
			break;
		if (list == &wheel->due || list == &wheel->late)
			looked = wheel_cut(list, expired + count, most - seen);
		else
			wheel_take_out(wheel, list, expired[count]);
		due = wheel_keep_due(wheel, expired + count, looked);
		if (due > 0)
			wheel->expired_late = late;
		count += due;
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

	wheel_sort_take(&wheel->sort, &wheel->due);
	while (count < most && wheel->count > 0) {
		struct list *list = wheel_next_list(wheel);

		if (!list) {
			/* Its time goes on, to where the next slot comes up. */
			wheel_set_now(wheel, wheel->layout->next_tick(wheel));
			wheel->layout->take_slots(wheel);
			continue;
		}
		taken[count++] = timer_of_link(list_take_first(list));
		wheel->count--;
	}
	return count;
}

void wheel_check(struct wheel *wheel)
{
	size_t count = wheel_check_list(wheel, &wheel->due, 0) +
		       wheel_check_list(wheel, &wheel->late, 0) + wheel_sort_check(&wheel->sort);

	for (int i = 0; i < WHEEL_COMING; i++) {
		assert(list_is_empty(&wheel->coming[i]) || wheel->coming_used >> i & 1);
		count += wheel_check_list(wheel, &wheel->coming[i], 0);
	}
	count += wheel->layout->check(wheel);
	assert(count == wheel->count);
	(void)count;
}
