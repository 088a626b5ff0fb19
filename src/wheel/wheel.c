/* SPDX-License-Identifier: MIT */
/*
 * The wheel has the timers by tick. A timer is in one of these places:
 *
 *   a slot   until the slot comes up
 *   coming   after a coarser slot came up, to be re-filed; not in an ordered wheel
 *   due      after its slot came up, to expire if it is due
 *   rest     left over from `due` when a later tick came; in an ordered wheel after a slot came up
 *   next     due, on the way to `due`; only in an ordered wheel
 *
 * Invariants:
 *   a timer is in one place
 *   no timer in a slot is due
 *   the timers in an ordered wheel's `due` and `next` are due, and those in `due` are in order
 *
 * A slot comes up as a whole list. wheel_expire() examines its timers a bounded number a call, so
 * that a crowded slot stalls nothing else: those in `due` first, those in `rest` last. The lists
 * in `coming` take turns, so that a crowd in one does not delay the others. A timer examined too
 * early, because it was moved to a later tick or comes from a coarser slot, is filed again by its
 * deadline. So a move to a later tick touches neither the lists nor the cache line with the links:
 * it rewrites the deadline, and the slot comes up early.
 *
 * Two moves to a later tick file the timer again at once, because early might not be early enough.
 * A wheel that is advanced while busy examines a timer in a crowd after those that became due
 * later, and wheel_next_tick() does not know of it. The first such move is that of a timer that is
 * due: it may lie in `due` or `rest`. The second is a move by less than the patience: the slot may
 * come up at the old tick and no sooner. All other moves leave time to examine the timer: the
 * patience, or, in a coarser slot, the span by which the slot comes up early. In an ordered wheel
 * no timer overtakes, so there each move to a later tick rewrites only the deadline.
 *
 * Order: an ordered wheel expires one batch after the other. The timers of each slot that comes up
 * are examined in bounded steps. Those that are due are added to `next`, and so are timers that
 * become due by a command. When `due` is empty, `next` is sorted in one step and becomes `due`.
 * The tasks of a batch take longer than its sort, and run one after the other in any case. Slots
 * are not filled in the order of commands, since an older timer may come down from a coarser slot
 * after a newer one was filed. So each command gives its timer the next sequence number, which
 * decides between equal deadlines.
 */
#include "wheel.h"

#include <assert.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/pages.h"

/* In an ordered wheel these timers, re-filed or found due, count as one timer handled. */
enum { GATHERED = 8 };
/* A batch of this many timers is sorted in as many parts. */
enum { SORT_LONG = 1024, SORT_BITS = 8, SORT_PARTS = 1 << SORT_BITS };
/* Timers examined in one list to re-file before the turn passes to the next list. */
enum { COMING_SHARE = 16 };

/* Makes `tick` the present tick. TW_FOREVER is not now, also at the end of time. */
static void wheel_set_now(struct wheel *wheel, uint64_t tick)
{
	tw_duration time = tick_time(&wheel->ticks, tick);

	wheel->now = tick;
	wheel->now_time = time < TW_FOREVER ? time : TW_FOREVER - 1;
	if (wheel->due_until < wheel->now_time)
		wheel->due_until = wheel->now_time;
}

struct wheel *wheel_create(size_t slots, const struct ticks *ticks, bool ordered,
			   tw_duration patience)
{
	struct wheel *wheel = calloc(1, sizeof(*wheel));

	if (!wheel)
		return NULL;
	if (!levels_init(&wheel->levels, slots)) {
		free(wheel);
		return NULL;
	}
	wheel->ordered = ordered;
	wheel->ticks = *ticks;
	wheel->patience = patience;
	/* A coarser slot comes up early. */
	wheel->early_after = TW_FOREVER;
	if (wheel->levels.window <= (uint64_t)(TW_FOREVER / ticks->interval))
		wheel->early_after = (tw_duration)(wheel->levels.window - 1) * ticks->interval;
	wheel->due_until = INT64_MIN;
	list_init(&wheel->due);
	list_init(&wheel->rest);
	for (int i = 0; i < WHEEL_COMING; i++)
		list_init(&wheel->coming[i]);
	list_init(&wheel->next);
	wheel->is_sorted = true;
	wheel_set_now(wheel, 0);
	return wheel;
}

