/* SPDX-License-Identifier: MIT */
/*
 * worker.h has what is behind struct tw_redis_worker, and what the files worker_* do for each
 * other. The main thread alone calls their functions, or who starts and frees the worker.
 */
#ifndef REDIS_WORKER_WORKER_H
#define REDIS_WORKER_WORKER_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/redis.h>

#include "base/thread.h"
#include "callbacks.h"
#include "dial.h"
#include "redis/client/client.h"
#include "handlers.h"
#include "hints.h"
#include "run.h"
#include "shares.h"
#include "targets.h"

/* What Redis is asked about a shard; the first STEP_ENDS are about runs that have ended. */
enum step_kind {
	STEP_ACK,
	STEP_FAIL,
	STEP_RELEASE,
	STEP_ENDS,
	STEP_EXTEND = STEP_ENDS,
	STEP_CLAIM,
	STEP_SCHEDULE, /* what a claim has left open; if it fails, the next one leaves it so */
	STEP_SWEEP,
	STEP_OF_SHARDS,
	STEP_PERMIT = STEP_OF_SHARDS, /* how many may be claimed; its shard is any */
	STEP_LOOK,                    /* at all shards at once; its shard is the first */
	STEP_PRESENT,                 /* the worker is there; its shard is any */
	STEP_REVIEW,                  /* looks once whether calendars still have a shard's times */
	STEP_KINDS
};

/* Main thread only. */
struct worker_shard {
	/* Constant after the start. */
	struct source *source;
	unsigned number;
	unsigned slot;      /* in a cluster */
	struct step *steps; /* one of each kind */

	size_t asked; /* the number of its own steps that are under way; then it begins none */
	bool is_free; /* it may begin steps in this turn */
	struct tw_redis_error error; /* what the last of its steps that failed did so for */

	tw_duration look_at; /* monotonic: when it becomes due, as far as is known; 0 if it is */
	struct tw_timer timer;
	bool has_many; /* its last claim brought several, or left some that are due */
	bool is_large; /* its last claim brought large records, or was too small for one */
	bool is_lost;  /* the reply to its last claim was; the next one gives back what that took */
	uint64_t claim_number; /* one more after each reply */

	bool sweep_is_due;     /* its dead letters are to be looked at */
	char sweep_cursor[24]; /* where that goes on; "": at the beginning */

	bool blocked; /* its node does not answer; a timer ends that */
	tw_duration backoff;

	struct list leases;              /* to be extended */
	struct list schedules;           /* to be written */
	struct run_list ends[STEP_ENDS]; /* to be reported */
};

/* What is asked of a shard's node. It is under way from its turn until its eval has ended, which
 * may be many turns later. */
struct step {
	enum step_kind kind;
	struct worker_shard *shard;
	struct list link; /* among all that are under way */
	bool under_way;
	struct eval eval;
	struct list leases;
	struct run_list runs;
	size_t limit; /* a claim's */
};

/* Why the worker can't do its work. */
struct trouble {
	const struct step *step; /* that failed and has not succeeded since; NULL means none */
	bool of_node;            /* any step of its node that succeeds ends it */
	struct tw_redis_error error;
};

/* What a namespace's limits allow. Main thread only. */
struct permits {
	bool limited;         /* as far as is known; at first it is */
	bool due;             /* to be asked for whatever there is */
	bool waiting;         /* fewer were given than wanted, a moment ago */
	size_t left;          /* the number of tasks that may be claimed */
	size_t claims;        /* the most tasks that claims under way can bring */
	size_t asked;         /* the number that it had when it asked */
	tw_duration asked_at; /* when that was, monotonic */
	size_t told;          /* the number that it has, with those given, by its last word */
	struct tw_timer timer;
};

/* A namespace that the worker serves. Main thread only, except what is marked. */
struct source {
	/* Constant after the start. */
	struct tw_redis_worker *worker;
	struct tw_redis *redis; /* tries once */
	struct share *share;    /* its part of the room for claims; main thread only */
	unsigned shard_count;

