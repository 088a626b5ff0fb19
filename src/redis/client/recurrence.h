/* SPDX-License-Identifier: MIT */
/*
 * recurrence says how a task recurs, as the hash `every` has it (shared/time.lua), and when it is
 * due next. The scripts add a period; this file computes times of the calendar, which schedule.lua
 * writes.
 */
#ifndef REDIS_CLIENT_RECURRENCE_H
#define REDIS_CLIENT_RECURRENCE_H

#include <stddef.h>
#include <stdint.h>

#include <timingwheel/cron.h>
#include <timingwheel/redis.h>

#include "base/list.h"
#include "redis/wire/eval.h"

/* The largest size of an entry, with the NUL. */
enum { RECURRENCE_SIZE = TW_CRON_ZONE_MAX + TW_REDIS_CRON_MAX + 80 };

/* Computes a task's first due time by its calendar, not before now and not before the task's own
 * time. Returns TW_OK, TW_REDIS_BAD_DATA if the calendar or the zone is wrong or has no time to
 * come, TW_NO_MEMORY or TW_SYSTEM, with the error's text. */
enum tw_status recurrence_first(const struct tw_redis_task *task, int64_t now_ms, int64_t *at_ms,
				struct tw_redis_error *error);

/* Writes the arguments of every.lua that say how the task recurs. The hint's follow. */
void recurrence_write(const struct tw_redis_task *task, struct eval *eval);

/* Writes the entry of a task whose current occurrence was first due at at_ms, or "" if the task
 * does not recur. */
void recurrence_write_entry(const struct tw_redis_task *task, int64_t at_ms,
			    char entry[RECURRENCE_SIZE]);

/*
 * Reads an entry, "" if the task does not recur, into the task, which then points into the entry.
 * The entry is changed. The task's at_ms becomes the due time of its current occurrence. If that
 * has ended, and no worker has written the next one yet, both times become those of the next one.
 */
void recurrence_read(char *entry, struct tw_redis_task *task, int64_t *due_ms);

/* A schedule is what schedule.lua writes of a task. */
struct schedule {
	struct list link;
	int64_t due_ms; /* < 0 means that the task stays due as it is */
	const char *was;
	char *is; /* "" if it no longer recurs */
	size_t key_size;
	char key[]; /* the two texts follow it */
};

/* Makes a schedule from an entry of a claim. Returns TW_OK, TW_REDIS_BAD_DATA if the entry or its
 * zone is not known here, or TW_NO_MEMORY. */
enum tw_status schedule_create(struct schedule **schedule, const char *key, size_t key_size,
			       const char *entry);

/* Begins the eval that writes the first schedules, up to TW_REDIS_BATCH_MAX, and frees them. */
void schedules_write(struct eval *eval, const struct space *space, unsigned shard,
		     struct list *schedules);
void schedules_free(struct list *schedules);

#endif
