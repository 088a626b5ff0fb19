/* SPDX-License-Identifier: MIT */
/*
 * One queue and its lock. A task of this kind has come over the network and goes back over it,
 * which costs so much more than the lock that nothing finer would be felt.
 */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

static void handlers_run(struct handlers *handlers, struct run *run)
{
	tw_duration start = clock_read_real(CLOCK_MONOTONIC);

	run_begin(run, start);
	run->outcome = handlers->handler(handlers->context, run->job, &run->verdict);
	run->verdict.reason[TW_REDIS_REASON_MAX] = '\0';
	run->took = clock_read_real(CLOCK_MONOTONIC) - start;
}

static void *handlers_thread(void *argument)
{
	struct handlers *handlers = argument;

	pthread_mutex_lock(&handlers->lock);
	for (;;) {
		struct run *run = run_list_take(&handlers->waiting);

		if (!run && handlers->stop)
			break;
		if (!run) {
			handlers->idle++;
			pthread_cond_wait(&handlers->wake, &handlers->lock);
			handlers->idle--;
			continue;
		}
		handlers->running++;
		pthread_mutex_unlock(&handlers->lock);
		handlers_run(handlers, run);
		pthread_mutex_lock(&handlers->lock);
		handlers->running--;
		/* Under the lock: where none is running, all are in the mailbox. */
		mailbox_put(handlers->mailbox, run);
	}
	pthread_mutex_unlock(&handlers->lock);
	return NULL;
}

enum tw_status handlers_start(struct handlers *handlers, unsigned count,
			      tw_redis_handler_fn *handler, void *context, struct mailbox *mailbox)
{
	memset(handlers, 0, sizeof(*handlers));
	handlers->handler = handler;
	handlers->context = context;
	handlers->mailbox = mailbox;
	run_list_init(&handlers->waiting);
	handlers->threads = calloc(count, sizeof(*handlers->threads));
	if (!handlers->threads)
		return TW_NO_MEMORY;
	pthread_mutex_init(&handlers->lock, NULL);
	pthread_cond_init(&handlers->wake, NULL);
	for (; handlers->count < count; handlers->count++) {
		if (thread_start(&handlers->threads[handlers->count], handlers_thread, handlers,
				 "redis", "task") != 0) {
			handlers_stop(handlers);
			return TW_SYSTEM;
		}
	}
	return TW_OK;
}

void handlers_stop(struct handlers *handlers)
{
	pthread_mutex_lock(&handlers->lock);
	handlers->stop = true;
	pthread_cond_broadcast(&handlers->wake);
	pthread_mutex_unlock(&handlers->lock);
	for (unsigned i = 0; i < handlers->count; i++)
		pthread_join(handlers->threads[i], NULL);
	pthread_cond_destroy(&handlers->wake);
	pthread_mutex_destroy(&handlers->lock);
	free(handlers->threads);
}

void handlers_submit(struct handlers *handlers, struct run_list *runs)
{
	size_t count = runs->count;

	if (!count)
		return;
	pthread_mutex_lock(&handlers->lock);
	run_list_move(&handlers->waiting, runs);
	for (unsigned i = 0; i < handlers->idle && i < count; i++)
		pthread_cond_signal(&handlers->wake);
	pthread_mutex_unlock(&handlers->lock);
}

void handlers_take_back(struct handlers *handlers, struct run_list *runs)
{
	pthread_mutex_lock(&handlers->lock);
	run_list_move(runs, &handlers->waiting);
	pthread_mutex_unlock(&handlers->lock);
}

unsigned handlers_running(struct handlers *handlers)
{
	unsigned running;

	pthread_mutex_lock(&handlers->lock);
	running = handlers->running;
	pthread_mutex_unlock(&handlers->lock);
	return running;
}

bool handlers_are_caller(const struct handlers *handlers)
{
	for (unsigned i = 0; i < handlers->count; i++)
		if (pthread_equal(handlers->threads[i], pthread_self()))
			return true;
	return false;
}
