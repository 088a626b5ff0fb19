/* SPDX-License-Identifier: MIT */
/*
 * handlers.c is one queue with one lock. A task comes over the network and goes back over it, which
 * costs far more than the lock.
 */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

static void handlers_run(const struct tw_redis_worker_options *options, struct run *run)
{
	tw_duration start = clock_read_real(CLOCK_MONOTONIC);

	if (!run_may_begin(run, start)) {
		run->given_back = true;
		return;
	}
	run_begin(run, start);
	run->outcome = options->handler(options->context, run->job, &run->verdict);
	run->verdict.reason[TW_REDIS_REASON_MAX] = '\0';
	run->took = clock_read_real(CLOCK_MONOTONIC) - start;
}

static void *handlers_thread(void *argument)
{
	struct handlers *handlers = argument;
	struct runner *runner = &handlers->runner;
	struct run *run;

	thread_begin_calls(&handlers->setup, "redis-task");
	pthread_mutex_lock(&runner->lock);
	while ((run = runner_take(runner)) || !runner->stop) {
		if (!run) {
			pthread_cond_wait(&handlers->wake, &runner->lock);
			continue;
		}
		pthread_mutex_unlock(&runner->lock);
		handlers_run(handlers->options, run);
		pthread_mutex_lock(&runner->lock);
		runner_end(runner, run);
	}
	pthread_mutex_unlock(&runner->lock);
	return NULL;
}

enum tw_status handlers_start(struct handlers *handlers,
			      const struct tw_redis_worker_options *options,
			      struct mailbox *mailbox)
{
	unsigned count = options->handler ? options->handlers : 0;

	memset(handlers, 0, sizeof(*handlers));
	handlers->options = options;
	thread_setup_init(&handlers->setup, NULL);
	handlers->threads = calloc(count, sizeof(*handlers->threads));
	if (!handlers->threads && count)
		return TW_NO_MEMORY;
	runner_init(&handlers->runner, mailbox);
	pthread_cond_init(&handlers->wake, NULL);
	for (; handlers->count < count; handlers->count++) {
		if (thread_start(&handlers->threads[handlers->count], handlers_thread, handlers,
				 "redis", "task", &handlers->setup) != 0) {
			handlers_stop(handlers);
			return TW_SYSTEM;
		}
	}
	return TW_OK;
}

void handlers_stop(struct handlers *handlers)
{
	pthread_mutex_lock(&handlers->runner.lock);
	handlers->runner.stop = true;
	pthread_cond_broadcast(&handlers->wake);
	pthread_mutex_unlock(&handlers->runner.lock);
	for (unsigned i = 0; i < handlers->count; i++)
		pthread_join(handlers->threads[i].id, NULL);
	pthread_cond_destroy(&handlers->wake);
	runner_destroy(&handlers->runner);
	free(handlers->threads);
}

void handlers_submit(struct handlers *handlers, struct run_list *runs)
{
	size_t count = runner_give(&handlers->runner, runs);

	for (size_t i = 0; i < handlers->count && i < count; i++)
		pthread_cond_signal(&handlers->wake);
}

bool handlers_are_caller(const struct handlers *handlers)
{
	for (unsigned i = 0; i < handlers->count; i++)
		if (pthread_equal(handlers->threads[i].id, pthread_self()))
			return true;
	return false;
}
