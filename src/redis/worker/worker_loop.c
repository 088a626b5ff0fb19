/* SPDX-License-Identifier: MIT */
/*
 * worker_loop.c is the main thread's loop. The wheel runs what is due (shards to look at, leases to
 * extend), ended runs and hints are taken, a turn takes the steps that have ended and begins
 * others, and the thread sleeps if there was nothing to do.
 *
 * A stop ends claims and gives back the runs that have not begun. The loop goes on until no run is
 * held and no reply is owed, because a claim may still bring tasks. When the grace is over
 * callbacks are broken off and given back, and their reports have break_time. Runs without a report
 * by then run again elsewhere. Handlers cannot be broken off: the stop returns TW_RUNNING, and the
 * loop goes on for them.
 */

#include "worker.h"

#include <poll.h>
#include <time.h>

#include "base/clock.h"

static const tw_duration break_time = 2 * TW_SECOND;

static bool collect(struct tw_redis_worker *worker)
{
	struct run_list ended;
	struct run *run;
	bool any;

	run_list_init(&ended);
	mailbox_take(&worker->mailbox, &ended);
	any = ended.count;
	while ((run = run_list_take(&ended)))
		worker_end_run(worker, run);
	return any;
}

static void hint_take(struct source *source, const struct hint *hint)
{
	source->stats.hints++;
	if (hint->shard < source->shard_count)
		shard_look_in(&source->shards[hint->shard], hint->wait);
}

static bool hear(struct tw_redis_worker *worker)
{
	struct tw_redis_error error;
	struct heard heard;

	if (!hints_take(&worker->hints, &heard))
		return false;
	worker->hints_come = heard.connected;
	for (size_t i = 0; i < heard.count; i++)
		hint_take(&worker->sources[heard.hints[i].place], &heard.hints[i]);
	if (heard.refusal.status != TW_OK) {
		error_set(&error, heard.refusal.status,
			  "hints can't be received, so every shard is polled: %s",
			  heard.refusal.text);
		worker_notice(worker, &error);
	}
	/* Hints may have been missed, and the poll interval changes. */
	for (size_t i = 0; i < worker->source_count && heard.missed; i++)
		for (unsigned k = 0; k < worker->sources[i].shard_count; k++)
			shard_look_in(&worker->sources[i].shards[k], 0);
	return true;
}

static void give_back_waiting(struct tw_redis_worker *worker)
{
	struct runner *handlers = &worker->handlers.runner;
	struct run_list back;
	struct run *run;

	run_list_init(&back);
	callbacks_order(&worker->callbacks, CALLBACKS_GIVE_BACK);
	pthread_mutex_lock(&handlers->lock);
	run_list_move(&back, &handlers->waiting);
	pthread_mutex_unlock(&handlers->lock);
	while ((run = run_list_take(&back))) {
		run->given_back = true;
		worker_end_run(worker, run);
	}
}

static void shard_drop_unconfirmed(struct worker_shard *shard)
{
	struct run *run;

	if (shard->steps[STEP_FINISH].under_way)
		run_list_move(&shard->ends, &shard->steps[STEP_FINISH].runs);
	while ((run = run_list_take(&shard->ends)))
		worker_report(shard->source->worker, run, TW_REDIS_END_UNCONFIRMED);
}

/* Answers the waiting stops: all has ended, or handlers still run. */
static void stop_answer(struct tw_redis_worker *worker, bool ended)
{
	worker->stop_stage = STOP_NONE;
	pthread_mutex_lock(&worker->lock);
	worker->stop_asked = false;
	worker->stop_answers++;
	worker->ended = ended;
	pthread_cond_broadcast(&worker->answered);
	pthread_mutex_unlock(&worker->lock);
}

static void stop_begin(struct tw_redis_worker *worker)
{
	bool asked;

	pthread_mutex_lock(&worker->lock);
	asked = worker->stop_asked;
	/* Another caller may have less patience. */
	if (asked && worker->stop_stage != STOP_BREAKING)
		worker->stop_at = worker->stop_by;
	pthread_mutex_unlock(&worker->lock);
	if (!asked || worker->stop_stage != STOP_NONE)
		return;
	worker->stop_stage = STOP_ASKED;
	worker->stopping = true;
	give_back_waiting(worker);
}

/* Breaks off the callbacks, since the grace is over. */
static void stop_break(struct tw_redis_worker *worker)
{
	worker->stop_stage = STOP_BREAKING;
	worker->stop_at = clock_read_real(CLOCK_MONOTONIC) + break_time;
	callbacks_order(&worker->callbacks, CALLBACKS_ABORT);
	for (size_t i = 0; i < worker->source_count; i++)
		for (unsigned k = 0; k < worker->sources[i].shard_count; k++)
			worker->sources[i].shards[k].blocked = false;
}

/* Goes on with a stop, if there is one. Returns whether the thread must end. */
static bool stop_go_on(struct tw_redis_worker *worker)
{
	size_t running;
	bool is_over;
	bool owed;

	stop_begin(worker);
	if (worker->stop_stage == STOP_NONE)
		return false;
	is_over = clock_read_real(CLOCK_MONOTONIC) >= worker->stop_at;
	owed = !list_is_empty(&worker->asked);
	if ((worker->held || owed) && worker->stop_stage == STOP_ASKED && is_over) {
		stop_break(worker);
		is_over = false;
	}
	running = worker->feeds[FEED_HANDLERS].pending;
	if (worker->stop_stage == STOP_BREAKING && !worker->feeds[FEED_CALLBACKS].pending) {
		if (is_over) {
			for (size_t i = 0; i < worker->source_count; i++)
				for (unsigned k = 0; k < worker->sources[i].shard_count; k++)
					shard_drop_unconfirmed(&worker->sources[i].shards[k]);
			owed = false;
		}
		if (running && worker->held == running)
			stop_answer(worker, false);
	}
	return !worker->held && !owed;
}

static void sleep_until(struct tw_redis_worker *worker, tw_duration until)
{
	struct pollfd mailbox = {.fd = worker->mailbox.descriptor, .events = POLLIN};
	tw_duration left = worker->stop_stage == STOP_NONE
				   ? until
				   : time_left(worker->stop_at, clock_read_real(CLOCK_MONOTONIC));
	struct timespec time;

	left = left < until ? left : until;
	time = (struct timespec){left / TW_SECOND, left % TW_SECOND};
	ppoll(&mailbox, 1, &time, NULL);
}

void *worker_thread(void *argument)
{
	struct tw_redis_worker *worker = argument;
	int state;

	/* A hook may cancel its own thread. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	thread_begin_calls(&worker->handlers.setup, worker->thread.name);
	for (;;) {
		tw_duration until = 0;
		bool any;

		tw_poll(worker->wheel, &until);
		any = collect(worker);
		any |= hear(worker);
		if (stop_go_on(worker)) {
			worker_counts_show(worker);
			stop_answer(worker, true);
			return NULL;
		}
		any |= worker_turn(worker);
		callbacks_submit(&worker->callbacks, &worker->feeds[FEED_CALLBACKS].fresh);
		handlers_submit(&worker->handlers, &worker->feeds[FEED_HANDLERS].fresh);
		worker_counts_show(worker);
		if (!any)
			sleep_until(worker, until);
	}
}
