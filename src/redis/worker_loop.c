/* SPDX-License-Identifier: MIT */
/*
 * The main thread's loop: let the wheel run what is due (shards to look at, leases to extend), take
 * what runners have ended, hear hints, say all there is to say to Redis in one round trip, and
 * sleep when there was nothing.
 *
 * Each shard has one time when it is to be looked at: what its last claim told, or a hint, or the
 * poll interval, whichever is earliest. So an idle worker wakes for the poll alone.
 *
 * Stopping: nothing is claimed any more; what was not begun is given back; then the loop goes on
 * until nothing is held. When the grace is over callbacks are broken off and given back, and Redis
 * has BREAK_TIME to hear of it. What it could not be told by then will run again elsewhere.
 * Handlers can't be broken off: the answer is TW_RUNNING, and the loop goes on for them.
 */
#include "worker.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/xorshift.h"

#define BREAK_TIME (2 * TW_SECOND)
/* With hints a shard is looked at without one only now and then; scripts hint at what is due
 * before. */
#define POLL_WITH_HINTS (10 * TW_SECOND)

/* ----------------------------------------------------------------------------------- Shards -- */

static void shard_become_due(void *argument)
{
	struct shard *shard = argument;

	shard->due = true;
	shard->look_at = TW_FOREVER;
	shard->timer.id = 0;
}

void shard_look_in(struct shard *shard, tw_duration wait)
{
	struct tw_redis_worker *worker = shard->worker;
	tw_duration poll =
		hints_are_connected(&worker->hints) ? POLL_WITH_HINTS : worker->options.poll;
	tw_duration at;

	if (shard->due)
		return;
	at = clock_read_real(CLOCK_MONOTONIC) + (wait < poll ? wait : poll);
	if (wait > 0 && at >= shard->look_at)
		return;
	if (shard->timer.id)
		tw_timer_stop(worker->wheel, shard->timer);
	shard->look_at = at;
	if (wait <= 0 || tw_after_func(worker->wheel, at - clock_read_real(CLOCK_MONOTONIC),
				       shard_become_due, shard, &shard->timer) != TW_OK)
		shard_become_due(shard);
}

static void look_everywhere(struct tw_redis_worker *worker)
{
	for (unsigned i = 0; i < worker->shard_count; i++)
		shard_look_in(&worker->shards[i], 0);
}

/* ------------------------------------------------------------------------------------- Runs -- */

static void run_refuse(struct run *run, enum tw_redis_outcome outcome, const char *reason)
{
	run->outcome = outcome;
	snprintf(run->verdict.reason, sizeof(run->verdict.reason), "%s", reason);
	worker_end_run(run->shard->worker, run);
}

static struct lane *run_lane(struct tw_redis_worker *worker, const struct run *run)
{
	return run->by_handler ? &worker->handler_lane : &worker->callback_lane;
}

void worker_take_run(struct tw_redis_worker *worker, struct run *run)
{
	struct lane *lane;
	size_t index = (size_t)(run->job - run->batch->jobs);

	run->by_handler = !run->job->url || worker->options.handler_for_callbacks;
	lane = run_lane(worker, run);
	lane->pending++;
	if (run->batch->broken[index]) {
		run_refuse(run, TW_REDIS_KILL, "its record can't be read");
	} else if (!lane->open) {
		run_refuse(run, TW_REDIS_RETRY, "it has no callback, and this worker no handler");
	} else {
		run_list_add(&lane->fresh, run);
		run_arm_extension(run);
	}
}

/* How long a failed run is to wait: doubled with each attempt, less a random part up to half. */
static tw_duration run_backoff(struct tw_redis_worker *worker, const struct run *run)
{
	tw_duration wait = worker->options.retry_first;

	for (unsigned i = 1; i < run->job->attempt && wait < worker->options.retry_max; i++)
		wait *= 2;
	if (wait > worker->options.retry_max)
		wait = worker->options.retry_max;
	/* So that tasks which failed together don't come back together. */
	wait -= (tw_duration)(xorshift_next(&worker->random) % (uint64_t)(wait / 2 + 1));
	return wait > run->retry_least ? wait : run->retry_least;
}

