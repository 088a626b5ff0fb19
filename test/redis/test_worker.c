/* SPDX-License-Identifier: MIT */
/*
 * A worker with a handler runs on the server's real clock. These tests check what runs, when, how
 * often, and with which outcome. To let minutes pass they rewrite a task's time.
 */
#include "support/fixture.h"

#include <sched.h>

#include "support/runs.h"

STORED(fixture, task_due_in_a_second_runs_once_and_never_early)
{
	int64_t added = wall_clock();
	struct run_seen run;

	WORK(fixture);
	add_task(fixture->redis, "a", TW_SECOND);
	WAIT_UNTIL(ends_count() == 1);
	run = run_of("a", 0);
	assert_in_range(run.began - added, TW_SECOND, 6 * TW_SECOND);
	assert_true(run.lateness >= 0);
	assert_int_equal(run.attempt, 1);
	wait_for(300 * TW_MILLISECOND);
	assert_int_equal(runs_count(), 1);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

/* Redis reports when the next one is due: no worker waits for its next look. */
STORED(fixture, worker_runs_each_occurrence_once_and_never_early)
{
	enum { RUNS = 10, PERIOD_MS = 100 };
	const struct tw_redis_task task = {.key = "a",
					   .key_size = 1,
					   .every = PERIOD_MS * TW_MILLISECOND,
					   .missed = TW_REDIS_MISSED_ALL};
	struct tw_redis_worker *worker = WORK(fixture, .poll = 10 * TW_SECOND);
	int64_t first = add_one(fixture->redis, &task);

	WAIT_UNTIL(ends_count() >= RUNS);
	worker_stop(worker);
	for (int i = 0; i < RUNS; i++) {
		struct run_seen run = run_of("a", (size_t)i);

		assert_int_equal(run.due_ms, first + i * PERIOD_MS);
		assert_int_equal(run.attempt, 1);
		assert_true(run.lateness >= 0);
	}
	assert_true(run_of("a", RUNS - 1).began - run_of("a", 0).began < 9 * TW_SECOND);
}

/* A claim reports exactly whether there is more: after one that took all, no claim finds
 * nothing. */
STORED(fixture, single_task_is_taken_by_a_single_claim)
{
	enum { COUNT = 10 };
	struct tw_redis_worker *worker = WORK(fixture, .batch = 1);
	uint64_t before;
	size_t ends = 0;

	/* The worker also claims when it starts, and every ten seconds. */
	do {
		assert_true(ends < 10 * COUNT);
		wait_for(300 * TW_MILLISECOND);
		before = worker_stats(worker).claims;
		for (int i = 0; i < COUNT; i++) {
			char key[KEY_SIZE];

			number_key(key, i);
			add_task(fixture->redis, key, 20 * TW_MILLISECOND);
			ends++;
			WAIT_UNTIL(ends_count() == ends);
		}
		wait_for(50 * TW_MILLISECOND);
	} while (worker_stats(worker).claims != before + COUNT);
}

STORED(fixture, sleeping_worker_hears_of_an_earlier_task)
{
	struct tw_redis_worker *worker = WORK(fixture, .poll = 10 * TW_SECOND);
	int64_t added;

	add_task(fixture->redis, "later", TW_HOUR);
	add_task(fixture->redis, "moved", TW_HOUR);
	WAIT_UNTIL(redis_server_count_listeners(&fixture->server, fixture->name_space));
	wait_for(500 * TW_MILLISECOND);
	added = wall_clock();
	add_task(fixture->redis, "sooner", 50 * TW_MILLISECOND);
	assert_ok(fixture->redis, move_task(fixture->redis, "moved", 0));
	WAIT_UNTIL(ends_count() == 2);
	/* Without hints it would have slept for ten seconds. */
	assert_true(run_of("sooner", 0).began - added < 6 * TW_SECOND);
	assert_true(run_of("moved", 0).began - added < 6 * TW_SECOND);
	assert_true(worker_stats(worker).hints > 0);
}

STORED(fixture, hints_that_are_cut_off_are_listened_to_again)
{
	char key[KEY_SIZE];

	WORK(fixture, .poll = TW_SECOND);
	for (int i = 0; i < 5; i++) {
		redis_server_number(&fixture->server, "CLIENT KILL TYPE pubsub");
		number_key(key, i);
		add_task(fixture->redis, key, 20 * TW_MILLISECOND);
		wait_for(50 * TW_MILLISECOND);
	}
	WAIT_UNTIL(ends_count() == 5);
}

STORED(fixture, idle_worker_hardly_asks_redis)
{
	struct tw_redis_worker *worker;
	uint64_t before;
	uint64_t after = 0;
	int tries = 0;

	add_task(fixture->redis, "later", TW_HOUR);
	worker = WORK(fixture);
	/* It is not idle before it has started, which takes a busy machine a while. */
	do {
		assert_in_range(++tries, 1, 10);
		before = after;
		wait_for(1200 * TW_MILLISECOND);
		after = worker_stats(worker).claims;
		/* Polling four shards each second would make at least four. */
	} while (after - before > 2 || after == 0);
}

STORED(fixture, running_task_that_is_replaced_ends_stale_and_the_new_one_runs)
{
	runs.gate_is_shut = true;
	WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(runs_running() == 1);
	assert_int_equal(cancel_task(fixture->redis, "a"), TW_RUNNING);
	assert_int_equal(move_task(fixture->redis, "a", 0), TW_RUNNING);
	add_task(fixture->redis, "a", 200 * TW_MILLISECOND);
	runs_open_gate();
	WAIT_UNTIL(ends_count() == 2);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_STALE);
	assert_int_equal(end_of("a", 1).end, TW_REDIS_END_DONE);
	assert_int_equal(run_of("a", 1).attempt, 1);
	assert_true(run_of("a", 1).token > run_of("a", 0).token);
}

