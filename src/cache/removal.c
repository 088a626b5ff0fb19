/* SPDX-License-Identifier: MIT */
/*
 * Removals are a queue of entries, chained through themselves, and one alarm that empties it. What
 * is added to an idle queue sets the alarm; the run goes on until the queue is empty, but lets
 * other tasks of the pool come in between after each crowd. Runs of an alarm never overlap, so
 * on_remove has one caller.
 *
 * An entry waits here with a reference of its own, so that its memory needs no other. It is added
 * under the lock of the shard that it leaves, and the queue is reported in order. So a thread that
 * has seen it gone waits for it by waiting for as many as have been added, whatever leaves later.
 *
 * Invariants:
 *   `reported` ≤ `added`, and the list has the entries between
 *   while it has some, the alarm is set, or its run will look again, unless the wheel was stopped
 */

#include "shared.h"

#include "base/clock.h"
#include "base/thread.h"
#include "entry.h"

enum { CROWD = 1024 };

/*
 * A thread that waits looks this often whether the wheel goes on. Where callers drive, it drives:
 * at once while that reports crowds, and soon after each crowd that a worker has reported, for its
 * run ends a moment after that, and only then is the next one handed over.
 */
static const tw_duration look_of_waiter = 20 * TW_MILLISECOND;
static const tw_duration look_of_driver = 100 * TW_MICROSECOND;

/* Takes the first crowd, or returns NULL if there is none. The caller holds the lock. */
static struct tw_cache_entry *removals_take_crowd(struct removals *removals)
{
	struct tw_cache_entry *first = removals->first;
	struct tw_cache_entry *last = first;

	if (!first)
		return NULL;
	for (int i = 1; i < CROWD && last->removal_next; i++)
		last = last->removal_next;
	removals->first = last->removal_next;
	if (!removals->first)
		removals->last = NULL;
	last->removal_next = NULL;
	return first;
}

/* Reports the entries of a crowd, and lets them go. */
static void removals_tell(struct removals *removals, struct tw_cache_entry *crowd)
{
	struct callback callback __attribute__((cleanup(callback_end))) =
		callback_begin(removals->shared);
	struct tw_cache_entry *entry;

	while ((entry = crowd)) {
		crowd = entry->removal_next;
		removals->on_remove(removals->context, entry, entry_cause(entry));
		tw_cache_entry_release(entry);
		counter_add_ordered(&removals->reported, 1);
	}
	callback.has_returned = true;
}

/* Reports a crowd. The alarm runs this. */
static void removals_run(void *argument)
{
	struct removals *removals = argument;
	struct tw_cache_entry *crowd;

	pthread_mutex_lock(&removals->lock);
	crowd = removals_take_crowd(removals);
	pthread_mutex_unlock(&removals->lock);
	removals_tell(removals, crowd);
	pthread_mutex_lock(&removals->lock);
	removals->is_awake = removals->first != NULL;
	if (removals->is_awake)
		(void)tw_alarm_set(&removals->alarm, 0);
	removals->crowds++;
	pthread_cond_broadcast(&removals->progress);
	pthread_mutex_unlock(&removals->lock);
	/* A pool may have all its cells. */
	shared_ask_maintenance(removals->shared);
}

enum tw_status removals_open(struct removals *removals, struct shared_state *shared,
			     const struct tw_cache_options *options)
{
	removals->on_remove = options->on_remove;
	removals->context = options->context;
	removals->shared = shared;
	if (!removals->on_remove)
		return TW_OK;
	pthread_mutex_init(&removals->lock, NULL);
	condition_init(&removals->progress);
	return tw_alarm_init(shared->wheel, &removals->alarm, removals_run, removals);
}

void removals_close(struct removals *removals)
{
	if (!removals->on_remove)
		return;
	tw_alarm_destroy(&removals->alarm);
	pthread_cond_destroy(&removals->progress);
	pthread_mutex_destroy(&removals->lock);
}

void removals_add(struct removals *removals, struct tw_cache_entry *entry)
{
	entry->removal_next = NULL;
	pthread_mutex_lock(&removals->lock);
	if (removals->last)
		removals->last->removal_next = entry;
	else
		removals->first = entry;
	removals->last = entry;
	counter_add(&removals->added, 1);
	if (!removals->is_awake)
		(void)tw_alarm_set(&removals->alarm, 0);
	removals->is_awake = true;
	pthread_mutex_unlock(&removals->lock);
}

enum tw_status removals_wait(struct removals *removals)
{
	struct tw_wheel *wheel = removals->shared->wheel;
	bool drives = tw_drive_of(wheel) == TW_DRIVE_CALLER;
	enum tw_status status = TW_OK;
	uint64_t target;

	if (!removals->on_remove)
		return TW_OK;
	pthread_mutex_lock(&removals->lock);
	target = counter_read(&removals->added);
	while (counter_read_ordered(&removals->reported) < target && status == TW_OK) {
		uint64_t crowds = removals->crowds;

		pthread_mutex_unlock(&removals->lock);
		status = drives ? tw_poll(wheel, NULL) : tw_flush(wheel);
		pthread_mutex_lock(&removals->lock);
		if (counter_read_ordered(&removals->reported) < target && status == TW_OK &&
		    removals->crowds == crowds)
			(void)condition_wait(&removals->progress, &removals->lock,
					     clock_read_real(CLOCK_MONOTONIC) +
						     (drives ? look_of_driver : look_of_waiter));
	}
	pthread_mutex_unlock(&removals->lock);
	return status;
}

void removals_tell_here(struct removals *removals)
{
	tw_alarm_destroy(&removals->alarm);
	while (removals_waiting(removals) > 0)
		removals_run(removals);
}
