/* SPDX-License-Identifier: MIT */
/*
 * worker.h is what is behind struct tw_redis_worker, and what the files worker_* do for each other.
 * Only the main thread and the thread that starts and frees the worker call these functions.
 */
#ifndef REDIS_WORKER_WORKER_H
#define REDIS_WORKER_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/redis.h>

#include "base/fork_guard.h"
#include "base/thread.h"
#include "callbacks.h"
#include "redis/client/client.h"
#include "handlers.h"
#include "hints.h"
#include "run.h"
#include "targets.h"

enum { TURN_BYTES_MAX = 512 * 1024 };

/* A step is what a turn does for a shard. */
enum step_kind {
	STEP_FINISH, /* reports ended runs */
	STEP_EXTEND,
	STEP_CLAIM,
	STEP_OF_SHARDS,
	STEP_PRESENT = STEP_OF_SHARDS, /* reports that the worker is present; its shard is any */
	STEP_KINDS
};

/* A step is an eval for a shard. It is under way from its turn until the eval has ended, which may
 * be many turns later. */
struct step {
	enum step_kind kind; /* constant, like the shard */
	struct worker_shard *shard;
	struct list link;  /* in the list of steps under way */
	tw_duration begun; /* monotonic */
	bool under_way;
	struct eval eval;
	struct tw_redis_error error; /* why it failed */
	struct list leases;
	struct run_list runs;
};

/* A worker's part of a shard. The main thread alone uses it. */
struct worker_shard {
	/* These are constant after the start. */
	struct source *source;
	unsigned number;
	unsigned slot; /* in a cluster */

	size_t asked; /* its own steps under way; it begins none meanwhile */
	bool is_free; /* it may begin steps in this turn */

	tw_duration look_at; /* monotonic; when it becomes due, or 0 if it is due */
	struct tw_timer timer;
	bool is_large; /* its last claim brought large records, or was too small for one */
	bool is_lost;  /* its last claim's reply was lost; the next claim gives the tasks back */
	uint64_t claim_number; /* one more after each reply */

	bool blocked; /* its node does not answer; a timer ends that */
	tw_duration backoff;

	struct list leases;   /* leases to extend */
	struct run_list ends; /* ended runs to report */
	struct step steps[STEP_KINDS];
};

/* Trouble is why the worker cannot do its work. */
struct trouble {
	const struct step *step; /* it failed and has not succeeded since; NULL means no trouble */
	bool of_shard;           /* any successful step of its shard ends it */
	struct tw_redis_error error;
};

/* A source is a namespace that the worker serves. The main thread alone uses it, except for marked
 * fields. */
struct source {
	/* These are constant after the start. */
	struct tw_redis_worker *worker;
	struct tw_redis *redis; /* its calls try once */
	struct letters letters; /* that may stay in each shard */
	unsigned shard_count;

	struct worker_shard *shards;
	size_t due;             /* shards to claim from in this turn */
	unsigned first_shard;   /* where claiming begins next */
	tw_duration present_at; /* monotonic; when the worker next reports that it is present */
	/* The worker's own stats have losses, reconnects and round trips. */
	struct tw_redis_worker_stats stats;

	atomic_uint running; /* any thread; a statistic, relaxed everywhere, orders nothing */

	struct tw_redis_worker_stats shown; /* the worker's lock guards it */
};

enum { FEED_CALLBACKS, FEED_HANDLERS, FEEDS }; /* the number is run.by_handler */

/* A feed is one of the two kinds of runs. The main thread alone uses it. */
struct feed {
	unsigned slots;        /* the most concurrent runs; 0 if it has no runner */
	size_t pending;        /* runs handed over and not ended */
	tw_duration mean;      /* about the time of a run; 0 if it is not known */
	struct run_list fresh; /* claimed runs to hand over */
};

enum stop_stage {
	STOP_NONE,
	STOP_ASKED,   /* it waits for runs to end, until the deadline */
	STOP_BREAKING /* callbacks have been broken off; ended runs are reported a last time */
};

struct tw_redis_worker {
	/* These are constant after the start. */
	struct tw_redis_worker_options options; /* with the defaults filled in */
	struct targets targets;
	struct thread thread;
	struct fork_guard guard; /* a fork's child may not use it */

	struct source *sources; /* at least one; they share the connections */
	char name[20];          /* random hexadecimal digits */
	tw_duration begun;      /* monotonic */
	size_t source_count;

	/* Any thread may use the router. Its lock guards the rest of these. */
	struct router *router; /* for all sources */
	struct caller caller;  /* has all steps; the leaders are its threads */
	bool rung;             /* the main thread has been notified of a step's end */
	bool leaders_end;

