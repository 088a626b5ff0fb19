/* SPDX-License-Identifier: MIT */
/* Runs record what the case's workers did: their handler's runs, with a behaviour that the test
 * chooses, and the hooks' calls. */
#ifndef REDIS_SUPPORT_RUNS_H
#define REDIS_SUPPORT_RUNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

struct run_seen {
	char name_space[48];
	char key[32];
	char body[32];
	unsigned attempt;
	uint64_t token;
	int64_t due_ms;
	int64_t began; /* by wall_clock() */
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

enum { RUNS_ROOM = 5000 };

/* Each case begins with zeros. It may set the last fields before its workers start. */
extern struct runs {
	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t opened;
	struct run_seen runs[RUNS_ROOM];
	struct end_seen ends[RUNS_ROOM];
	size_t run_count; /* runs beyond the room are only counted, as are ends */
	size_t end_count;
	size_t running;
	size_t lost; /* losses that the connection hook received, and ends of them */
	size_t found;
	size_t errors; /* errors that it received */
	struct tw_redis_error error_last;
	size_t notices;
	struct tw_redis_error notice_last;

	/* The test may change the handler's behaviour. */
	enum tw_redis_outcome outcome;
	tw_duration retry_in;
	const char *reason;
	tw_duration takes; /* the handler sleeps that long */
	bool gate_is_shut; /* the handler waits until it opens */
} runs;

/* Forgets all that is recorded, in mid-case. No worker may run. */
void runs_reset(void);

/* Sets context, handler and hooks. */
void runs_attach(struct tw_redis_worker_options *options);
/* Starts a worker, which is stopped when the case has ended. A case whose variables it uses stops
 * it before. Fails the test with the error message if that fails. */
struct tw_redis_worker *worker_start(const struct tw_redis_options *redis,
				     const struct tw_redis_worker_options *options);
/* Sets context, handler and hooks, and starts a worker. */
struct tw_redis_worker *worker_run(const struct tw_redis_options *redis,
				   struct tw_redis_worker_options options);
/* WORK(fixture, .batch = 1) starts one of the fixture's namespace with these options. */
#define WORK(fixture, ...) WORK_AT(&(fixture)->options, __VA_ARGS__)
#define WORK_AT(redis, ...) worker_run(redis, (struct tw_redis_worker_options){__VA_ARGS__})
/* Lets current runs finish, and stops the worker. */
void worker_stop(struct tw_redis_worker *worker);
void worker_destroy(struct tw_redis_worker *worker);
/* Returns the statistics of all its namespaces. */
struct tw_redis_worker_stats worker_stats(struct tw_redis_worker *worker);
void runs_open_gate(void);

size_t runs_count(void);
size_t runs_running(void);
size_t runs_count_of(const char *key);
size_t ends_count(void);
size_t ends_count_of(const char *key, enum tw_redis_end end);
/* Return how often Redis was lost and found again. */
size_t runs_lost(void);
size_t runs_found(void);
/* Return the number of errors, and of notices, that the hooks received, and copy the last. */
size_t runs_errors(struct tw_redis_error *last);
size_t runs_notices(struct tw_redis_error *last);
/* Return the index-th run or end of the key (NULL means any). Fail the test if there are fewer. */
struct run_seen run_of(const char *key, size_t index);
struct end_seen end_of(const char *key, size_t index);

/* Fails the test unless each of "task-0" and so on ran, at most `most` times. */
void assert_each_ran(int count, size_t most);

#endif
