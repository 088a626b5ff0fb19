/* SPDX-License-Identifier: MIT */
/*
 * worker_open.c starts and stops a worker. It has these threads:
 *
 *   main       decides: claims, acknowledges, extends leases. It drives a wheel of its own
 *              (TW_DRIVE_CALLER), so all timers run there and need no lock.
 *   nodes      talk to Redis, one for each of its nodes
 *   hints      listens to hints
 *   callbacks  HTTP requests
 *   handlers   the user's function
 *
 * Running tasks go on while Redis is away or slow.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "worker.h"

enum { TICKS = 512, HANDLERS_MAX = 256, CALLBACKS_MAX = 1024 };
static const tw_duration tick = 500 * TW_MICROSECOND;
static const tw_duration lease_min = 100 * TW_MILLISECOND;
static const tw_duration poll_min = 10 * TW_MILLISECOND;
static const tw_duration poll_max = 10 * TW_SECOND;
static const tw_duration day = 24 * TW_HOUR;

static bool time_default(tw_duration *time, tw_duration otherwise, tw_duration min, tw_duration max)
{
	if (!*time)
		*time = otherwise;
	return *time >= min && *time <= max;
}

static bool count_default(unsigned *count, unsigned otherwise, unsigned max)
{
	if (!*count)
		*count = otherwise;
	return *count <= max;
}

/* Fills in the defaults. Returns false if an option is out of range. */
static bool options_complete(struct tw_redis_worker_options *options)
{
	const unsigned *callbacks = &options->callbacks;

	return count_default(&options->handlers, 4, HANDLERS_MAX) &&
	       count_default(&options->callbacks, 64, CALLBACKS_MAX) &&
	       count_default(&options->callbacks_per_host,
			     *callbacks - (*callbacks + 7) / 8 + (*callbacks == 1),
			     CALLBACKS_MAX) &&
	       count_default(&options->batch, 100, TW_REDIS_BATCH_MAX) &&
	       time_default(&options->lease, 30 * TW_SECOND, lease_min, day) &&
	       time_default(&options->retry_first, TW_SECOND, 1, TW_REDIS_DELAY_MAX) &&
	       time_default(&options->retry_max, TW_HOUR, 1, TW_REDIS_DELAY_MAX) &&
	       time_default(&options->http_timeout, 30 * TW_SECOND, 1, day) &&
	       time_default(&options->connection_age, TW_MINUTE, TW_SECOND, day) &&
	       options->dead_max_age >= 0 && options->dead_max_age <= TW_REDIS_DELAY_MAX &&
	       time_default(&options->poll, TW_SECOND, poll_min, poll_max) &&
	       reserved_are_0(options->reserved);
}

