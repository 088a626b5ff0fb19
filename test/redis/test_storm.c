/* SPDX-License-Identifier: MIT */
/*
 * Four worker processes are killed and restarted at random while they run 50,000 tasks. Then every
 * task has run, each was acknowledged once, and nothing is left. The processes record their
 * observations in memory that they share with the test and that outlives them.
 */
#include "support/fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/seed.h"
#include "support/sockets.h"
#include "support/wait.h"

enum {
	COUNT = TEST_SHARE_OF(50000),
	WORKERS = 4, /* at the same time */
	KILLS = 60,
	LIVES = WORKERS + KILLS, /* all worker processes */
	HANDLERS = 2,
	RUN_US = 200, /* the minimum length of a run */
	/* A worker holds the tasks that run, and those that it can begin within 20 ms. */
	HELD = HANDLERS + HANDLERS * 20000 / RUN_US,
};

static const tw_duration lease = TW_SECOND;

/* All workers write this. */
struct seen {
	_Atomic unsigned runs;
	_Atomic unsigned dones;      /* acknowledgements that were accepted and reported */
	_Atomic uint64_t done_token; /* the token of the acknowledged run */
	_Atomic uint64_t newest;     /* the newest begun run, as run_id() */
	_Atomic unsigned older;      /* runs that began after one with the same or a higher token */
};

static struct seen *seen;
static unsigned life; /* in a worker: its index among LIVES */

/* Returns a run's token with the worker's life in which it began. The results of one task compare
 * as their tokens do. */
static uint64_t run_id(uint64_t token)
{
	return token * LIVES + life;
}

static struct seen *seen_of(const struct tw_redis_job *job)
{
	return &seen[strtoul((const char *)job->key + 5, NULL, 10)];
}

/* Returns Redis's time in milliseconds, which is the machine's. */
static int64_t time_of_day_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Returns whether the run's lease, which began at the due time or later, still lasts: then no other
 * run can have begun. A worker that had no processor for longer may be overtaken.
 */
static bool lease_lasts(const struct tw_redis_job *job)
{
	return time_of_day_ms() < job->due_ms + lease / TW_MILLISECOND;
}

/* All atomics here are relaxed: counts that are read after the processes have ended, or by
 * polling. */
static enum tw_redis_outcome run(void *context, const struct tw_redis_job *job,
				 struct tw_redis_verdict *verdict)
{
	struct seen *task = seen_of(job);
	uint64_t newest = atomic_load_explicit(&task->newest, memory_order_relaxed);

	atomic_fetch_add_explicit(&task->runs, 1, memory_order_relaxed);
	while (newest < run_id(job->token) &&
	       !atomic_compare_exchange_weak_explicit(&task->newest, &newest, run_id(job->token),
						      memory_order_relaxed, memory_order_relaxed))
		continue;
	if (newest / LIVES == job->token || (newest / LIVES > job->token && lease_lasts(job)))
		atomic_fetch_add_explicit(&task->older, 1, memory_order_relaxed);
	/* Workers are also killed in the middle of tasks. */
	wait_for(RUN_US * TW_MICROSECOND);
	return TW_REDIS_DONE;
}

static void count_done(void *context, const struct tw_redis_report *report)
{
	struct seen *task = seen_of(report->job);

	if (report->end != TW_REDIS_END_DONE)
		return;
	/* relaxed, both: a count, and a number that is read when the count is there */
	atomic_store_explicit(&task->done_token, report->job->token, memory_order_relaxed);
	atomic_fetch_add_explicit(&task->dones, 1, memory_order_relaxed);
}

/* Works in the child until it is killed. */
static void work(const struct tw_redis_options *redis)
{
	const struct tw_redis_worker_options options = {
		.handler = run, .report = count_done, .handlers = HANDLERS, .lease = lease};
	struct tw_redis_worker *worker;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (tw_redis_worker_start(&worker, redis, &options, NULL) != TW_OK)
		_exit(1);
	for (;;)
		pause();
}

struct worker {
	pid_t pid;
	unsigned life;
};

static struct worker worker_start(const struct fixture *fixture)
{
	static unsigned lives;
	struct worker worker = {.life = lives++};

	assert_true(worker.life < LIVES);
	worker.pid = fork();
	if (!worker.pid) {
		life = worker.life;
		work(&fixture->options);
	}
	assert_true(worker.pid > 0);
	return worker;
}

static void worker_kill(const struct worker *worker)
{
	int status;

	assert_int_equal(kill(worker->pid, SIGKILL), 0);
	assert_int_equal(waitpid(worker->pid, &status, 0), worker->pid);
	assert_true(WIFSIGNALED(status));
}