STORED(fixture, task_longer_than_its_lease_is_extended_and_runs_once)
{
	struct tw_redis_worker *worker;
	struct tw_redis_worker *other;

	runs.gate_is_shut = true;
	worker = WORK(fixture, .lease = 3 * TW_SECOND);
	other = WORK(fixture, .lease = 3 * TW_SECOND);
	add_task(fixture->redis, "a", 0);
	/* The lease is extended each third of it. */
	WAIT_UNTIL(worker_stats(worker).extended + worker_stats(other).extended >= 4);
	runs_open_gate();
	WAIT_UNTIL(ends_count() == 1);
	assert_int_equal(runs_count(), 1);
	assert_int_equal(end_of("a", 0).end, TW_REDIS_END_DONE);
}

STORED(fixture, tasks_that_come_together_run_at_a_time)
{
	enum { TASKS = 4 };
	struct tw_redis_task tasks[TASKS] = {0};
	char keys[TASKS][KEY_SIZE];

	/* All are in one shard, so that one claim brings them. */
	for (int number = 0, i = 0; i < TASKS; number++) {
		number_key(keys[i], number);
		tasks[i] = (struct tw_redis_task){.key = keys[i], .key_size = strlen(keys[i])};
		i += shard_of(fixture->redis, keys[i]) == 0;
	}
	runs.gate_is_shut = true;
	WORK(fixture, .handlers = TASKS);
	/* The handlers are asleep by then. */
	wait_for(50 * TW_MILLISECOND);
	assert_ok(fixture->redis, tw_redis_add(fixture->redis, tasks, TASKS, NULL));
	WAIT_UNTIL(runs_running() == TASKS);
	runs_open_gate();
	WAIT_UNTIL(ends_count() == TASKS);
}

STORED(fixture, two_workers_share_the_tasks)
{
	enum { COUNT = 2000 };
	struct tw_redis_worker *workers[2];

	add_tasks(fixture->redis, COUNT, 0, 0);
	runs.gate_is_shut = true;
	for (int i = 0; i < 2; i++)
		workers[i] = WORK(fixture);
	for (int i = 0; i < 2; i++)
		WAIT_UNTIL(worker_stats(workers[i]).running > 0);
	runs_open_gate();
	WAIT_UNTIL(ends_count() == COUNT);
	assert_int_equal(runs_count(), COUNT);
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), COUNT);
	for (int i = 0; i < 2; i++)
		worker_stop(workers[i]);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