	struct worker_shard *shards;
	struct tw_timer look; /* at all shards, without a hint */
	bool look_is_due;
	struct permits permits;
	size_t due;             /* shards to claim from in this turn */
	unsigned first_shard;   /* where claiming begins next */
	unsigned sweep_shard;   /* where sweeping goes on */
	unsigned review_shard;  /* where the review goes on; the number of shards after it */
	char review_cursor[24]; /* in that shard */
	tw_duration present_at; /* monotonic: when the worker next reports that it is there */
	/* Losses, reconnects and round trips are the worker's. */
	struct tw_redis_worker_stats stats;

	atomic_uint running; /* any thread; a statistic, relaxed everywhere: it orders nothing */

	struct tw_redis_worker_stats shown; /* under the worker's lock */
};

enum { FEED_CALLBACKS, FEED_HANDLERS, FEEDS }; /* the number is run.by_handler */

/* One of the two kinds of runs. Main thread only. */
struct feed {
	unsigned slots;        /* run at a time; 0 means that there is no runner for it */
	size_t pending;        /* handed over and not ended */
	tw_duration mean;      /* how long a run takes, about; 0 if that is not known */
	struct run_list fresh; /* claimed, to be handed over */
};

enum stop_stage {
	STOP_NONE,
	STOP_ASKED,   /* ends are waited for, until the deadline */
	STOP_BREAKING /* callbacks have been broken off, what ended is reported a last time */
};

struct tw_redis_worker {
	/* Constant after the start. */
	struct tw_redis_worker_options options; /* with the defaults filled in */
	struct targets targets;
	struct thread thread;

	struct source *sources; /* one at least; they share the connections */
	uint64_t name;          /* random */
	tw_duration begun;      /* monotonic */
	size_t source_count;

	/* Main thread only. */
	struct router *router;  /* that of all sources */
	struct tw_wheel *wheel; /* when to look at shards, and to extend leases; driven here */
	struct hints hints;
	struct tw_redis *beside[TW_REDIS_SOURCES_MAX]; /* the sources' behind the first */
	struct shares shares;                          /* one for each source */
	struct step *steps;                            /* STEP_KINDS for each shard */
	struct list asked;                             /* those that are under way */
	struct list dials;                             /* to nodes */
	struct trouble trouble;                        /* Redis is away */
	struct trouble failure;                        /* a script fails; the others go on */
	struct feed feeds[FEEDS];
	uint64_t random;
	size_t held;        /* runs that have not been reported, of all sources */
	size_t turn_bytes;  /* the most that all claims of a turn may bring, about */
	size_t read_bytes;  /* what they brought in this turn */
	bool claim_is_lost; /* the reply to one of them was */
	/* Counts of the worker, not of a source; the others are 0. */
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
	struct tw_redis_error shown_error;
	tw_duration shown_at; /* monotonic */
	/* The first is that of all which have no row of their own. */
	struct tw_redis_host_stats hosts[TW_REDIS_HOSTS_MAX + 1];
	size_t host_count;
	bool stop_asked;     /* and not answered */
	tw_duration stop_by; /* monotonic: the end of the shortest grace of the stops */
	size_t stop_answers; /* how often a stop returned because handlers still run */
	bool ended;          /* the thread has come to its end */
};

/* ---- worker_permits.c: a worker claims as many tasks as its namespace's limits permit ---- */

void permits_init(struct source *source);
/* Returns whether Redis is to be asked before anything is claimed. `wanted` is how many
 * tasks would be claimed. */
bool permits_are_due(const struct source *source, size_t wanted);
void permits_write(struct source *source, struct eval *eval, size_t wanted);
void permits_read(struct source *source, const struct eval *eval);
/* Returns the most tasks to ask permits for, and to claim, now. */
size_t permits_most(const struct source *source);
/* Notes a claim for `limit` tasks that is being sent, and that it has brought `count`. */
void permits_take(struct source *source, size_t limit);
void permits_settle(struct source *source, size_t limit, size_t count);
/* Frees what the worker had in all namespaces, in one pass: it ends. What fails ends after two
 * leases. */