/* The wheel never calls this, because all timers are by handle. */
static void nothing_expires(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static enum tw_status runners_start(struct tw_redis_worker *worker)
{
	const struct tw_redis_worker_options *options = &worker->options;
	struct feed *callbacks = &worker->feeds[FEED_CALLBACKS];
	struct feed *handlers = &worker->feeds[FEED_HANDLERS];
	enum tw_status status;

	handlers->slots = options->handler ? options->handlers : 0;
	run_list_init(&callbacks->fresh);
	run_list_init(&handlers->fresh);
	status = callbacks_start(&worker->callbacks, options, &worker->targets, worker->random,
				 &worker->mailbox);
	if (status != TW_OK)
		return status;
	/* Descriptors may allow fewer requests than the options. */
	callbacks->slots = options->callbacks < worker->callbacks.most ? options->callbacks
								       : worker->callbacks.most;
	status = handlers_start(&worker->handlers, options, &worker->mailbox);
	if (status != TW_OK)
		callbacks_stop(&worker->callbacks);
	return status;
}

static void runners_stop(struct tw_redis_worker *worker)
{
	handlers_stop(&worker->handlers);
	callbacks_stop(&worker->callbacks);
}

static enum tw_status worker_build(struct tw_redis_worker *worker, struct tw_redis_error *error)
{
	const struct tw_options by_caller = {.drive = TW_DRIVE_CALLER,
					     .workers = TW_WORKERS_INLINE};
	enum tw_status status;

	list_init(&worker->asked);
	worker->turn_bytes = TURN_BYTES_MAX;
	status = tw_create(&worker->wheel, tick, TICKS, nothing_expires, &by_caller);
	if (status != TW_OK)
		goto no_wheel;
	status = mailbox_init(&worker->mailbox);
	if (status != TW_OK)
		goto no_mailbox;
	status = runners_start(worker);
	if (status != TW_OK)
		goto no_runners;
	status = TW_SYSTEM;
	if (!leaders_begin(worker))
		goto no_leaders;
	if (!hints_begin(&worker->hints))
		goto no_hints;
	if (thread_start(&worker->thread, worker_thread, worker, "redis", "worker",
			 &worker->handlers.setup) == 0)
		return TW_OK;
	leaders_end(worker);
	hints_end(&worker->hints);
	goto no_leaders;
no_hints:
	leaders_end(worker);
no_leaders:
	runners_stop(worker);
no_runners:
	mailbox_destroy(&worker->mailbox);
no_mailbox:
	tw_destroy(worker->wheel);
no_wheel:
	return error_set(error, status, "%s", tw_status_text(status));
}

static enum tw_status worker_open(struct tw_redis_worker *worker,
				  const struct tw_redis_options *redis_options,
				  struct tw_redis_error *error)
{
	enum tw_status status;

	if (!options_complete(&worker->options))
		return error_set(error, TW_INVALID, "a worker option is out of range");
	status = targets_read(&worker->targets, &worker->options, error);
	if (status != TW_OK)
		return status;
	if (worker->options.ca_file && access(worker->options.ca_file, R_OK))
		return error_set(error, TW_INVALID, "can't read %.200s", worker->options.ca_file);
	/* The caller may free its lists. */
	worker->options.allow = worker->options.deny = NULL;
	if (getrandom(&worker->random, sizeof(worker->random), GRND_NONBLOCK) < 0)
		worker->random = (uint64_t)clock_read_real(CLOCK_MONOTONIC);
	worker->random |= 1;
	snprintf(worker->name, sizeof(worker->name), "%016" PRIx64, worker->random);
	worker->begun = clock_read_real(CLOCK_MONOTONIC);
	return sources_open(worker, redis_options, error);
}

static void worker_free(struct tw_redis_worker *worker)
{
	sources_close(worker);
	targets_free(&worker->targets);
	pthread_cond_destroy(&worker->answered);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

enum tw_status tw_redis_worker_start(struct tw_redis_worker **worker,
				     const struct tw_redis_options *redis_options,
				     const struct tw_redis_worker_options *options,
				     struct tw_redis_error *error)
{
	static const struct tw_redis_options redis_defaults;
	struct tw_redis_worker *started;
	enum tw_status status;

	if (error)
		*error = (struct tw_redis_error){0};
	if (!worker)
		return error_set(error, TW_INVALID, "the result pointer is NULL");
	*worker = NULL;
	started = calloc(1, sizeof(*started));
	if (!started || !fork_guard_open(&started->guard)) {
		free(started);
		return error_set(error, TW_NO_MEMORY, "out of memory");
	}
	if (options)
		started->options = *options;
	pthread_mutex_init(&started->lock, NULL);
	pthread_cond_init(&started->answered, NULL);
	started->shown_at = clock_read_real(CLOCK_MONOTONIC);
	status = worker_open(started, redis_options ? redis_options : &redis_defaults, error);
	if (status == TW_OK)
		status = worker_build(started, error);
	if (status == TW_OK)
		*worker = started;
	else
		worker_free(started);
	return status;
}

static bool worker_is_caller(const struct tw_redis_worker *worker)
{
	return pthread_equal(worker->thread.id, pthread_self()) ||
	       handlers_are_caller(&worker->handlers);
}

enum tw_status tw_redis_worker_stop(struct tw_redis_worker *worker, tw_duration grace)
{
	tw_duration stop_by;
	enum tw_status status;
	size_t answers;

	if (!worker)
		return TW_OK;
	if (grace < 0 || !worker_is_own(worker) || worker_is_caller(worker))
		return TW_INVALID;
	stop_by = time_add(clock_read_real(CLOCK_MONOTONIC), grace);
	pthread_mutex_lock(&worker->lock);
	if (!worker->stop_asked || stop_by < worker->stop_by)
		worker->stop_by = stop_by;
	worker->stop_asked = true;
	answers = worker->stop_answers;
	mailbox_ring(&worker->mailbox);
	while (!worker->ended && worker->stop_answers == answers)
		condition_wait(&worker->answered, &worker->lock, TW_FOREVER);
	status = worker->ended ? TW_OK : TW_RUNNING;
	pthread_mutex_unlock(&worker->lock);
	return status;
}

enum tw_status tw_redis_worker_destroy(struct tw_redis_worker *worker)
{
	int state;

	if (!worker)
		return TW_OK;
	if (!worker_is_own(worker) || worker_is_caller(worker))
		return TW_INVALID;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (tw_redis_worker_stop(worker, 0) == TW_RUNNING)
		while (tw_redis_worker_stop(worker, TW_SECOND) == TW_RUNNING)
			continue;
	pthread_join(worker->thread.id, NULL);
	runners_stop(worker);
	leaders_end(worker);
	hints_end(&worker->hints);
	mailbox_destroy(&worker->mailbox);
	tw_destroy(worker->wheel);
	worker_free(worker);
	pthread_setcancelstate(state, &state);
	return TW_OK;
}
