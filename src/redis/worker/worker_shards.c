/* SPDX-License-Identifier: MIT */
/*
 * worker_shards.c has one time for each shard's next look: that of its last claim, a hint, or the
 * poll interval, the earliest of them. So an idle worker wakes for the poll.
 */

#include "worker.h"

#include "base/clock.h"

/* While hints come a shard is polled this rarely. Scripts hint at tasks due before. */
static const tw_duration poll_with_hints = 10 * TW_SECOND;
static const tw_duration backoff_first = 20 * TW_MILLISECOND;
static const tw_duration backoff_max = TW_SECOND;

static void shard_become_due(void *argument)
{
	struct worker_shard *shard = argument;

	shard->look_at = 0;
	shard->timer.id = 0;
}

void shard_look_in(struct worker_shard *shard, tw_duration wait)
{
	struct tw_redis_worker *worker = shard->source->worker;
	struct tw_wheel *wheel = worker->wheel;
	tw_duration poll = worker->hints_come ? poll_with_hints : worker->options.poll;
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	tw_duration at = wait > 0 ? time_add(now, wait < poll ? wait : poll) : 0;

	if (at >= shard->look_at)
		return;
	if (shard->timer.id)
		tw_timer_stop(wheel, shard->timer);
	shard->look_at = at;
	if (!at || tw_after_func(wheel, at - now, shard_become_due, shard, &shard->timer) != TW_OK)
		shard_become_due(shard);
}

static void shard_unblock(void *argument)
{
	struct worker_shard *shard = argument;

	shard->blocked = false;
}

void shard_block(struct worker_shard *shard)
{
	shard->backoff = shard->backoff ? 2 * shard->backoff : backoff_first;
	if (shard->backoff > backoff_max)
		shard->backoff = backoff_max;
	shard->blocked = true;
	if (tw_after_func(shard->source->worker->wheel, shard->backoff, shard_unblock, shard,
			  NULL) != TW_OK)
		shard->blocked = false;
}
