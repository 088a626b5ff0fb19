/* SPDX-License-Identifier: MIT */
/*
 * jobs writes evals about tasks on lease and reads their replies, for the calls that claim by hand
 * and for the worker.
 */
#ifndef REDIS_CLIENT_JOBS_H
#define REDIS_CLIENT_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "base/list.h"
#include "client.h"
#include "record.h"
#include "recurrence.h"

struct run;
struct worker_shard;

/* A series is what a job of a recurring task has: how it recurs, and when it is due next. */
struct series {
	struct recurrence how;
	int64_t next_ms;  /* the next due time if the occurrence had ended when it was claimed */
	int64_t ahead_us; /* the server's clock, less the monotonic clock here */
};

/* A fate is what becomes of a claimed job. */
enum fate {
	FATE_RUN,
	FATE_BROKEN, /* it is not ours: its key is too long, or its record cannot be read, and then
		      * it has neither body nor callback */
	/* These are not run. */
	FATE_SPENT,  /* the lease of its last attempt ended */
	FATE_LOST,   /* its record is gone */
	FATE_LATE,   /* it would begin later than its grace allows */
	FATE_AHEAD,  /* its time was computed by a clock that was ahead */
	FATE_UNKNOWN /* its next time can't be computed here, so it is for another process */
};

struct batch {
	struct tw_redis_batch shown; /* what the program has; it is the first field */

	redisReply *reply;      /* the jobs point into it */
	struct record *records; /* one for each job */
	enum fate *fates;       /* one for each job */
	struct series *series;  /* one for each job, if one recurs */
	size_t bytes;           /* the size of all records */

	tw_duration next; /* until the shard's next look; 0 means now */
	size_t skipped;   /* tasks and occurrences that would have begun too late */

	/* The worker's. */
	struct worker_shard *shard;
	struct run *runs; /* one for each job */
	/* The end of the lease, at least; monotonic. The main thread writes it, and runners read
	 * it; relaxed everywhere, orders nothing. */
	_Atomic tw_duration leased_until;
	size_t held;               /* runs that have not been reported */
	size_t running;            /* runs that have not ended */
	struct list lease;         /* link of the leases to extend */
	struct tw_timer extension; /* when it joins the leases to extend */
	bool extending;            /* it has joined them */
	size_t place;              /* in the step that extends it */
};

/* An ending says how a run ends: the verb is one of finish.lua's; r, w whose attempt does not
 * count; or p, r of a task that is put off and keeps its own due time. */
struct ending {
	char verb;
	int64_t wait_ms; /* w, r and p have one */
	const char *reason;
};

/* These dead letters of a shard may stay. 0 means no limit. */
struct letters {
	int64_t age_ms;
	int64_t count;
};

/* A claim has these arguments, besides limit and lease. */
struct claim {
	size_t bytes; /* the most of keys and records; from 64 KiB on, one task of any size */
	/* The worker's name, or NULL. */
	const char *worker;
	uint64_t number; /* one more after each reply */
	bool again;      /* a reply to this number was lost, and its tasks are given back */
	struct letters letters;
};

void claim_write(struct eval *eval, const struct space *space, unsigned shard, size_t limit,
		 tw_duration lease, const struct claim *claim);
/* Takes the reply from the eval, and makes room for runs of that size. Returns TW_OK, TW_NO_MEMORY
 * or TW_REDIS_FAILED. */
enum tw_status claim_read(struct eval *eval, size_t run_size, struct batch **batch);
void batch_free(struct batch *batch);

/* Returns the ending of a job that is not run, or NULL. */
const struct ending *fate_ending(enum fate fate);

/* Returns whether the verb lets the task wait. */
bool ending_waits(char verb);

/* Adds a run that is over to an eval of finish. A recurring task's next due time goes with it. */
void ending_write(struct eval *eval, const struct tw_redis_job *job, const struct ending *ending);

/* Begins an eval that extends leases. extend_write() for each follows. */
void extend_begin(struct eval *eval, const struct space *space, unsigned shard, tw_duration lease);
/* Adds the lease of the job's batch: if the job still runs, or, for `any`, if one of them does. */
void extend_write(struct eval *eval, const struct tw_redis_job *job, bool any);
/* Returns the status of the job that was added as number `index`. */
enum tw_status jobs_answer(const struct eval *eval, size_t index);

#endif
