/* SPDX-License-Identifier: MIT */
/*
 * Level n has slots of slots^n ticks. A timer is filed in the finest level that reaches it from
 * `now`, the next tick to be processed. If tick `now` is the first of a slot of level 1, that slot
 * is emptied into level 0 before the tick is processed; if it is the first of a slot of level 2 as
 * well, that one too, and so on, as Linux's cascade() does.
 */
#include "cascading_wheel.h"

#include "process.h"
#include "stopwatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define MOST_LEVELS 64

struct cascading_wheel {
	/* These are constant. */
	int64_t interval;
	int64_t origin;
	unsigned bits; /* log2 of the slots */
	unsigned level_count;
	pthread_t thread;
	/* These are under the lock. */
	pthread_mutex_t lock;
	uint64_t now; /* the next tick to be processed */
	struct cascading_link *levels[MOST_LEVELS];
	struct cascading_link work; /* due now, not run yet */
	struct cascading_link drained;
	void (*each)(void *argument);
	bool ending;
};

static void list_clear(struct cascading_link *list)
{
	list->next = list;
	list->previous = list;
}

static bool list_is_empty(const struct cascading_link *list)
{
	return list->next == list;
}

static void list_add(struct cascading_link *list, struct cascading_link *link)
{
	link->next = list;
	link->previous = list->previous;
	list->previous->next = link;
	list->previous = link;
}

static void list_take_out(struct cascading_link *link)
{
	link->next->previous = link->previous;
	link->previous->next = link->next;
	link->next = NULL;
}

/* Empties `from`. */
static void list_add_all(struct cascading_link *list, struct cascading_link *from)
{
	if (list_is_empty(from))
		return;
	from->next->previous = list->previous;
	list->previous->next = from->next;
	from->previous->next = list;
	list->previous = from->previous;
	list_clear(from);
}

static struct cascading_link *slot_of(struct cascading_wheel *wheel, unsigned level, uint64_t tick)
{
	uint64_t mask = ((uint64_t)1 << wheel->bits) - 1;

	return &wheel->levels[level][tick >> (wheel->bits * level) & mask];
}

static void place(struct cascading_wheel *wheel, struct cascading_timer *timer)
{
	uint64_t expiry = timer->expiry < wheel->now ? wheel->now : timer->expiry;
	uint64_t away = expiry - wheel->now;
	unsigned level = 0;

	while (level + 1 < wheel->level_count && away >> (wheel->bits * (level + 1)) != 0)
		level++;
	list_add(slot_of(wheel, level, expiry), &timer->link);
}

/* Cascades the whole slot at once. */
static void empty_coarse_slot(struct cascading_wheel *wheel, unsigned level)
{
	struct cascading_link list;

	list_clear(&list);
	list_add_all(&list, slot_of(wheel, level, wheel->now));
	for (struct cascading_link *link = list.next, *next; link != &list; link = next) {
		next = link->next;
		place(wheel, (struct cascading_timer *)link);
	}
}

static void run_list(struct cascading_wheel *wheel, struct cascading_link *list,
		     void (*each)(void *argument))
{
	while (!list_is_empty(list)) {
		struct cascading_timer *timer = (struct cascading_timer *)list->next;

		list_take_out(&timer->link);
		pthread_mutex_unlock(&wheel->lock);
		(each ? each : timer->run)(timer->argument);
		pthread_mutex_lock(&wheel->lock);
	}
}

static void work_off_tick(struct cascading_wheel *wheel)
{
	for (unsigned level = 1; level < wheel->level_count; level++) {
		if (wheel->now & (((uint64_t)1 << (wheel->bits * level)) - 1))
			break;
		empty_coarse_slot(wheel, level);
	}
	list_add_all(&wheel->work, slot_of(wheel, 0, wheel->now));
	wheel->now++;
	run_list(wheel, &wheel->work, NULL);
}

static int64_t tick_time(const struct cascading_wheel *wheel, uint64_t tick)
{
	return wheel->origin + (int64_t)tick * wheel->interval;
}

