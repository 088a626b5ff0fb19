/* SPDX-License-Identifier: MIT */
/*
 * Where there are limits a turn either claims, with the permits that are left, or asks for more and
 * tells how many tasks the worker has: never both, so that what it tells is true. Redis takes its
 * word for two leases' time; it is told again before. What is left half a lease after the worker
 * has asked is not used: the worker may have stood still, and what it claims then would be on lease
 * when others have been given its permits. Where there are no limits a look now and then costs one
 * call, and setting limits gives a hint.
 */
#include "worker_permits.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

static const tw_duration look_time = 10 * TW_SECOND;
static const tw_duration failure_time = 100 * TW_MILLISECOND;

void permits_init(struct tw_redis_worker *worker)
{
	worker->permits = (struct permits){.name = worker->random, .limited = true, .due = true};
}

static bool permits_are_old(const struct tw_redis_worker *worker)
{
	tw_duration age = clock_read_real(CLOCK_MONOTONIC) - worker->permits.asked_at;

	return worker->permits.limited && age > worker->options.lease / 2;
}

bool permits_are_due(const struct tw_redis_worker *worker, size_t wanted)
{
	const struct permits *permits = &worker->permits;

	if (permits->due || !permits->limited)
		return permits->due;
	/* Others may need what is left. */
	if (permits->left)
		return !wanted || permits_are_old(worker);
	return permits->told != worker->stats.held || (wanted && !permits->waiting);
}

void permits_write(struct tw_redis_worker *worker, struct command *command, size_t wanted)
{
	struct permits *permits = &worker->permits;
	char name[24];

	permits->asked = worker->stats.held;
	permits->asked_at = clock_read_real(CLOCK_MONOTONIC);
	snprintf(name, sizeof(name), "%016" PRIx64, permits->name);
	command_begin(command, &script_permit, &worker->redis->space, SHARD_NONE);
	command_text(command, name);
	command_number(command, (int64_t)permits->asked);
	command_number(command, (int64_t)wanted);
	command_number(command, (int64_t)permits->left);
	command_number(command, delay_to_ms(2 * worker->options.lease));
}

static void permits_become_due(void *argument)
{
	struct permits *permits = argument;

	permits->timer.id = 0;
	permits->waiting = false;
	permits->due = true;
}

static void permits_look_in(struct tw_redis_worker *worker, tw_duration wait)
{
	struct permits *permits = &worker->permits;

	if (permits->timer.id)
		tw_timer_stop(worker->wheel, permits->timer);
	permits->timer.id = 0;
	if (tw_after_func(worker->wheel, wait, permits_become_due, permits, &permits->timer) !=
	    TW_OK)
		permits->due = true;
}

void permits_read(struct tw_redis_worker *worker, const struct command *command)
{
	struct permits *permits = &worker->permits;
	int64_t given = command_integer(command, 0, 0);
	int64_t wait_ms = command_integer(command, 1, -1);
	tw_duration wait = look_time;

	permits->due = false;
	permits->waiting = command->status != TW_OK || wait_ms >= 0;
	if (command->status != TW_OK) {
		permits->left = 0;
		permits_look_in(worker, failure_time);
		return;
	}
	permits->limited = given >= 0;
	permits->left = given > 0 ? (size_t)given : 0;
	permits->told = permits->asked + permits->left;
	if (permits->waiting && wait_ms < look_time / TW_MILLISECOND)
		wait = wait_ms * TW_MILLISECOND;
	else if (permits->limited && worker->options.lease / 3 < look_time)
		wait = worker->options.lease / 3;
	permits_look_in(worker, wait);
}

size_t permits_of(const struct tw_redis_worker *worker, size_t wanted)
{
	const struct permits *permits = &worker->permits;

	return permits->limited && permits->left < wanted ? permits->left : wanted;
}

void permits_take(struct tw_redis_worker *worker, size_t count)
{
	worker->permits.left -= worker->permits.limited ? count : 0;
}

void permits_give_back(struct tw_redis_worker *worker, size_t count)
{
	worker->permits.left += worker->permits.limited ? count : 0;
}

void permits_leave(struct tw_redis_worker *worker)
{
	if (!worker->permits.limited || !worker->permits.told)
		return;
	permits_write(worker, worker->commands, 0);
	router_run(&worker->redis->access->router, worker->commands, 1);
}