static void add_all(struct tw_redis *redis)
{
	enum { BATCH = 1000 };
	static struct tw_redis_task tasks[BATCH];
	static char keys[BATCH][KEY_SIZE];

	for (int first = 0; first < COUNT; first += BATCH) {
		int count = COUNT - first < BATCH ? COUNT - first : BATCH;

		for (int i = 0; i < count; i++) {
			number_key(keys[i], first + i);
			tasks[i] = (struct tw_redis_task){
				.key = keys[i],
				.key_size = strlen(keys[i]),
				.delay = (first + i) % 5000 * TW_MILLISECOND,
				.max_attempts = 1000,
			};
		}
		assert_ok(redis, tw_redis_add(redis, tasks, (size_t)count, NULL));
	}
}

/* Counts the tasks that no worker reported, by the life in which they last ran. */
static void count_unconfirmed(unsigned unconfirmed[LIVES])
{
	memset(unconfirmed, 0, LIVES * sizeof(*unconfirmed));
	for (int i = 0; i < COUNT; i++)
		/* relaxed: see run() */
		if (!atomic_load_explicit(&seen[i].dones, memory_order_relaxed))
			unconfirmed[atomic_load_explicit(&seen[i].newest, memory_order_relaxed) %
				    LIVES]++;
}

static bool all_is_reported(const struct worker *workers)
{
	unsigned unconfirmed[LIVES];
	unsigned left = 0;

	count_unconfirmed(unconfirmed);
	for (int i = 0; i < WORKERS; i++)
		left += unconfirmed[workers[i].life];
	return !left;
}

static void audit(void)
{
	unsigned never = 0;
	unsigned twice = 0;
	unsigned again = 0;
	unsigned older = 0;
	unsigned overtaken = 0;
	unsigned all = 0;
	unsigned unconfirmed[LIVES];

	for (int i = 0; i < COUNT; i++) {
		/* relaxed: the workers have ended */
		unsigned runs = atomic_load_explicit(&seen[i].runs, memory_order_relaxed);
		unsigned dones = atomic_load_explicit(&seen[i].dones, memory_order_relaxed);
		uint64_t token = atomic_load_explicit(&seen[i].done_token, memory_order_relaxed);
		uint64_t newest = atomic_load_explicit(&seen[i].newest, memory_order_relaxed);

		never += !runs;
		again += runs > 1;
		twice += dones > 1;
		overtaken += dones && token != newest / LIVES;
		older += atomic_load_explicit(&seen[i].older, memory_order_relaxed);
	}
	count_unconfirmed(unconfirmed);
	for (int i = 0; i < LIVES; i++)
		all += unconfirmed[i];
	printf("%u ran again, %u were acknowledged by a worker that died before it could report\n",
	       again, all);
	assert_int_equal(never, 0);
	assert_int_equal(twice, 0);
	/* A worker that is killed between Redis's reply and the report leaves only what it held. */
	for (int i = 0; i < LIVES; i++)
		assert_in_range(unconfirmed[i], 0, HELD);
	/* Only a run with a higher token may overtake a run that a killed worker had begun. */
	assert_int_equal(older, 0);
	/* An overtaken run can't be acknowledged. */
	assert_int_equal(overtaken, 0);
}

static void killed_workers_leave_nothing_undone_and_nothing_done_twice(void **state)
{
	struct fixture *fixture = *state;
	struct random random = random_from(seed_choose(), 0);
	struct worker workers[WORKERS];
	int kills = 0;
	int64_t left;

	seen = mmap(NULL, COUNT * sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	assert_true(seen != MAP_FAILED);
	for (int i = 0; i < WORKERS; i++)
		workers[i] = worker_start(fixture);
	add_all(fixture->redis);
	while ((left = (int64_t)stats_of(fixture->redis).tasks)) {
		uint64_t victim = random_below(&random, WORKERS);

		wait_for(random_between(&random, 20, 150) * TW_MILLISECOND);
		/* This is long enough for kills at all kinds of moments. The last workers live to
		 * the end. */
		if (kills >= KILLS || left < COUNT / 10)
			continue;
		worker_kill(&workers[victim]);
		workers[victim] = worker_start(fixture);
		kills++;
	}
	/* Workers that were not killed report everything. */
	WAIT_UNTIL(all_is_reported(workers));
	for (int i = 0; i < WORKERS; i++)
		worker_kill(&workers[i]);
	printf("%d workers killed\n", kills);
	audit();
	/* On a busy machine there is time for few kills. */
	assert_true(kills > 0);
	assert_int_equal(stats_of(fixture->redis).dead, 0);
	assert_int_equal(redis_server_count_keys(&fixture->server, fixture->name_space), 0);
	munmap(seen, COUNT * sizeof(*seen));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(killed_workers_leave_nothing_undone_and_nothing_done_twice),
	};

	return FIXTURE_RUN(tests);
}
