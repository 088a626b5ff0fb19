/* SPDX-License-Identifier: MIT */
/*
 * No turn is made for it: a worker that has nothing to do looks at its shards every 10 s, and tells
 * it then. What could not be told is told the next time; nothing depends on it.
 */
#include "worker_present.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"

enum { TEXT_ROOM = 512 };
static const tw_duration present_apart = 5 * TW_SECOND;

bool present_is_due(const struct source *source)
{
	return !source->worker->stopping && clock_read_real(CLOCK_MONOTONIC) >= source->present_at;
}

/* "shop-3:4711 60000 ...": host and process, milliseconds since the start, counts. */
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
		 stats->done, stats->retried, stats->dead + stats->buried);
}

void present_write(struct source *source, struct eval *eval)
{
	tw_duration now = clock_read_real(CLOCK_MONOTONIC);
	char name[24];
	char text[TEXT_ROOM];

	source->present_at = now + present_apart;
	snprintf(name, sizeof(name), "%016" PRIx64, source->worker->name);
	text_write(source, now, text);
	eval_begin(eval, &script_present, &source->redis->space, SHARD_NONE);
	eval_text(eval, name);
	eval_text(eval, text);
	eval_number(eval, delay_to_ms(PRESENT_TIME));
}