STORED(fixture, task_that_always_fails_is_dead_after_its_attempts)
{
	const struct tw_redis_task task = {.key = "a", .key_size = 1, .max_attempts = 5};
	static const tw_duration least[] = {10 * TW_MILLISECOND, 20 * TW_MILLISECOND,
					    25 * TW_MILLISECOND, 25 * TW_MILLISECOND};
	static const tw_duration most[] = {20 * TW_MILLISECOND, 40 * TW_MILLISECOND,
					   50 * TW_MILLISECOND, 50 * TW_MILLISECOND};

	runs.outcome = TW_REDIS_RETRY;
	runs.reason = "it never works";
	WORK(fixture, .retry_first = 20 * TW_MILLISECOND, .retry_max = 50 * TW_MILLISECOND);
	add_one(fixture->redis, &task);
	WAIT_UNTIL(ends_count() == 5);
	for (size_t i = 0; i < 5; i++) {
		struct run_seen run = run_of("a", i);
		struct end_seen end = end_of("a", i);

		assert_int_equal(run.attempt, i + 1);
		assert_true(!i || run.token > run_of("a", i - 1).token);
		assert_int_equal(end.end, i < 4 ? TW_REDIS_END_RETRIED : TW_REDIS_END_DEAD);
		assert_string_equal(end.reason, "it never works");
		/* Each pause doubles up to 50 ms, less a random part of up to a half. */
		if (i < 4)
			assert_in_range(end.retry_in, least[i], most[i]);
	}
	assert_int_equal(find_dead(fixture->redis, "a").attempts, 5);
	assert_string_equal(find_dead(fixture->redis, "a").reason, "it never works");
}

STORED(fixture, verdict_says_when_to_try_again)
{
	runs.outcome = TW_REDIS_RETRY;
	runs.retry_in = 700 * TW_MILLISECOND;
	WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(runs_count() >= 2);
	assert_true(run_of("a", 1).began - run_of("a", 0).began >= 700 * TW_MILLISECOND);
}

/* It may snooze as often as it likes: its only attempt is still to come. */
STORED(fixture, snoozed_task_runs_again_and_keeps_its_attempt)
{
	struct tw_redis_worker *worker;
	const struct tw_redis_task task = {.key = "a", .key_size = 1, .max_attempts = 1};

	runs.outcome = TW_REDIS_SNOOZE;
	runs.retry_in = 300 * TW_MILLISECOND;
	worker = WORK(fixture);
	add_one(fixture->redis, &task);
	WAIT_UNTIL(runs_count() >= 2);
	pthread_mutex_lock(&runs.lock);
	runs.outcome = TW_REDIS_DONE;
	pthread_mutex_unlock(&runs.lock);
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_DONE) == 1);
	for (size_t i = 1; i < runs_count(); i++) {
		struct run_seen run = run_of("a", i);

		assert_int_equal(run.attempt, 1);
		assert_true(run.token > run_of("a", i - 1).token);
		assert_true(run.began - run_of("a", i - 1).began >= 300 * TW_MILLISECOND);
		assert_int_equal(end_of("a", i - 1).end, TW_REDIS_END_SNOOZED);
		assert_int_equal(end_of("a", i - 1).retry_in, 300 * TW_MILLISECOND);
	}
	assert_int_equal(worker_stats(worker).snoozed, runs_count() - 1);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 0);
}

/* Without a time of its own it waits as long as for a first retry. */
STORED(fixture, snoozed_task_waits_for_the_workers_time)
{
	struct tw_redis_worker *worker;

	runs.outcome = TW_REDIS_SNOOZE;
	worker = WORK(fixture, .retry_first = 50 * TW_MILLISECOND);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(ends_count_of("a", TW_REDIS_END_SNOOZED) >= 2);
	assert_int_equal(end_of("a", 0).retry_in, 50 * TW_MILLISECOND);
	worker_stop(worker);
	assert_int_equal(stats_of(fixture->redis).tasks, 1);
}

