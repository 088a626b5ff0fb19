/* SPDX-License-Identifier: MIT */
/*
 * jobs writes evals about tasks on lease and reads their replies, for the calls that claim by hand
 * and for the worker.
 */
#ifndef REDIS_CLIENT_JOBS_H
#define REDIS_CLIENT_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "client.h"
#include "record.h"
#include "recurrence.h"

struct batch {
	struct tw_redis_batch shown; /* what the program has; it is the first field */

	redisReply *reply;      /* the jobs point into it */
	struct record *records; /* one for each job */
	/* The job is not ours: its key is too long, or its record cannot be read, and then it has
	 * neither body nor callback. */
	bool *broken;
	size_t bytes; /* the size of all records */

	tw_duration next; /* until the shard's next look; 0 means now */
	size_t buried;    /* tasks made dead letters */
	size_t skipped;   /* occurrences that would have begun too late */
	/* These are next times by the calendar, for schedules_write(). */
	struct list schedules;
	size_t unscheduled; /* tasks whose next times could not be computed here */

	size_t held; /* jobs that have not ended; for the worker */
};

/* These dead letters of a shard may stay. 0 means no limit. */
struct letters {
	int64_t age_ms;
	int64_t count;
};

/* A claim has these arguments, besides limit and lease. */
struct claim {
	size_t bytes; /* the most of keys and records; from 64 KiB on, one task of any size */
	/* The worker's name. With NULL the claim leaves no note and ignores limits of groups. */
	const char *worker;
	uint64_t number; /* one more after each reply */
	bool again;      /* a reply to this number was lost, and its tasks are given back */
	size_t note;     /* a reply of this many bytes leaves a note of the claim */
	struct letters letters;
};

/* Writes a claim. After a worker's claim_permit() and eval_hint() follow. */
void claim_write(struct eval *eval, const struct space *space, unsigned shard, size_t limit,
		 tw_duration lease, const struct claim *claim);
/* Lets the claim take `count` tasks of a group that has limits. */
void claim_permit(struct eval *eval, const char *group, size_t count);
/* Returns whether the batch has an entry `index` of groups for which the claim had too few permits:
 * the group, and about how many more of its tasks are due. */
bool batch_lack(const struct batch *batch, size_t index, const char **group, size_t *count);
/* Takes the reply from the eval. Returns TW_OK, TW_NO_MEMORY or TW_REDIS_FAILED. */
enum tw_status claim_read(struct eval *eval, struct batch **batch);
void batch_free(struct batch *batch);

/*
 * Begins an eval about `count` jobs of one shard, whose script returns a letter for each. The keys
 * of all jobs follow, and the runs of all. script_fail also needs the waits of all and, if the
 * attempts count, the reasons of all and letters_write(). eval_hint() follows for scripts that give
 * hints.
 */
void jobs_begin(struct eval *eval, const struct script *script, const struct space *space,
		unsigned shard, size_t count);
void jobs_add_key(struct eval *eval, const struct tw_redis_job *job);
void jobs_add_run(struct eval *eval, const struct tw_redis_job *job);
void jobs_add_reason(struct eval *eval, const char *reason);
void letters_write(struct eval *eval, const struct letters *letters);
/* Returns the status of the job that was added as number `index`. */
enum tw_status jobs_answer(const struct eval *eval, size_t index);

#endif
