/* SPDX-License-Identifier: MIT */
/*
 * A queue of entries, chained through themselves, and one alarm that empties it. What is added to
 * an idle queue sets the alarm; the run goes on until the queue is empty, but lets other tasks of
 * the pool come in between after each crowd. Runs of an alarm never overlap, so on_remove has one
 * caller.
 *
 * An entry waits here with a reference of its own, so that its memory needs nobody else. It is
 * added under the lock of the shard that it leaves, and the queue is told in order: so a thread
 * that has seen it gone waits for it by waiting for as many as have been added, whatever leaves
 * later.
 */
#include "notice.h"

#include "base/clock.h"
#include "base/thread.h"
#include "entry.h"

enum { CROWD = 1024 };

/*
 * A thread that waits looks whether the wheel goes on, and drives it if that is the caller's part:
 * at once as long as that tells crowds; soon after each crowd that a worker has told, for its run
 * ends a moment after that, and only then is the next one handed over; and ever later while a
 * listener takes its time.
 */
static const tw_duration first_look = 50 * TW_MICROSECOND;
static const tw_duration last_look = 20 * TW_MILLISECOND;

void notice_list_add(struct notice_list *list, struct tw_cache_entry *entry)
{
	entry->notice_next = NULL;
	if (list->last)
		list->last->notice_next = entry;
	else
		list->first = entry;
	list->last = entry;
	list->count++;
}

/* Under the lock: the first crowd; NULL: there is none. */
static struct tw_cache_entry *notices_take_crowd(struct notices *notices)
{
	struct tw_cache_entry *first = notices->first;
	struct tw_cache_entry *last = first;

	if (!first)
		return NULL;
	for (int i = 1; i < CROWD && last->notice_next; i++)
		last = last->notice_next;
	notices->first = last->notice_next;
	if (!notices->first)
		notices->last = NULL;
	last->notice_next = NULL;
	return first;
}

/* True: there are more by now. */
static bool notices_tell_crowd(struct notices *notices)
{
	struct reader *reader = epochs_reader(&notices->domain->epochs);
	struct tw_cache_entry *entry;
	struct tw_cache_entry *next;
	bool is_more;

	pthread_mutex_lock(&notices->lock);
	entry = notices_take_crowd(notices);
	pthread_mutex_unlock(&notices->lock);
	if (!entry)
		return false;
	/* So that tw_cache_flush and tw_cache_destroy know where they are called from. */
	if (reader)
		reader->callbacks++;
	for (; entry; entry = next) {
		next = entry->notice_next;
		notices->on_remove(notices->context, entry, entry_cause(entry));
		tw_cache_entry_release(entry);
		counter_add_ordered(&notices->told, 1);
	}
	if (reader)
		reader->callbacks--;
	pthread_mutex_lock(&notices->lock);
	notices->is_awake = is_more = notices->first != NULL;
	notices->crowds++;
	pthread_cond_broadcast(&notices->progress);
	pthread_mutex_unlock(&notices->lock);
	/* A pool may have all its cells. */
	domain_ask_upkeep(notices->domain);
	return is_more;
}

/* The alarm's run. */
static void notices_run(void *argument)
{
	struct notices *notices = argument;

	if (notices_tell_crowd(notices))
		(void)tw_alarm_set(notices->alarm, 0);
}

enum tw_status notices_open(struct notices *notices, struct domain *domain,
			    const struct tw_cache_options *options)
{
	notices->on_remove = options->on_remove;
	notices->context = options->context;
	notices->most = options->max_queued_removals;
	notices->domain = domain;
	if (!notices->on_remove)
		return TW_OK;
	pthread_mutex_init(&notices->lock, NULL);
	condition_init(&notices->progress);
	return tw_alarm_create(domain->wheel, notices_run, notices, &notices->alarm);
}

void notices_close(struct notices *notices)
{
	if (!notices->on_remove)
		return;
	tw_alarm_destroy(notices->alarm);
	pthread_cond_destroy(&notices->progress);
	pthread_mutex_destroy(&notices->lock);
}

void notices_add(struct notices *notices, struct notice_list *list)
{
	pthread_mutex_lock(&notices->lock);
	if (notices->last)
		notices->last->notice_next = list->first;
	else
		notices->first = list->first;
	notices->last = list->last;
	counter_add(&notices->added, list->count);
	if (!notices->is_awake)
		(void)tw_alarm_set(notices->alarm, 0);
	notices->is_awake = true;
	pthread_mutex_unlock(&notices->lock);
	*list = (struct notice_list){NULL, NULL, 0};
}

enum tw_status notices_wait(struct notices *notices, bool later)
{
	enum tw_status status = TW_OK;
	tw_duration look = first_look;
	uint64_t target;
	int state;

	if (!notices->on_remove)
		return TW_OK;
	/* A cancelled thread would keep the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&notices->lock);
	target = counter_read(&notices->added);
	while (counter_read_ordered(&notices->told) < target && status == TW_OK) {
		uint64_t crowds = notices->crowds;

		pthread_mutex_unlock(&notices->lock);
		status = tw_flush(notices->domain->wheel);
		pthread_mutex_lock(&notices->lock);
		if (counter_read_ordered(&notices->told) < target && status == TW_OK &&
		    notices->crowds == crowds)
			(void)condition_wait(&notices->progress, &notices->lock,
					     clock_read_real(CLOCK_MONOTONIC) + look);
		if (notices->crowds != crowds)
			look = first_look;
		else
			look = look * 2 < last_look ? look * 2 : last_look;
		/* What a listener makes leave is added before its own entry counts as told. */
		if (later)
			target = counter_read(&notices->added);
	}
	pthread_mutex_unlock(&notices->lock);
	pthread_setcancelstate(state, &state);
	return status;
}

void notices_tell_here(struct notices *notices)
{
	tw_alarm_destroy(notices->alarm);
	notices->alarm = NULL;
	while (notices->on_remove && notices_tell_crowd(notices))
		continue;
}