STORED(fixture, paused_namespace_runs_nothing_until_it_is_resumed)
{
	struct tw_redis_batch *batch = NULL;
	tw_duration next;
	int64_t resumed;

	WORK(fixture);
	runs.gate_is_shut = true;
	add_task(fixture->redis, "begun", 0);
	WAIT_UNTIL(runs_count() == 1);
	for (int twice = 0; twice < 2; twice++)
		set_paused(fixture->redis, true);
	assert_int_equal(stats_of(fixture->redis).paused, tw_redis_shard_count(fixture->redis));
	add_task(fixture->redis, "later", 0);
	assert_ok(fixture->redis, tw_redis_claim(fixture->redis, shard_of(fixture->redis, "later"),
						 1, TW_SECOND, &batch, &next));
	assert_int_equal(batch->count, 0);
	assert_int_equal(next, TW_FOREVER);
	claim_end(batch);
	/* Current runs continue, and are acknowledged. */
	runs_open_gate();
	WAIT_UNTIL(ends_count_of("begun", TW_REDIS_END_DONE) == 1);
	assert_int_equal(runs_count(), 1);
	assert_int_equal(stats_of(fixture->redis).due, 1);
	wait_for(500 * TW_MILLISECOND);
	resumed = wall_clock();
	for (int twice = 0; twice < 2; twice++)
		set_paused(fixture->redis, false);
	assert_int_equal(stats_of(fixture->redis).paused, 0);
	WAIT_UNTIL(ends_count_of("later", TW_REDIS_END_DONE) == 1);
	assert_true(run_of("later", 0).began >= resumed);
	/* Without a hint it would have slept for ten seconds. */
	assert_true(run_of("later", 0).began - resumed < 6 * TW_SECOND);
}

/* Quick runs let a worker claim ahead of its handlers. */
STORED(fixture, stop_gives_back_what_was_claimed_ahead)
{
	enum { QUICK = 20, COUNT = 50, HANDLERS = 2 };
	struct tw_redis_worker *worker;
	char key[KEY_SIZE];

	worker = WORK(fixture, .handlers = HANDLERS);
	for (int i = 0; i < QUICK; i++)
		add_task(fixture->redis, "quick", 0);
	WAIT_UNTIL(stats_of(fixture->redis).tasks == 0);
	pthread_mutex_lock(&runs.lock);
	runs.gate_is_shut = true;
	pthread_mutex_unlock(&runs.lock);
	add_tasks(fixture->redis, COUNT, 0, 0);
	WAIT_UNTIL(worker_stats(worker).held > HANDLERS && runs_running() == HANDLERS);
	assert_int_equal(tw_redis_worker_stop(worker, 0), TW_RUNNING);
	assert_in_range(ends_count_of(NULL, TW_REDIS_END_RELEASED), 1, COUNT - HANDLERS);
	assert_int_equal(stats_of(fixture->redis).due, COUNT - HANDLERS);
	runs_open_gate();
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	worker_destroy(worker);
	for (int i = 0; i < COUNT; i++) {
		number_key(key, i);
		assert_in_range(runs_count_of(key) + ends_count_of(key, TW_REDIS_END_RELEASED), 0,
				1);
	}
	assert_int_equal(stats_of(fixture->redis).tasks, COUNT - HANDLERS);
	assert_int_equal(stats_of(fixture->redis).started, 0);
}

/* Another program has written the key of its dead letters: claims work, and reports of ends
 * fail. */
