/* SPDX-License-Identifier: MIT */
/*
 * Evals about tasks on lease, and reading what comes of them; for the calls that claim by hand
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

struct tw_redis_batch {
	redisReply *reply; /* what the jobs point into */
	size_t count;
	struct tw_redis_job *jobs;
	struct record *records; /* beside them */
	/* Not written by us: a key that is too long, or a record that can't be read, and then the
	 * job has neither body nor callback. */
	bool *broken;
	size_t bytes; /* the size of all records */

	tw_duration next; /* until the shard is to be looked at again; 0 means now */
	size_t buried;    /* tasks made dead letters */
	size_t skipped;   /* occurrences that would have begun too late */
	/* Next times of tasks that recur by the calendar, to be written with schedules_write(). */
	struct list schedules;
	size_t unscheduled; /* those for which that could not be found out here */

	size_t held; /* the worker's: jobs not ended */
};

/* What a worker says of its claim, besides limit and lease. */
struct claim {
	size_t bytes; /* the most of keys and records; from 64 KiB on, one task whatever its size */
	uint64_t worker; /* its name; 0 means none, and the claim leaves no note */
	uint64_t number; /* one more after each reply */
	bool again;      /* a reply to this number was lost: gives back what that claim took */
	size_t note;     /* how many bytes make the reply worth a note of the claim */
};

void claim_write(struct eval *eval, const struct space *space, unsigned shard, size_t limit,
		 tw_duration lease, const struct claim *claim);
/* Takes the reply from the eval. TW_OK, TW_NO_MEMORY or TW_REDIS_FAILED. */
enum tw_status claim_read(struct eval *eval, struct tw_redis_batch **batch);

/*
 * Evals about jobs of one shard, whose scripts return a letter for each: begun with how many
 * there will be, then the keys of all and the runs of all. script_release and script_fail also
 * take the waits of all, script_fail then the reasons of all. Scripts that give hints end with
 * eval_hint.
 */
void jobs_begin(struct eval *eval, const struct script *script, const struct space *space,
		unsigned shard, size_t count);
void jobs_add_key(struct eval *eval, const struct tw_redis_job *job);
void jobs_add_run(struct eval *eval, const struct tw_redis_job *job);
void jobs_add_reason(struct eval *eval, const char *reason);
/* What became of the job that was added as number `index`. */
enum tw_status jobs_answer(const struct eval *eval, size_t index);

#endif