void wheel_destroy(struct wheel *wheel)
{
	pages_unmap_aligned(wheel->levels.memory, wheel->levels.memory_size);
	free(wheel);
}

bool wheel_is_due(const struct wheel *wheel, const struct timer *timer)
{
	return timer->is_for_now || timer->deadline <= wheel->now_time;
}

/* Links a timer into a slot or into `due`, as the last one. In a wheel that is not ordered a
 * periodic timer becomes the first, so that no crowd in its tick delays it. */
static void wheel_link(struct wheel *wheel, struct list *list, struct timer *timer)
{
	bool first = timer->class == TIMER_PERIODIC && !wheel->ordered;

	list_append(first ? list->next : list, &timer->link);
}

/* Files a timer that is not due. */
static void wheel_place_in_slot(struct wheel *wheel, struct timer *timer)
{
	uint64_t tick = tick_after(&wheel->ticks, timer->deadline);

	wheel_link(wheel, levels_slot(&wheel->levels, wheel->now, tick), timer);
}

/* Returns whether the timer with link `a` comes before that with link `b` in an ordered wheel. */
static bool link_is_before(struct list *a, struct list *b)
{
	const struct timer *first = timer_of_link(a);
	const struct timer *second = timer_of_link(b);

	if (first->deadline != second->deadline)
		return first->deadline < second->deadline;
	return first->sequence < second->sequence;
}

/* Adds a due timer to the next batch of an ordered wheel. */
static void wheel_add_to_next(struct wheel *wheel, struct timer *timer)
{
	struct list *next = &wheel->next;

	if (!list_is_empty(next))
		wheel->is_sorted &= !link_is_before(&timer->link, next->previous);
	list_append(next, &timer->link);
	wheel->next_count++;
}

void wheel_add(struct wheel *wheel, struct timer *timer)
{
	if (wheel->ordered)
		timer->sequence = ++wheel->sequence;
	if (!wheel_is_due(wheel, timer))
		wheel_place_in_slot(wheel, timer);
	else if (wheel->ordered)
		wheel_add_to_next(wheel, timer);
	else
		wheel_link(wheel, &wheel->due, timer);
}

bool wheel_move_unlinks(const struct wheel *wheel, tw_duration before, tw_duration after)
{
	if (after < before || before <= wheel->due_until)
		return true;
	if (wheel->ordered || after == before || after - before >= wheel->patience)
		return false;
	return before - wheel->now_time <= wheel->early_after;
}

void wheel_moved(struct wheel *wheel, struct timer *timer, tw_duration before)
{
	if (wheel_move_unlinks(wheel, before, timer->deadline)) {
		list_remove(&timer->link);
		wheel_add(wheel, timer);
	} else if (wheel->ordered) {
		timer->sequence = ++wheel->sequence;
	}
}

void wheel_remove(struct timer *timer)
{
	list_remove(&timer->link);
}

/* Returns the list of timers to re-file whose turn it is, or NULL if there are none. */
static __attribute__((noinline)) struct list *wheel_next_coming(struct wheel *wheel)
{
	while (wheel->coming_used != 0) {
		uint64_t from = wheel->coming_used >> wheel->coming_turn << wheel->coming_turn;
		unsigned turn = (unsigned)__builtin_ctzll(from ? from : wheel->coming_used);

		wheel->coming_turn = turn;
		if (!list_is_empty(&wheel->coming[turn]))
			return &wheel->coming[turn];
		wheel->coming_used &= ~((uint64_t)1 << turn);
	}
	return NULL;
}

bool wheel_is_busy(struct wheel *wheel)
{
	return !list_is_empty(&wheel->due) || !list_is_empty(&wheel->rest) ||
	       !list_is_empty(&wheel->next) ||
	       (wheel->coming_used != 0 && wheel_next_coming(wheel));
}

void wheel_put_off(struct wheel *wheel)
{
	list_append_all(&wheel->rest, &wheel->due);
}

uint64_t wheel_next_tick(struct wheel *wheel)
{
	return levels_next_tick(&wheel->levels, wheel->now);
}