STORED(fixture, worker_that_cannot_report_ends_stops_claiming)
{
	enum { COUNT = 5000, BATCH = 100, MOST = 20 * BATCH + 2048 };
	static struct tw_redis_task tasks[COUNT];
	static char keys[COUNT][KEY_SIZE];
	struct tw_redis_options redis_options = fixture->options;
	struct tw_redis_worker *worker;
	struct tw_redis *redis;
	uint64_t claims;

	redis_options.shards = 1;
	redis_options.name_space = "unconfirmed";
	redis = client_open(&redis_options);
	for (int i = 0; i < COUNT; i++) {
		number_key(keys[i], i);
		tasks[i] = (struct tw_redis_task){.key = keys[i], .key_size = strlen(keys[i])};
	}
	assert_ok(redis, tw_redis_add(redis, tasks, COUNT, NULL));
	redis_server_number(&fixture->server, "SET {tw/unconfirmed/0}dead x");
	runs.outcome = TW_REDIS_KILL;
	worker = WORK_AT(&redis_options, .batch = BATCH);
	WAIT_UNTIL(worker_stats(worker).held > MOST);
	claims = worker_stats(worker).claims;
	wait_for(300 * TW_MILLISECOND);
	assert_int_equal(worker_stats(worker).claims, claims);
	assert_in_range(worker_stats(worker).held, MOST + 1, MOST + BATCH);
	assert_int_equal(ends_count(), 0);
	redis_server_number(&fixture->server, "DEL {tw/unconfirmed/0}dead");
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DEAD) == COUNT);
	worker_stop(worker);
	assert_each_ran(COUNT, 1);
	assert_int_equal(stats_of(redis).dead, COUNT);
}

/* This tries to stop its own worker, on one of the worker's threads. */
struct ender {
	_Atomic(struct tw_redis_worker *) worker; /* NULL until it is known */
	atomic_int refused;
};

static void try_to_end(struct ender *ender)
{
	struct tw_redis_worker *worker;

	/* acquire: sees the worker whole; pairs with the release of the test */
	while (!(worker = atomic_load_explicit(&ender->worker, memory_order_acquire)))
		sched_yield();
	/* relaxed: a count */
	if (tw_redis_worker_stop(worker, 0) == TW_INVALID &&
	    tw_redis_worker_destroy(worker) == TW_INVALID)
		atomic_fetch_add_explicit(&ender->refused, 1, memory_order_relaxed);
}

static enum tw_redis_outcome end_as_it_runs(void *context, const struct tw_redis_job *job,
					    struct tw_redis_verdict *verdict)
{
	try_to_end(context);
	return TW_REDIS_DONE;
}

static void end_as_it_is_reported(void *context, const struct tw_redis_report *report)
{
	try_to_end(context);
}

STORED(fixture, worker_is_not_ended_by_its_own_threads)
{
	struct ender ender = {.refused = 0};
	const struct tw_redis_worker_options options = {.context = &ender,
							.handlers = 2,
							.handler = end_as_it_runs,
							.report = end_as_it_is_reported};
	struct tw_redis_worker *worker = worker_start(&fixture->options, &options);

	/* release: pairs with the acquire in try_to_end() */
	atomic_store_explicit(&ender.worker, worker, memory_order_release);
	/* They run on either of the two threads. */
	for (int i = 1; i <= 8; i++) {
		add_task(fixture->redis, "a", 0);
		WAIT_UNTIL(worker_stats(worker).done == (uint64_t)i);
		assert_int_equal(atomic_load_explicit(&ender.refused, memory_order_relaxed), 2 * i);
	}
}

STORED(fixture, handler_longer_than_the_grace_still_runs_and_the_stop_says_so)
{
	struct tw_redis_worker *worker;

	runs.gate_is_shut = true;
	worker = WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(runs_running() == 1);
	assert_int_equal(tw_redis_worker_stop(worker, 50 * TW_MILLISECOND), TW_RUNNING);
	assert_int_equal(tw_redis_worker_stop(worker, 0), TW_RUNNING);
	runs_open_gate();
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	worker_destroy(worker);
	assert_int_equal(ends_count(), 1);
}

static void *stop_without_limit(void *argument)
{
	/* NULL stands for TW_OK. */
	return VALUE(tw_redis_worker_stop(argument, TW_FOREVER));
}

STORED(fixture, worker_may_be_stopped_twice_and_by_several_threads)
{
	enum { THREADS = 4 };
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker *worker;
	pthread_t threads[THREADS];

	runs.gate_is_shut = true;
	worker = WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(runs_running() == 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, stop_without_limit, worker);
	runs_open_gate();
	for (int i = 0; i < THREADS; i++) {
		void *status;

		pthread_join(threads[i], &status);
		assert_null(status);
	}
	assert_int_equal(tw_redis_worker_stop(worker, 0), TW_OK);
	assert_int_equal(ends_count_of("a", TW_REDIS_END_DONE), 1);
	stats = worker_stats(worker);
	assert_int_equal(stats.done, 1);
	assert_int_equal(stats.held, 0);
	worker_destroy(worker);
}