	/* The main thread alone uses these. */
	struct leader *leaders; /* the last one started */
	size_t leader_count;
	struct tw_wheel *wheel; /* when to look at shards and to extend leases; driven here */
	struct tw_redis *spaces[TW_REDIS_SOURCES_MAX]; /* the handles of the sources */
	size_t first_source; /* modulo their number, the one that has room first */
	bool hints_come;
	struct list asked;      /* the steps under way */
	struct trouble trouble; /* Redis is away */
	struct trouble failure; /* a script fails; the others go on */
	struct feed feeds[FEEDS];
	uint64_t random;
	size_t held; /* runs of all sources that have not been reported */
	/* About the most bytes of a turn's claims; less after a lost reply, more after others. */
	size_t turn_bytes;
	tw_duration turn_shrunk; /* monotonic; claims begun before had the turn_bytes of then */
	size_t bytes_left;       /* what claims may still bring in this turn */
	/* These counts are the worker's, not a source's; the others are 0. */
	struct tw_redis_worker_stats stats;
	bool stopping; /* it claims nothing more */
	enum stop_stage stop_stage;
	tw_duration stop_at; /* monotonic; the end of the grace, then of the breaking */

	/* Any of our threads may use the runners and the hints. */
	struct hints hints;
	struct handlers handlers;
	struct callbacks callbacks;
	struct mailbox mailbox;

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t answered;
	struct tw_redis_worker_stats shown;
	struct tw_redis_error shown_error;
	tw_duration shown_at; /* monotonic */
	bool stop_asked;      /* a stop has no answer yet */
	tw_duration stop_by;  /* monotonic; the end of the shortest grace of the stops */
	size_t stop_answers;  /* the stops that returned while handlers still ran */
	bool ended;           /* the thread has ended */
};

/* Returns whether a call may use the worker: it is not NULL, and no parent process has made it. */
static inline bool worker_is_own(const struct tw_redis_worker *worker)
{
	return worker && fork_guard_is_open(&worker->guard);
}

/* ---- worker_present.c: a worker reports to its namespaces that it is present ---- */

void present_write(struct source *source, struct eval *eval);

/* ---- worker_shards.c: when a worker looks at which shard ---- */

/* Schedules a look at the shard after `wait`, unless an earlier one is scheduled. */
void shard_look_in(struct worker_shard *shard, tw_duration wait);
/* Blocks a shard whose node does not answer, for a longer time each time. */
void shard_block(struct worker_shard *shard);

/* ---- worker_counts.c: statistics of runs, times by length ---- */

/* Counts a run that began and ended by itself. */
void worker_count_run(const struct run *run);
/* Publishes the present counts. */
void worker_counts_show(struct tw_redis_worker *worker);

/* ---- worker_runs.c: runs from the claim to the report ---- */

/* This is the end of a run that was put off. It is counted and not reported, as the run comes
 * again. */
#define END_PUT_OFF ((enum tw_redis_end)(TW_REDIS_END_SNOOZED + 1))
/* This is the end of a job that was not to run. The claim has counted it. */
#define END_PASSED ((enum tw_redis_end)(TW_REDIS_END_SNOOZED + 2))

/* Hands a claimed run to its runner, or ends it at once if there is none. */
void worker_take_run(struct tw_redis_worker *worker, struct run *run);
/* Queues the report of a run that its runner has ended or given back. */
void worker_end_run(struct tw_redis_worker *worker, struct run *run);
/* Calls the hook for a run whose end Redis has confirmed, or cannot confirm, and frees it. */
void worker_report(struct tw_redis_worker *worker, struct run *run, enum tw_redis_end end);
/* Extends the batch's lease in the next turn. */
void batch_extend(struct batch *batch);
/* Notes that the batch has a lease since `begun`, to extend when a third of it has passed. */
void batch_leased(struct batch *batch, tw_duration begun);

/* ---- worker_nodes.c: the threads that lead nodes, and whether Redis is away ---- */

/* Starts the first thread that leads nodes. Returns false if it can't. */
bool leaders_begin(struct tw_redis_worker *worker);
/* Gives evals to the router, and starts further threads, as many as there are nodes. */
void leaders_post(struct tw_redis_worker *worker, struct eval *evals);
/* Breaks off all waits for Redis, and waits for the threads. */
void leaders_end(struct tw_redis_worker *worker);
/* Notes the end of a step, and calls the hooks if that is news. */
void worker_note_step(struct tw_redis_worker *worker, struct step *step);
/* Calls the hook for an error that the worker works around. */
void worker_notice(struct tw_redis_worker *worker, const struct tw_redis_error *error);

/* ---- worker_turn.c, worker_loop.c: the main thread ---- */

/* Takes the steps that have ended, and begins those that are due at nodes without any. Returns
 * whether there was anything to do. */
bool worker_turn(struct tw_redis_worker *worker);
/* Runs the main thread, from its start to the end of a stop. */
void *worker_thread(void *worker);

/* ---- worker_sources.c: the namespaces, opened as the worker starts and closed as it ends ---- */

/* Opens all namespaces of the options over the same connections. The statuses are those of
 * tw_redis_open. sources_close() frees them, whatever the status. */
enum tw_status sources_open(struct tw_redis_worker *worker,
			    const struct tw_redis_options *redis_options,
			    struct tw_redis_error *error);
void sources_close(struct tw_redis_worker *worker);

#endif