/* Takes a coarser slot, whose timers are to be re-filed. */
static void wheel_take_coming(struct wheel *wheel, struct list *slot)
{
	int free = WHEEL_COMING - 1;

	if (wheel_slot_is_empty(slot))
		return;
	if (wheel->ordered) {
		list_append_all(&wheel->rest, slot);
		return;
	}
	if (wheel->coming_used != UINT64_MAX)
		free = __builtin_ctzll(~wheel->coming_used);
	list_append_all(&wheel->coming[free], slot);
	wheel->coming_used |= (uint64_t)1 << free;
}

/* Takes the slots that come up at the present tick. Not inlined: an advance to the present tick, as
 * in most turns, then saves no registers. */
static __attribute__((noinline)) void wheel_take_slots(struct wheel *wheel)
{
	const struct levels *levels = &wheel->levels;
	struct level *level = wheel->levels.levels;
	const struct level *end = level + levels->level_count;
	uint64_t now = wheel->now;
	struct list *slot = level_take_slot(levels, level, now);

	/* All its timers are due, or most. */
	if (!wheel_slot_is_empty(slot))
		list_append_all(wheel->ordered ? &wheel->rest : &wheel->due, slot);
	while (++level < end && (now & (((uint64_t)1 << level->shift) - 1)) == 0)
		wheel_take_coming(wheel, level_take_slot(levels, level, (now >> level->shift) + 1));
}

void wheel_advance(struct wheel *wheel, uint64_t tick)
{
	assert(tick >= wheel->now && !(wheel->ordered && wheel_is_busy(wheel)));
	if (tick == wheel->now)
		return;
	wheel_put_off(wheel);
	wheel_set_now(wheel, tick);
	wheel_take_slots(wheel);
}

/* Merges two runs, which may be empty. */
static struct list *run_merge(struct list *a, struct list *b)
{
	struct list *first;
	struct list **end = &first;

	while (a && b) {
		struct list **lesser = link_is_before(b, a) ? &b : &a;

		*end = *lesser;
		end = &(*end)->next;
		*lesser = *end;
		/* A long run lies in no cache. */
		if (*end && (*end)->next) {
			prefetch_to_write((*end)->next);
			prefetch_to_read(&timer_of_link((*end)->next)->deadline);
		}
	}
	*end = a ? a : b;
	return first;
}

/* Cuts the first run of timers in order off a list that ends with NULL, and returns it. */
static struct list *list_cut_run(struct list **rest)
{
	struct list *run = *rest;
	struct list *last = run;

	while (last->next && !link_is_before(last->next, last))
		last = last->next;
	*rest = last->next;
	last->next = NULL;
	return run;
}

/* Sorts by a natural merge sort: with r runs each timer is merged about log2 r times. Runs are
 * merged as a binary counter counts: runs[i] has 2^i runs merged into one, or none. */
static __attribute__((noinline)) void list_sort(struct list *list)
{
	struct list *runs[48] = {NULL}; /* 2^48 timers are more than fit into memory */
	struct list *all = NULL;
	struct list *rest;

	list->previous->next = NULL;
	rest = list->next; /* NULL if the list is empty */
	while (rest) {
		struct list *run = list_cut_run(&rest);
		size_t level = 0;

		for (; runs[level]; level++) {
			run = run_merge(runs[level], run);
			runs[level] = NULL;
		}
		runs[level] = run;
	}
	for (size_t level = 0; level < sizeof(runs) / sizeof(runs[0]); level++)
		all = run_merge(runs[level], all);
	for (list_init(list); all; all = rest) {
		rest = all->next;
		list_append(list, all);
	}
}

/* Returns the part of a tick, of SORT_PARTS, in which the deadline lies: the first one if it is
 * earlier, and the last one if it is later. */
static size_t wheel_part_of_tick(const struct wheel *wheel, tw_duration deadline)
{
	tw_duration begin = wheel->now_time - wheel->ticks.interval;
	int bits = 64 - __builtin_clzll((unsigned long long)wheel->ticks.interval);
	uint64_t part = (uint64_t)deadline - (uint64_t)begin;

	if (deadline < begin)
		return 0;
	if (bits > SORT_BITS)
		part >>= bits - SORT_BITS;
	return part < SORT_PARTS ? part : SORT_PARTS - 1;
}

/* Sorts the next batch. A long one is dealt to the parts of its tick, and each part is sorted: a
 * merge of all waits for memory in each of its passes. */
