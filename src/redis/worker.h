/* SPDX-License-Identifier: MIT */
/* What is behind struct tw_redis_worker; shared by worker.c, worker_loop.c and worker_turn.c. */
#ifndef TIMINGWHEEL_REDIS_WORKER_H
#define TIMINGWHEEL_REDIS_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/redis.h>

#include "callbacks.h"
#include "client.h"
#include "handlers.h"
#include "hints.h"
#include "run.h"

/* Main thread only. */
struct shard {
	struct tw_redis_worker *worker;
	unsigned number;

	bool due;            /* to be claimed from */
	tw_duration look_at; /* monotonic: when it becomes due, as far as we know */
	struct tw_timer timer;

	bool blocked; /* its node does not answer; a timer ends that */
	tw_duration backoff;

	struct run *extend;                     /* leases to be made longer */
	struct run_list done, failed, released; /* to be told to Redis */
};

/* What the command with the same index is about. */
enum step_kind { STEP_EXTEND, STEP_ACK, STEP_FAIL, STEP_RELEASE, STEP_CLAIM, STEP_KINDS };

struct step {
	enum step_kind kind;
	struct shard *shard;
	struct run_list runs;
	struct run *extend;
	size_t limit; /* of a claim */
};

/* One of the two kinds of runs. Main thread only. */
struct lane {
	bool open;             /* there is a runner for it */
	unsigned slots;        /* run at a time */
	size_t pending;        /* handed over and not ended */
	tw_duration mean;      /* how long a run takes, about; 0: not known */
	struct run_list fresh; /* claimed, to be handed over */
};

enum stop_stage {
	STOP_NONE,
	STOP_ASKED,   /* ends are waited for, until the deadline */
	STOP_BREAKING /* callbacks have been broken off, what ended is told once more */
};

struct tw_redis_worker {
	/* Constant after the start. */
	struct tw_redis_worker_options options; /* with the defaults filled in */
	pthread_t thread;

	/* Main thread only. */
	struct tw_redis *redis; /* tries once */
	struct tw_wheel *wheel; /* when to look at shards, and to extend leases; driven here */
	struct hints hints;
	bool hints_were_connected;
	struct shard *shards;
	unsigned shard_count;
	unsigned first_shard;     /* where claiming begins next */
	struct command *commands; /* STEP_KINDS for each shard, and their steps */
	struct step *steps;
	size_t step_count;
	struct lane handler_lane, callback_lane;
	size_t held;
	uint64_t random;
	bool lost; /* Redis, and the hook was told */
	struct tw_redis_worker_stats stats;
	bool stopping; /* nothing is claimed any more */
	enum stop_stage stop_stage;
	tw_duration stop_at; /* monotonic: the end of the grace, then of the breaking */

	/* The runners' doors: any of our threads. */
	struct handlers handlers;
	struct callbacks callbacks;
	struct mailbox mailbox;

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t answered;
	struct tw_redis_worker_stats shown;
	bool stop_asked;
	tw_duration grace;
	bool stop_answered;
	enum tw_status stop_status;
};

/* worker_loop.c: the main thread. */
void *worker_thread(void *worker);
/* The shard is to be looked at in so long, or earlier if that is known already. */
void shard_look_in(struct shard *shard, tw_duration wait);
/* Hands the run to its runner, or ends it at once if there is none. */
void worker_take_run(struct tw_redis_worker *worker, struct run *run);
/* The runner has ended it, or gives it back: it goes to the list of what Redis is to be told. */
void worker_end_run(struct tw_redis_worker *worker, struct run *run);

/* worker_turn.c: what is said to Redis. */
/* One round trip with all that there is to say. False: there was nothing. */
bool worker_turn(struct tw_redis_worker *worker);
/* Arms the timer that will have its lease made longer. */
void run_arm_extension(struct run *run);
/* Tells the hook, and frees it. */
void worker_report(struct tw_redis_worker *worker, struct run *run, enum tw_redis_end end);

#endif