static void run_judge(struct tw_redis_worker *worker, struct run *run)
{
	if (run->outcome != TW_REDIS_RETRY || run->job->attempt >= run->job->max_attempts)
		run->wait = -1;
	else if (run->verdict.retry_in > 0)
		run->wait = run->verdict.retry_in < TW_REDIS_DELAY_MAX ? run->verdict.retry_in
								       : TW_REDIS_DELAY_MAX;
	else
		run->wait = run_backoff(worker, run);
}

void worker_end_run(struct tw_redis_worker *worker, struct run *run)
{
	struct shard *shard = run->shard;
	struct lane *lane = run_lane(worker, run);

	run->ended = true;
	lane->pending--;
	if (run->begun && !run->given_back)
		lane->mean += lane->mean ? (run->took - lane->mean) / 16 : run->took + 1;
	if (run->extension.id)
		tw_timer_stop(worker->wheel, run->extension);
	if (run->given_back) {
		run_list_add(&shard->released, run);
	} else if (run->outcome == TW_REDIS_DONE) {
		run_list_add(&shard->done, run);
	} else {
		run_judge(worker, run);
		run_list_add(&shard->failed, run);
	}
}

static bool collect(struct tw_redis_worker *worker)
{
	struct run_list ended = {0};
	struct run *run;
	bool any;

	mailbox_take(&worker->mailbox, &ended);
	any = ended.head;
	while ((run = run_list_take(&ended)))
		worker_end_run(worker, run);
	return any;
}

static bool hear(struct tw_redis_worker *worker)
{
	bool any = false, connected;
	tw_duration wait;
	unsigned shard;

	if (hints_connect(&worker->hints, worker->redis, clock_read_real(CLOCK_MONOTONIC)))
		any = true;
	while (hints_next(&worker->hints, &shard, &wait)) {
		worker->stats.hints++;
		any = true;
		if (shard < worker->shard_count)
			shard_look_in(&worker->shards[shard], wait);
	}
	connected = hints_are_connected(&worker->hints);
	/* Come or gone: something may have been missed, and the poll interval is another one. */
	if (connected != worker->hints_were_connected)
		look_everywhere(worker);
	worker->hints_were_connected = connected;
	return any;
}

/* --------------------------------------------------------------------------------- Stopping -- */

static void give_back_waiting(struct tw_redis_worker *worker)
{
	struct run_list back = {0};
	struct run *run;

	callbacks_take_back(&worker->callbacks, &back);
	if (worker->options.handler)
		handlers_take_back(&worker->handlers, &back);
	while ((run = run_list_take(&back))) {
		run->given_back = true;
		worker_end_run(worker, run);
	}
}

static void drop_untold(struct tw_redis_worker *worker)
{
	for (unsigned i = 0; i < worker->shard_count; i++) {
		struct shard *shard = &worker->shards[i];
		struct run *run;

		/* Runs that go on stay in their timers; ended ones may be in this list. */
		while ((run = shard->extend)) {
			shard->extend = run->extend_next;
			run->extending = false;
			if (!run->ended)
				run_arm_extension(run);
		}
		while ((run = run_list_take(&shard->done)) ||
		       (run = run_list_take(&shard->failed)) ||
		       (run = run_list_take(&shard->released)))
			worker_report(worker, run, TW_REDIS_END_UNTOLD);
	}
}

static void stop_answer(struct tw_redis_worker *worker, enum tw_status status)
{
	worker->stop_stage = STOP_NONE;
	pthread_mutex_lock(&worker->lock);
	worker->stop_asked = false;
	worker->stop_status = status;
	worker->stop_answered = true;
	pthread_cond_signal(&worker->answered);
	pthread_mutex_unlock(&worker->lock);
}

