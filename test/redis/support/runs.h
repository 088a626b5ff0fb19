/* SPDX-License-Identifier: MIT */
/* What a worker did: a handler that records its runs and behaves as told, and a hook for ends. */
#ifndef REDIS_SUPPORT_RUNS_H
#define REDIS_SUPPORT_RUNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

struct run_seen {
	char key[32];
	char body[32];
	unsigned attempt;
	uint64_t token;
	int64_t due_ms;
	int64_t began; /* wall_clock() */
	tw_duration lateness;
};

struct end_seen {
	char key[32];
	enum tw_redis_end end;
	uint64_t token;
	int http_status;
	tw_duration retry_in;
	tw_duration took;
	char reason[TW_REDIS_REASON_MAX + 1];
};

struct runs {
	/* Constant after runs_init. */
	size_t room;

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t opened;
	struct run_seen *runs;
	struct end_seen *ends;
	size_t run_count; /* beyond `room` they are counted alone, as ends are */
	size_t end_count;
	size_t running;
	size_t lost; /* losses that the connection hook received, and ends of them */
	size_t found;
	size_t errors; /* errors that it received */
	struct tw_redis_error told_last;
	size_t notices;
	struct tw_redis_error notice_last;

	/* How the handler behaves; the test may change it. */
	enum tw_redis_outcome outcome;
	tw_duration retry_in;
	const char *reason;
	tw_duration takes; /* sleeps that long */
	bool gate_is_shut; /* waits until it opens */
};

void runs_init(struct runs *runs, size_t room);
void runs_free(struct runs *runs);

/* Fills in context, handler and hooks. */
void runs_attach(struct runs *runs, struct tw_redis_worker_options *options);
/* Starts a worker, or fails the test with what went wrong. */
struct tw_redis_worker *worker_start(const struct tw_redis_options *redis,
				     const struct tw_redis_worker_options *options);
/* Lets what runs finish, and ends it. */
void worker_stop(struct tw_redis_worker *worker);
void runs_open_gate(struct runs *runs);

size_t runs_count(struct runs *runs);
size_t runs_running(struct runs *runs);
size_t runs_count_of(struct runs *runs, const char *key);
size_t ends_count(struct runs *runs);
size_t ends_count_of(struct runs *runs, const char *key, enum tw_redis_end end);
/* How often Redis was lost and found again. */
size_t runs_lost(struct runs *runs);
size_t runs_found(struct runs *runs);
/* Return how many reasons of losses, and how many notices, the hooks received, and the last. */
size_t runs_told(struct runs *runs, struct tw_redis_error *last);
size_t runs_notices(struct runs *runs, struct tw_redis_error *last);
/* The index-th run, end, of the key (NULL: of any), copied; fails the test if there are too few. */
struct run_seen run_of(struct runs *runs, const char *key, size_t index);
struct end_seen end_of(struct runs *runs, const char *key, size_t index);

/* Fails the test unless each of "task-0" and so on ran, and none more often than that. */
void assert_each_ran(struct runs *runs, int count, size_t most);

#endif
