/* SPDX-License-Identifier: MIT */
/*
 * This is a retry scheduler: a failed request is tried again after 1 s, 2 s, 4 s and so on up to a
 * minute, each time with some jitter, so that requests that failed together do not come back
 * together. It may be cancelled at any moment.
 *
 * A request is freed by its last run, by the cancel that stops it, or by the wheel's release if the
 * wheel was stopped first; never by two of them.
 *
 * The wheel has a manual clock here, so that the program shows minutes in no time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <timingwheel/timingwheel.h>

struct request {
	const char *name;
	int works_at; /* the attempt, 0 for never */
	int attempts;
	struct tw_timer timer;
};

/* Only the one worker uses this. */
static unsigned seed = 1;

/* Returns three to five quarters of it. */
static tw_duration with_jitter(tw_duration delay)
{
	seed = seed * 1103515245 + 12345;
	return delay / 4 * 3 + (tw_duration)(seed >> 8) % (delay / 2);
}

static tw_duration back_off(int attempts)
{
	tw_duration delay = TW_SECOND << (attempts < 6 ? attempts - 1 : 6);

	return with_jitter(delay < TW_MINUTE ? delay : TW_MINUTE);
}

/* Runs on the pool. The request is this run's until it is armed again. */
static void attempt(void *argument)
{
	const struct tw_task *task = tw_current_task();
	struct request *request = argument;

	request->attempts++;
	printf("%3d s: %s, attempt %d\n", (int)(tw_now(task->wheel) / TW_SECOND), request->name,
	       request->attempts);
	if (request->attempts != request->works_at &&
	    tw_timer_reset(task->wheel, task->timer, back_off(request->attempts)) == TW_OK)
		return; /* from here on another thread may run it: don't touch it */
	printf("       %s is done\n", request->name);
	free(request);
}

/* The wheel was stopped before its next attempt. */
static void give_up(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct request *request = task->value;

	(void)context;
	(void)reason;
	printf("       %s is given up after %d attempts\n", request->name, request->attempts);
	free(request);
}

/* Returns the timer of the request, with id 0 on failure. */
static struct tw_timer submit(struct tw_wheel *wheel, const char *name, int works_at)
{
	struct request *request = malloc(sizeof(*request));
	struct tw_timer timer = {0};

	if (!request)
		return timer;
	*request = (struct request){.name = name, .works_at = works_at};
	if (tw_after_func(wheel, 0, attempt, request, &timer) != TW_OK)
		free(request); /* a failed call leaves its argument with the caller */
	return timer;
}

/* Cancels a request, from any thread. With TW_OK the request is the caller's. Otherwise a run has
 * it, or has freed it. */
static void cancel(struct tw_wheel *wheel, struct tw_timer timer, struct request *request)
{
	if (tw_timer_stop_wait(wheel, timer) != TW_OK)
		return;
	printf("       cancelled\n");
	free(request);
}

int main(void)
{
	const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .workers = 1, .max_workers = 1, .release = give_up};
	struct request *cancelled = malloc(sizeof(*cancelled));
	struct tw_wheel *wheel;

	if (!cancelled || tw_create(&wheel, 100 * TW_MILLISECOND, 512, NULL, &options) != TW_OK)
		return 1;
	*cancelled = (struct request){.name = "cancelled"};
	if (tw_after_func(wheel, 0, attempt, cancelled, &cancelled->timer) != TW_OK)
		return 1;
	submit(wheel, "third time lucky", 3);
	submit(wheel, "hopeless", 0);
	for (int second = 0; second <= 120; second++) {
		tw_advance(wheel, TW_SECOND);
		tw_wait_idle(wheel);
		if (second == 20)
			cancel(wheel, cancelled->timer, cancelled);
	}
	tw_destroy(wheel);
	return 0;
}