static __attribute__((noinline)) void wheel_sort_next(struct wheel *wheel)
{
	struct list parts[SORT_PARTS];
	struct list *link;

	if (wheel->next_count < SORT_LONG) {
		list_sort(&wheel->next);
		return;
	}
	for (size_t i = 0; i < SORT_PARTS; i++)
		list_init(&parts[i]);
	while ((link = list_take_first(&wheel->next)))
		list_append(&parts[wheel_part_of_tick(wheel, timer_of_link(link)->deadline)], link);
	for (size_t i = 0; i < SORT_PARTS; i++) {
		if (!list_is_empty(&parts[i]))
			list_sort(&parts[i]);
		list_append_all(&wheel->next, &parts[i]);
	}
}

/* Cuts off the first timers of a list, up to `most`, and prefetches their deadlines, each a cache
 * miss. Returns their number. */
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

/* Examines timers that came up in an ordered wheel. Returns true while there are more. */
static bool wheel_gather(struct wheel *wheel)
{
	struct timer *timers[GATHERED];
	size_t count = wheel_cut(&wheel->rest, timers, GATHERED);

	for (size_t i = 0; i < count; i++) {
		if (wheel_is_due(wheel, timers[i]))
			wheel_add_to_next(wheel, timers[i]);
		else
			wheel_place_in_slot(wheel, timers[i]);
	}
	return !list_is_empty(&wheel->rest);
}

/* Begins the next batch of an ordered wheel, or takes a step towards it. */
static __attribute__((noinline)) void wheel_begin_batch(struct wheel *wheel)
{
	if (wheel_gather(wheel))
		return;
	if (!wheel->is_sorted)
		wheel_sort_next(wheel);
	wheel->is_sorted = true;
	wheel->next_count = 0;
	list_append_all(&wheel->due, &wheel->next);
}

struct timer *wheel_expire_next(struct wheel *wheel)
{
	struct list *link;

	if (list_is_empty(&wheel->due))
		wheel_begin_batch(wheel);
	/* Each move takes what is no longer due out of that list. */
	link = list_take_first(&wheel->due);
	assert(!link || wheel_is_due(wheel, timer_of_link(link)));
	return link ? timer_of_link(link) : NULL;
}

/* Files the timers that are not due, and keeps the others in the array. Returns the number kept.
 * All of them must be in no list. */
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

/* Cuts off timers of lists to re-file, or where there are none, left-over timers. */
static size_t wheel_cut_rest(struct wheel *wheel, struct timer **timers, size_t most)
{
	struct list *coming = wheel_next_coming(wheel);

	if (!coming)
		return wheel_cut(&wheel->rest, timers, most);
	wheel->coming_turn = (wheel->coming_turn + 1) % WHEEL_COMING;
	return wheel_cut(coming, timers, most < COMING_SHARE ? most : COMING_SHARE);
}

size_t wheel_expire(struct wheel *wheel, struct timer **expired, size_t most)
{
	size_t count = 0;
	size_t looked;

	for (size_t seen = 0; seen < most; seen += looked) {
		bool late = list_is_empty(&wheel->due);
		size_t left = most - seen;
		size_t due;

		if (count > 0 && late != wheel->expired_late)
			break;
		looked = late ? wheel_cut_rest(wheel, expired + count, left)
			      : wheel_cut(&wheel->due, expired + count, left);
		if (looked == 0)
			break;
		due = wheel_keep_due(wheel, expired + count, looked);
		if (due > 0)
			wheel->expired_late = late;
		count += due;
	}
	return count;
}

size_t wheel_check(struct wheel *wheel)
{
	const struct ticks *ticks = &wheel->ticks;
	size_t count = wheel_slot_check(&wheel->due, ticks, 0) +
		       wheel_slot_check(&wheel->rest, ticks, 0) +
		       wheel_slot_check(&wheel->next, ticks, 0);

	for (int i = 0; i < WHEEL_COMING; i++) {
		assert(list_is_empty(&wheel->coming[i]) || wheel->coming_used >> i & 1);
		count += wheel_slot_check(&wheel->coming[i], ticks, 0);
	}
	return count + levels_check(&wheel->levels, ticks, wheel->now);
}