static void stop_begin(struct tw_redis_worker *worker)
{
	bool asked;
	tw_duration grace;

	pthread_mutex_lock(&worker->lock);
	asked = worker->stop_asked;
	grace = worker->grace;
	pthread_mutex_unlock(&worker->lock);
	if (!asked || worker->stop_stage != STOP_NONE)
		return;
	worker->stop_stage = STOP_ASKED;
	worker->stopping = true;
	worker->stop_at = time_add(clock_read_real(CLOCK_MONOTONIC), grace);
	give_back_waiting(worker);
}

/* The grace is over. */
static void stop_break(struct tw_redis_worker *worker)
{
	worker->stop_stage = STOP_BREAKING;
	worker->stop_at = clock_read_real(CLOCK_MONOTONIC) + BREAK_TIME;
	callbacks_abort(&worker->callbacks);
	for (unsigned i = 0; i < worker->shard_count; i++)
		worker->shards[i].blocked = false;
}

/* Goes on with stopping, if that is asked. True: the thread is to end. */
static bool stop_go_on(struct tw_redis_worker *worker)
{
	size_t running;

	stop_begin(worker);
	if (worker->stop_stage == STOP_NONE)
		return false;
	if (worker->held && worker->stop_stage == STOP_ASKED &&
	    clock_read_real(CLOCK_MONOTONIC) >= worker->stop_at)
		stop_break(worker);
	running = worker->handler_lane.pending;
	if (worker->stop_stage == STOP_BREAKING && !worker->callback_lane.pending) {
		if (clock_read_real(CLOCK_MONOTONIC) >= worker->stop_at)
			drop_untold(worker);
		if (running && worker->held == running)
			stop_answer(worker, TW_RUNNING);
	}
	if (worker->held)
		return false;
	stop_answer(worker, TW_OK);
	return true;
}

/* ------------------------------------------------------------------------------------- Loop -- */

static void hand_over(struct tw_redis_worker *worker)
{
	callbacks_submit(&worker->callbacks, &worker->callback_lane.fresh);
	if (worker->options.handler)
		handlers_submit(&worker->handlers, &worker->handler_lane.fresh);
}

static void show_stats(struct tw_redis_worker *worker)
{
	worker->stats.held = worker->held;
	worker->stats.running = callbacks_running(&worker->callbacks);
	if (worker->options.handler)
		worker->stats.running += handlers_running(&worker->handlers);
	pthread_mutex_lock(&worker->lock);
	worker->shown = worker->stats;
	pthread_mutex_unlock(&worker->lock);
}

static tw_duration earlier(tw_duration time, tw_duration at)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	tw_duration until = at > now ? at - now : 0;

	return until < time ? until : time;
}

static void sleep_until(struct tw_redis_worker *worker, tw_duration until)
{
	struct pollfd descriptors[2] = {{.fd = worker->mailbox.descriptor, .events = POLLIN},
					{.fd = hints_descriptor(&worker->hints), .events = POLLIN}};
	struct timespec time;

	if (!hints_are_connected(&worker->hints))
		until = earlier(until, worker->hints.retry_at);
	if (worker->stop_stage != STOP_NONE)
		until = earlier(until, worker->stop_at);
	if (until > TW_HOUR)
		until = TW_HOUR;
	time = (struct timespec){until / TW_SECOND, until % TW_SECOND};
	ppoll(descriptors, 2, &time, NULL);
}

void *worker_thread(void *argument)
{
	struct tw_redis_worker *worker = argument;

	for (;;) {
		tw_duration until = 0;
		bool any;

		tw_poll(worker->wheel, &until);
		any = collect(worker);
		any |= hear(worker);
		if (stop_go_on(worker))
			break;
		any |= worker_turn(worker);
		hand_over(worker);
		show_stats(worker);
		if (!any)
			sleep_until(worker, until);
	}
	return NULL;
}
