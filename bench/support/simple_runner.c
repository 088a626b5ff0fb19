/* SPDX-License-Identifier: MIT */
#include "simple_runner.h"

#include "process.h"

#include <stdlib.h>

void runner_give(struct runner *runner, struct slot *tasks)
{
	pthread_mutex_lock(&runner->lock);
	slot_append_all(&runner->tasks, tasks);
	pthread_cond_signal(&runner->work);
	pthread_mutex_unlock(&runner->lock);
}

/* Runs tasks, which do nothing. Returns their number. */
static int64_t run_all(struct slot *tasks)
{
	int64_t count = 0;

	for (; tasks->first; count++) {
		struct entry *entry = tasks->first;

		slot_remove(tasks, entry);
		free(entry);
	}
	return count;
}

static void *runner_run(void *argument)
{
	struct runner *runner = argument;

	pthread_mutex_lock(&runner->lock);
	for (;;) {
		struct slot tasks = runner->tasks;
		int64_t count;

		if (!tasks.first) {
			if (runner->stopping)
				break;
			pthread_cond_wait(&runner->work, &runner->lock);
			continue;
		}
		runner->tasks = (struct slot){NULL, NULL};
		pthread_mutex_unlock(&runner->lock);
		count = run_all(&tasks);
		pthread_mutex_lock(&runner->lock);
		runner->ran += count;
		pthread_cond_broadcast(&runner->done);
	}
	pthread_mutex_unlock(&runner->lock);
	return NULL;
}

void runner_start(struct runner *runner)
{
	*runner = (struct runner){0};
	pthread_mutex_init(&runner->lock, NULL);
	pthread_cond_init(&runner->work, NULL);
	pthread_cond_init(&runner->done, NULL);
	if (pthread_create(&runner->thread, NULL, runner_run, runner) != 0)
		process_fail("the baseline's runner could not be started");
}

void runner_stop(struct runner *runner)
{
	pthread_mutex_lock(&runner->lock);
	runner->stopping = true;
	pthread_cond_signal(&runner->work);
	pthread_mutex_unlock(&runner->lock);
	pthread_join(runner->thread, NULL);
}

void runner_wait_ran(struct runner *runner, int64_t count)
{
	pthread_mutex_lock(&runner->lock);
	while (runner->ran < count)
		pthread_cond_wait(&runner->done, &runner->lock);
	pthread_mutex_unlock(&runner->lock);
}