static void sleep_until(int64_t time)
{
	struct timespec until = {
		.tv_sec = (time_t)(time / NANOSECONDS_PER_SECOND),
		.tv_nsec = (long)(time % NANOSECONDS_PER_SECOND),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* Runs one turn. Returns when the next is due, or -1. */
static int64_t take_turn(struct cascading_wheel *wheel)
{
	int64_t next;

	pthread_mutex_lock(&wheel->lock);
	while (tick_time(wheel, wheel->now) <= stopwatch_now())
		work_off_tick(wheel);
	run_list(wheel, &wheel->drained, wheel->each);
	next = wheel->ending ? -1 : tick_time(wheel, wheel->now);
	pthread_mutex_unlock(&wheel->lock);
	return next;
}

static void *thread_run(void *argument)
{
	struct cascading_wheel *wheel = argument;
	int64_t next = 0;

	/* Sleeps are as exact as those of the library's owner. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
	while (next >= 0) {
		next = take_turn(wheel);
		if (next >= 0)
			sleep_until(next);
	}
	return NULL;
}

static void create_levels(struct cascading_wheel *wheel)
{
	size_t slots = (size_t)1 << wheel->bits;

	wheel->level_count = (62 + wheel->bits - 1) / wheel->bits;
	for (unsigned level = 0; level < wheel->level_count; level++) {
		wheel->levels[level] = process_allocate(slots * sizeof(struct cascading_link));
		for (size_t slot = 0; slot < slots; slot++)
			list_clear(&wheel->levels[level][slot]);
	}
}

struct cascading_wheel *cascading_wheel_create(int64_t interval, size_t slots)
{
	struct cascading_wheel *wheel = process_allocate(sizeof(*wheel));

	wheel->interval = interval;
	wheel->bits = 1;
	while ((size_t)1 << wheel->bits < slots)
		wheel->bits++;
	create_levels(wheel);
	list_clear(&wheel->work);
	list_clear(&wheel->drained);
	pthread_mutex_init(&wheel->lock, NULL);
	wheel->origin = stopwatch_now();
	if (pthread_create(&wheel->thread, NULL, thread_run, wheel) != 0)
		process_fail("the baseline's thread could not be started");
	return wheel;
}

void cascading_wheel_destroy(struct cascading_wheel *wheel)
{
	pthread_mutex_lock(&wheel->lock);
	wheel->ending = true;
	pthread_mutex_unlock(&wheel->lock);
	pthread_join(wheel->thread, NULL);
	pthread_mutex_destroy(&wheel->lock);
	for (unsigned level = 0; level < wheel->level_count; level++)
		free(wheel->levels[level]);
	free(wheel);
}

int64_t cascading_wheel_origin(const struct cascading_wheel *wheel)
{
	return wheel->origin;
}

void cascading_wheel_set(struct cascading_wheel *wheel, struct cascading_timer *timer,
			 int64_t deadline)
{
	int64_t since = deadline - wheel->origin + wheel->interval - 1;

	pthread_mutex_lock(&wheel->lock);
	timer->expiry = since < 0 ? 0 : (uint64_t)(since / wheel->interval);
	place(wheel, timer);
	pthread_mutex_unlock(&wheel->lock);
}

bool cascading_wheel_stop(struct cascading_wheel *wheel, struct cascading_timer *timer)
{
	bool was_set;

	pthread_mutex_lock(&wheel->lock);
	was_set = timer->link.next != NULL;
	if (was_set)
		list_take_out(&timer->link);
	pthread_mutex_unlock(&wheel->lock);
	return was_set;
}

void cascading_wheel_drain(struct cascading_wheel *wheel, void (*each)(void *argument))
{
	pthread_mutex_lock(&wheel->lock);
	wheel->each = each;
	for (unsigned level = 0; level < wheel->level_count; level++) {
		for (size_t slot = 0; slot < (size_t)1 << wheel->bits; slot++)
			list_add_all(&wheel->drained, &wheel->levels[level][slot]);
	}
	pthread_mutex_unlock(&wheel->lock);
}