void permits_leave(struct tw_redis_worker *worker);

/* ---- worker_present.c: a worker reports to its namespaces that it is there ---- */

/* Returns whether that is due in a turn that is made anyway. */
bool present_is_due(const struct source *source);
void present_write(struct source *source, struct eval *eval);

/* ---- worker_shards.c: when a worker looks at which shard ---- */

/* Has the shard looked at after `wait`, or earlier if that is known already. */
void shard_look_in(struct worker_shard *shard, tw_duration wait);
/* While hints come and the server is no cluster: asks for all shards of the namespace at once, in
 * 10 s. */
void shards_look_later(struct source *source);
/* Has all shards looked at now. */
void shards_look_now(struct source *source);
/* Leaves the shard alone for a while, longer each time: its node does not answer. */
void shard_block(struct worker_shard *shard);
/* If dead letters are to end: has all shards swept now, and from now on every minute. TW_OK or
 * TW_NO_MEMORY. */
enum tw_status shards_sweep_start(struct source *source);
/* Sweeps the shard soon if the number of letters is limited: it has one more. */
void shard_sweep(struct worker_shard *shard);

/* ---- worker_counts.c: statistics of runs, times by length and answers by host ---- */

/* Is called before any thread of the worker. */
void worker_counts_init(struct tw_redis_worker *worker);
/* Counts a run that began and has come to an end by itself. */
void worker_count_run(struct tw_redis_worker *worker, const struct run *run);
/* Shows what there is from now on. */
void worker_counts_show(struct tw_redis_worker *worker);

/* ---- worker_runs.c: what becomes of runs, from the claim to the report ---- */

/* The end of a run that was put off: counted, and not reported, for it comes again soon. */
#define END_PUT_OFF ((enum tw_redis_end)(TW_REDIS_END_SNOOZED + 1))

/* Hands a claimed run to its runner, or ends it at once if there is none. */
void worker_take_run(struct tw_redis_worker *worker, struct run *run);
/* Puts a run that its runner has ended or gives back into the list of what is to be reported. */
void worker_end_run(struct tw_redis_worker *worker, struct run *run);
/* Calls the hook for a run whose end Redis has confirmed, or can't, and frees it. */
void worker_report(struct tw_redis_worker *worker, struct run *run, enum tw_redis_end end);
/* Has the run's lease made longer in the next turn, or when a third of it has passed. */
void run_extend(struct run *run);
void run_extend_later(struct run *run);

/* ---- worker_nodes.c: connecting beside the loop, and whether Redis is away ---- */

/* Begins to connect the nodes that steps wait for. */
void nodes_connect(struct tw_redis_worker *worker);
/* Takes what has been connected, or could not be. Returns whether there was any. */
bool nodes_take(struct tw_redis_worker *worker);
/* Waits for the threads that connect. */
void nodes_end(struct tw_redis_worker *worker);
/* Notes what a step has ended with, and calls the hooks if that is news. */
void worker_note_step(struct tw_redis_worker *worker, struct step *step);
/* Calls the hook of what the worker works around. */
void worker_notice(struct tw_redis_worker *worker, const struct tw_redis_error *error);

/* ---- worker_turn.c, worker_loop.c: the main thread ---- */

/* Says all that there is to say to the nodes that owe nothing, and takes the replies that have
 * come. Returns whether there was any. */
bool worker_turn(struct tw_redis_worker *worker);
/* Is called before any turn. */
void worker_turn_init(struct tw_redis_worker *worker);
/* Is the main thread, from its start to the end of a stop. */
void *worker_thread(void *worker);

/* ---- worker_sources.c: the namespaces, opened as the worker starts and closed as it ends ---- */

/* Opens all that the options name, over the same connections. Statuses as tw_redis_open; whatever
 * is returned, sources_close() frees what there is. */
enum tw_status sources_open(struct tw_redis_worker *worker,
			    const struct tw_redis_options *redis_options,
			    struct tw_redis_error *error);
void sources_close(struct tw_redis_worker *worker);

#endif
