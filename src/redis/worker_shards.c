/* SPDX-License-Identifier: MIT */
/*
 * Each shard has one time when it is to be looked at: what its last claim told, or a hint, or the
 * poll interval, whichever is earliest. So an idle worker wakes for the poll alone. While hints
 * come, a server that is no cluster is asked for all shards in one call (look.lua).
 */
#include "worker_shards.h"

#include "base/clock.h"

/* With hints a shard is looked at without one only now and then; scripts hint at what is due
 * before. */
static const tw_duration poll_with_hints = 10 * TW_SECOND;
static const tw_duration backoff_first = 20 * TW_MILLISECOND;
static const tw_duration backoff_max = TW_SECOND;
static const tw_duration sweep_apart = TW_MINUTE;

static void shard_become_due(void *argument)
{
	struct shard *shard = argument;

	shard->look_at = 0;
	shard->timer.id = 0;
}

static bool looks_at_all(const struct tw_redis_worker *worker)
{
	return hints_are_connected(&worker->hints) && !worker->redis->access->router.map.cluster;
}

/* How often a shard is looked at by itself. */
static tw_duration shard_poll(const struct tw_redis_worker *worker)
{
	if (looks_at_all(worker))
		return TW_FOREVER;
	return hints_are_connected(&worker->hints) ? poll_with_hints : worker->options.poll;
}

static void look_become_due(void *argument)
{
	struct tw_redis_worker *worker = argument;

	worker->look.id = 0;
	worker->look_is_due = looks_at_all(worker);
}

void shards_look_later(struct tw_redis_worker *worker)
{
	if (!looks_at_all(worker) || worker->look.id)
		return;
	if (tw_after_func(worker->wheel, poll_with_hints, look_become_due, worker, &worker->look) !=
	    TW_OK)
		look_become_due(worker);
}

void shard_look_in(struct shard *shard, tw_duration wait)
{
	struct tw_redis_worker *worker = shard->worker;
	tw_duration poll = shard_poll(worker);
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	tw_duration at = wait > 0 ? time_add(now, wait < poll ? wait : poll) : 0;

	if (at >= shard->look_at)
		return;
	if (shard->timer.id)
		tw_timer_stop(worker->wheel, shard->timer);
	shard->look_at = at;
	if (!at ||
	    tw_after_func(worker->wheel, at - now, shard_become_due, shard, &shard->timer) != TW_OK)
		shard_become_due(shard);
}

void shards_look_now(struct tw_redis_worker *worker)
{
	shards_look_later(worker);
	for (unsigned i = 0; i < worker->shard_count; i++)
		shard_look_in(&worker->shards[i], 0);
}

static void shard_unblock(void *argument)
{
	struct shard *shard = argument;

	shard->blocked = false;
}

void shard_block(struct shard *shard)
{
	shard->backoff = shard->backoff ? 2 * shard->backoff : backoff_first;
	if (shard->backoff > backoff_max)
		shard->backoff = backoff_max;
	shard->blocked = true;
	if (tw_after_func(shard->worker->wheel, shard->backoff, shard_unblock, shard, NULL) !=
	    TW_OK)
		shard->blocked = false;
}

static void sweep_become_due(void *argument)
{
	struct tw_redis_worker *worker = argument;

	for (unsigned i = 0; i < worker->shard_count; i++)
		worker->shards[i].sweep_is_due = true;
}

enum tw_status shards_sweep_start(struct tw_redis_worker *worker)
{
	const struct tw_redis_worker_options *options = &worker->options;

	if (!options->dead_max_age && !options->dead_max_count)
		return TW_OK;
	return tw_every(worker->wheel, 0, sweep_apart, TW_MISSED_SKIP, sweep_become_due, worker,
			NULL);
}

void shard_sweep(struct shard *shard)
{
	shard->sweep_is_due |= shard->worker->options.dead_max_count;
}
