/* SPDX-License-Identifier: MIT */
/*
 * worker_present.c writes a worker's report of itself to a namespace, and reads the reports of all.
 * No turn is made for it: an idle worker looks at its shards every 10 s, and reports then. A failed
 * report is repeated the next time; nothing depends on it.
 */
#include "worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"

/* A report is valid for this time. */
#define PRESENT_TIME (30 * TW_SECOND)

enum { TEXT_ROOM = 512 };
static const tw_duration present_apart = 5 * TW_SECOND;

/* Writes "shop-3:4711 60000 ...": host and process, milliseconds since the start, counts. */
static void text_write(const struct source *source, tw_duration now, char *text)
{
	const struct tw_redis_worker_stats *stats = &source->stats;
	struct utsname system;
	char shown[3 * sizeof(system.nodename) + 1];

	uname(&system);
	tw_redis_write_key(system.nodename, strlen(system.nodename), shown);
	snprintf(text, TEXT_ROOM,
		 "%s:%ld %" PRId64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, shown,
		 (long)getpid(), (now - source->worker->begun) / TW_MILLISECOND,
		 atomic_load_explicit(&source->running, memory_order_relaxed), stats->held,
		 stats->done, stats->retried, stats->dead);
}

void present_write(struct source *source, struct eval *eval)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	char text[TEXT_ROOM];

	source->present_at = now + present_apart;
	text_write(source, now, text);
	eval_begin(eval, &script_present, &source->redis->space, SHARD_NONE);
	eval_text(eval, source->worker->name);
	eval_text(eval, text);
	eval_number(eval, delay_to_ms(PRESENT_TIME));
}

/* Reads a report. Returns false if it is none. */
static bool worker_read(struct tw_redis_worker_info *worker, const char *text, int64_t good_ms)
{
	int64_t up_ms;

	*worker = (struct tw_redis_worker_info){0};
	if (sscanf(text,
		   "%255s %18" SCNd64 " %18" SCNu64 " %18" SCNu64 " %18" SCNu64 " %18" SCNu64
		   " %18" SCNu64,
		   worker->name, &up_ms, &worker->running, &worker->held, &worker->done,
		   &worker->retried, &worker->dead) != 7 ||
	    up_ms < 0 || up_ms > TW_REDIS_DELAY_MAX / TW_MILLISECOND ||
	    good_ms > PRESENT_TIME / TW_MILLISECOND)
		return false;
	worker->up = up_ms * TW_MILLISECOND;
	worker->report_age = PRESENT_TIME - good_ms * TW_MILLISECOND;
	return true;
}

/* The workers that are found. */
struct workers {
	struct tw_redis_worker_info *infos;
	size_t room;
	size_t count;
};

static enum tw_status workers_read(void *result, struct call *call)
{
	const redisReply *reply = call->eval.reply;
	struct workers *workers = result;
	struct tw_redis_worker_info info;

	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		if (!worker_read(&info, reply->element[i + 1]->str, reply->element[i]->integer))
			continue;
		if (workers->count < workers->room)
			workers->infos[workers->count] = info;
		workers->count++;
	}
	return TW_OK;
}

enum tw_status tw_redis_get_workers(struct tw_redis *redis, struct tw_redis_worker_info *infos,
				    size_t room, size_t *count)
{
	struct workers workers = {infos, room, 0};
	enum tw_status status;

	if (!redis || !count || (!infos && room))
		return TW_INVALID;
	status = redis_ask(redis, &script_workers, SHARD_NONE, workers_read, &workers, "");
	if (status == TW_OK)
		*count = workers.count;
	return status;
}