static enum tw_redis_outcome see_mask(void *context, const struct tw_redis_job *job,
				      struct tw_redis_verdict *verdict)
{
	pthread_sigmask(SIG_BLOCK, NULL, context);
	return TW_REDIS_DONE;
}

STORED(fixture, handler_has_the_signal_mask_of_the_workers_creator)
{
	struct tw_redis_worker *worker;
	sigset_t blocked;
	sigset_t before;
	sigset_t seen;
	const struct tw_redis_worker_options options = {.context = &seen, .handler = see_mask};

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	worker = worker_start(&fixture->options, &options);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(worker_stats(worker).done == 1);
	worker_stop(worker);
	assert_true(sigismember(&seen, SIGUSR1));
	assert_false(sigismember(&seen, SIGTERM));
	assert_false(sigismember(&seen, SIGSEGV));
}

STORED(fixture, worker_that_was_not_stopped_may_be_destroyed)
{
	struct tw_redis_worker *worker;

	runs.takes = 100 * TW_MILLISECOND;
	worker = WORK(fixture);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(runs_running() == 1);
	worker_destroy(worker);
	assert_int_equal(ends_count_of("a", TW_REDIS_END_DONE), 1);
	assert_int_equal(tw_redis_worker_destroy(NULL), TW_OK);
}

/* This hook cancels the thread that calls it. */
static void report_and_cancel(void *context, const struct tw_redis_report *report)
{
	pthread_cancel(pthread_self());
}

STORED(fixture, worker_goes_on_after_its_thread_was_cancelled)
{
	struct tw_redis_worker_options options = {0};
	struct tw_redis_worker *worker;

	runs_attach(&options);
	options.report = report_and_cancel;
	worker = worker_start(&fixture->options, &options);
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(worker_stats(worker).done == 1);
	add_task(fixture->redis, "b", 0);
	WAIT_UNTIL(worker_stats(worker).done == 2);
}

static void *stop_with_patience(void *worker)
{
	return VALUE(tw_redis_worker_stop(worker, TW_MINUTE) + 1);
}

STORED(fixture, thread_that_is_cancelled_in_a_stop_holds_up_nobody)
{
	struct tw_redis_worker *worker = WORK(fixture);
	pthread_t thread;
	void *result;

	runs.gate_is_shut = true;
	add_task(fixture->redis, "a", 0);
	WAIT_UNTIL(runs_running() == 1);
	pthread_create(&thread, NULL, stop_with_patience, worker);
	wait_for(100 * TW_MILLISECOND);
	pthread_cancel(thread);
	/* The cancelled thread would have left the lock held. */
	assert_int_equal(worker_stats(worker).held, 1);
	runs_open_gate();
	pthread_join(thread, &result);
	assert_ptr_equal(result, VALUE(TW_OK + 1));
}

STORED(fixture, bad_worker_options_are_invalid)
{
	const struct tw_redis_worker_options bad[] = {{.lease = 99 * TW_MILLISECOND},
						      {.lease = 25 * TW_HOUR},
						      {.handlers = 257},
						      {.callbacks = 1025},
						      {.callbacks_per_host = 1025},
						      {.batch = 1001},
						      {.retry_first = -1},
						      {.retry_max = -1},
						      {.http_timeout = 25 * TW_HOUR},
						      {.connection_age = 999 * TW_MILLISECOND},
						      {.connection_age = 25 * TW_HOUR},
						      {.poll = -1},
						      {.ca_file = "/no/such/file"}};
	struct tw_redis_worker *worker = VALUE(1);
	struct tw_redis_error error;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tw_redis_worker_start(&worker, &fixture->options, &bad[i], &error),
				 TW_INVALID);
		assert_null(worker);
	}
	assert_int_equal(tw_redis_worker_stop(NULL, 0), TW_OK);
	worker = WORK(fixture);
	assert_int_equal(tw_redis_worker_stop(worker, -1), TW_INVALID);
}

FIXTURE_FILE
