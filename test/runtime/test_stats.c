/* SPDX-License-Identifier: MIT */
/* The wheel reports its counts, percentiles, the longest task and the names of its threads. */
#include "support/test.h"

#include "support/script.h"
#include "support/stats.h"

#include <dirent.h>
#include <semaphore.h>

/* The wheel's tasks, releases and drain functions do what the value says: a struct job, or NULL. */
static void run_job(void *argument);

static void execute(void *context, const struct tw_task *task)
{
	run_job(task->value);
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	run_job(task->value);
}

static void drain(void *context, const struct tw_task *task)
{
	run_job(task->value);
}

static struct tw_wheel *open_wheel_with(const struct tw_options *options)
{
	struct tw_wheel *wheel;

	assert_status(tw_create(&wheel, INTERVAL, 10, execute, options), TW_OK);
	return wheel;
}

static struct tw_options options_of(const struct variant *variant)
{
	struct tw_options options = recorder_options(NULL, variant);

	options.release = release;
	return options;
}

static struct tw_wheel *open_wheel(const struct variant *variant)
{
	struct tw_options options = options_of(variant);

	return open_wheel_with(&options);
}

/* WHEEL(kind, name) { ... } is a case with a `wheel` whose tasks are jobs. */
#define WHEEL(kind, name) TEST_GIVEN(kind, name, struct tw_wheel *wheel, wheel_give(*state, name))

static void wheel_give(const struct variant *variant, void (*run)(struct tw_wheel *))
{
	struct tw_wheel *wheel = open_wheel(variant);

	run(wheel);
	tw_destroy(wheel);
}

static void set(struct tw_wheel *wheel, const char *key, void *value, tw_duration delay)
{
	assert_status(tw_set_timer(wheel, key, strlen(key), value, delay), TW_OK);
}

static struct tw_timer after(struct tw_wheel *wheel, tw_duration delay, void *argument)
{
	struct tw_timer timer;

	assert_status(tw_after_func(wheel, delay, run_job, argument, &timer), TW_OK);
	return timer;
}

/* Advances tick by tick, and waits after each until its tasks have ended. */
static void pass(struct tw_wheel *wheel, int ticks)
{
	for (int i = 0; i < ticks; i++) {
		assert_status(tw_advance(wheel, INTERVAL), TW_OK);
		settle_wheel(wheel);
	}
}

/* A task does this job. */
struct job {
	int64_t busy; /* nanoseconds */
	sem_t *gate;  /* NULL, or waited for */
	atomic_bool *begun;
};

static void busy_for(int64_t time)
{
	int64_t start = wall_clock();

	while (wall_clock() - start < time)
		continue;
}

static void run_job(void *argument)
{
	struct job *job = argument;

	if (!job)
		return;
	if (job->begun)
		atomic_store(job->begun, true);
	if (job->gate)
		while (sem_wait(job->gate) != 0)
			continue;
	busy_for(job->busy);
}

WHEEL(everywhere, wheel_that_did_nothing_has_nothing_to_tell)
{
	static const struct tw_percentiles none;
	struct tw_stats stats = stats_of_wheel(wheel);

	assert_counts(wheel, 0);
	assert_memory_equal(&stats.lateness, &none, sizeof(none));
	assert_memory_equal(&stats.task_duration, &none, sizeof(none));
}

/* Eleven timers: one each is replaced, moved, removed, stopped, moved to now; some fire. */
#define LIFE                                                                             \
	"set fired 1; set now 5; set a1 5; set m 5; set left 50; set r 50; set also 50;" \
	"set a2 50; move m 7; move now 1ns; move unknown 7; remove r; remove unknown;"   \
	"after p 2; after q 50; stop q; every s 3 3; after t 50;"                        \
	"idle -> now@0 a1:replaced r:removed; pass 3 -> fired@1 p@2 s@3;"

SCRIPT(everywhere, counts_are_exact,
       LIFE "counts = set 11 replaced 1 moved 2 removed 2 fired 4 pending 6 begun 4 ended 4")
SCRIPT(everywhere, drained_and_stopped_timers_are_counted_as_such,
       LIFE "drain -> a2:drained m:drained left:drained also:drained s:drained t:drained;"
	    "set b 50; set c 50; after u 50; flush; counts = set 14 replaced 1 moved 2 removed 2"
	    " fired 4 drained 6 pending 3 begun 4 ended 4;"
	    "stop -> b:stopped c:stopped u:stopped; counts = set 14 replaced 1 moved 2 removed 2"
	    " fired 4 drained 6 stopped 3 begun 4 ended 4")

/* Tasks wait behind one that blocks the only worker. */
SCRIPT(pool, tasks_handed_over_and_not_begun_have_not_fired,
       "hold a; set a 1; clock 1; reached a; set b 1; after p 1; after q 1; clock 1;"
       "counts = set 4 fired 4 unfinished 4 running 1 begun 1; stop q; stop; go a;"
       "idle -> a@1 b:stopped p:stopped;"
       "counts = set 4 removed 1 fired 1 stopped 2 begun 1 ended 1",
       .workers = 1)
SCRIPT(pool, function_that_is_being_called_is_running,
       "hold a; set a 1; clock 1; reached a;"
       "counts = set 1 fired 1 unfinished 1 running 1 begun 1; go a; idle -> a@1;"
       "hold p; after p 1; clock 1; reached p;"
       "counts = set 2 fired 2 unfinished 1 running 1 begun 2 ended 1; go p; idle -> p@2;"
       "hold b; set b 1; drain; flush; reached b;"
       "counts = set 3 fired 2 drained 1 unfinished 1 running 1 begun 2 ended 2; go b;"
       "idle -> b:drained; hold c; set c 1; remove c; flush; reached c;"
       "counts = set 4 removed 1 fired 2 drained 1 unfinished 1 running 1 begun 2 ended 2; go c;"
       "idle -> c:removed; counts = set 4 removed 1 fired 2 drained 1 begun 2 ended 2")
SCRIPT(pool, all_workers_are_counted_as_running,
       "hold p; hold q; after p 1; after q 1; clock 1; reached p; reached q;"
       "counts = set 2 fired 2 unfinished 2 running 2 begun 2; go p; go q; idle -> p@1 q@1;"
       "counts = set 2 fired 2 begun 2 ended 2",
       .workers = 3)

TEST(everywhere, releases_are_not_counted_where_there_is_no_function_for_them)
{
	struct tw_options options = options_of(*state);
	struct tw_wheel *wheel;

	options.release = NULL;
	wheel = open_wheel_with(&options);
	set(wheel, "replaced", NULL, INTERVAL * 5);
	set(wheel, "replaced", NULL, INTERVAL * 5);
	set(wheel, "removed", NULL, INTERVAL * 5);
	assert_status(tw_remove_timer(wheel, "removed", 7), TW_OK);
	settle_wheel(wheel);
	assert_status(tw_drain(wheel, drain, NULL), TW_OK);
	settle_wheel(wheel);
	set(wheel, "stopped", NULL, INTERVAL);
	assert_status(tw_stop(wheel), TW_OK);
	settle_wheel(wheel);
	assert_counts(wheel, .set = 3, .replaced = 1, .removed = 1, .drained = 1, .stopped = 1);
	tw_destroy(wheel);
}

/* Allows 1 in 32. */
static void assert_near(tw_duration reported, tw_duration time)
{
	if (llabs(reported - time) > time / 32)
		fail_msg("%lld was reported as %lld", (long long)time, (long long)reported);
}

enum { LATE_TIMERS = 1000 };

/* Returns the n-th shortest lateness. */
static tw_duration lateness_of(int64_t n)
{
	return n * n * 977 + n;
}

static void set_late(struct tw_wheel *wheel, int64_t n)
{
	after(wheel, -lateness_of(n), NULL);
}

WHEEL(everywhere, latenesses_are_reported_as_they_were)
{
	struct tw_percentiles reported;

	pass(wheel, 1000);
	/* Each has its own, in mixed order: 7 and 1000 have no common divisor. */
	for (int64_t i = 0; i < LATE_TIMERS; i++)
		set_late(wheel, i * 7 % LATE_TIMERS + 1);
	assert_status(tw_advance(wheel, 0), TW_OK);
	settle_wheel(wheel);
	reported = stats_of_wheel(wheel).lateness;
	assert_int_equal(reported.count, LATE_TIMERS);
	assert_near(reported.p50, lateness_of(500));
	assert_near(reported.p90, lateness_of(900));
	assert_near(reported.p99, lateness_of(990));
	assert_int_equal(reported.max, lateness_of(1000));
}

WHEEL(ordered, task_on_time_has_no_lateness)
{
	struct tw_percentiles reported;

	set(wheel, "key", NULL, INTERVAL);
	after(wheel, INTERVAL * 2, NULL);
	pass(wheel, 2);
	reported = stats_of_wheel(wheel).lateness;
	assert_int_equal(reported.count, 2);
	assert_int_equal(reported.p99, 0);
	assert_int_equal(reported.max, 0);
}

WHEEL(everywhere, durations_of_tasks_are_real_time)
{
	struct job job = {.busy = 2 * TW_MILLISECOND};
	int64_t start = wall_clock();
	struct tw_percentiles reported;
	tw_duration took;

	set(wheel, "busy", &job, INTERVAL);
	after(wheel, INTERVAL, &job);
	pass(wheel, 1);
	took = wall_clock() - start;
	reported = stats_of_wheel(wheel).task_duration;
	assert_int_equal(reported.count, 2);
	assert_true(reported.p50 >= job.busy - job.busy / 32);
	assert_true(reported.max >= job.busy);
	assert_true(reported.max <= took);
	/* Releases and drains are no tasks. */
	set(wheel, "removed", &job, INTERVAL);
	assert_status(tw_remove_timer(wheel, "removed", 7), TW_OK);
	settle_wheel(wheel);
	assert_int_equal(stats_of_wheel(wheel).task_duration.count, 2);
}

struct reader {
	struct tw_wheel *wheel;
	atomic_bool ended;
	unsigned broken;
};

static void *read_stats(void *argument)
{
	struct reader *reader = argument;
	struct tw_stats last = {0};

	while (!atomic_load(&reader->ended)) {
		struct tw_stats stats;

		if (tw_get_stats(reader->wheel, &stats) != TW_OK)
			reader->broken++;
		if (stats.lateness.p50 > stats.lateness.p99 ||
		    stats.lateness.p99 > stats.lateness.max)
			reader->broken++;
		if (stats.task_duration.count < last.task_duration.count ||
		    stats.fired > stats.set || stats.running > 2)
			reader->broken++;
		last = stats;
	}
	return NULL;
}

TEST(everywhere, statistics_may_be_read_at_any_time)
{
	struct reader reader = {0};
	int count = TEST_SHARE_OF(20000);
	pthread_t thread;

	reader.wheel = open_wheel(*state);
	assert_int_equal(pthread_create(&thread, NULL, read_stats, &reader), 0);
	for (int i = 0; i < count; i++) {
		assert_status(tw_set_timer(reader.wheel, &i, sizeof(i), NULL, INTERVAL), TW_OK);
		if (i % 100 == 0)
			assert_status(tw_advance(reader.wheel, INTERVAL), TW_OK);
	}
	pass(reader.wheel, 1);
	atomic_store(&reader.ended, true);
	pthread_join(thread, NULL);
	assert_int_equal(reader.broken, 0);
	assert_int_equal(stats_of_wheel(reader.wheel).fired, count);
	assert_int_equal(stats_of_wheel(reader.wheel).task_duration.count, count);
	tw_destroy(reader.wheel);
}

static void assert_nothing_runs(struct tw_wheel *wheel)
{
	static const struct tw_running none;
	struct tw_stats stats = stats_of_wheel(wheel);

	assert_int_equal(stats.running, 0);
	assert_memory_equal(&stats.longest_running, &none, sizeof(none));
}

static void note_stats(void *context, const struct tw_task *task)
{
	busy_for(TW_MILLISECOND);
	assert_status(tw_get_stats(task->wheel, task->value), TW_OK);
}

static void note_stats_by_handle(void *stats)
{
	note_stats(NULL, tw_current_task());
}

TEST(everywhere, longest_task_is_known_by_its_key_or_handle)
{
	static const char *const keys[] = {"k", "a key of 24 bytes, whole",
					   "a key of 25 bytes or more"};
	struct tw_options options = options_of(*state);
	struct tw_running running;
	struct tw_wheel *wheel;
	struct tw_timer timer;
	struct tw_stats stats;

	assert_status(tw_create(&wheel, INTERVAL, 10, note_stats, &options), TW_OK);
	for (size_t i = 0; i < 3; i++) {
		char whole[TW_RUNNING_KEY_SIZE + 1] = "";

		set(wheel, keys[i], &stats, INTERVAL);
		pass(wheel, 1);
		running = stats.longest_running;
		memcpy(whole, running.key, sizeof(running.key));
		assert_int_equal(stats.running, 1);
		assert_in_range(running.took, TW_MILLISECOND, TW_HOUR);
		assert_int_equal(running.key_size, strlen(keys[i]));
		assert_int_equal(strncmp(whole, keys[i], TW_RUNNING_KEY_SIZE), 0);
		assert_int_equal(running.timer.id, 0);
	}
	assert_status(tw_after_func(wheel, INTERVAL, note_stats_by_handle, &stats, &timer), TW_OK);
	pass(wheel, 1);
	running = stats.longest_running;
	assert_true(running.took >= TW_MILLISECOND);
	assert_int_equal(running.timer.id, timer.id);
	assert_int_equal(running.key_size, 0);
	assert_int_equal(running.key[0], 0);
	assert_nothing_runs(wheel);
	tw_destroy(wheel);
}

/* Two tasks hang, and the first one ends. */
TEST(pool, longest_task_is_the_one_that_began_first)
{
	struct tw_wheel *wheel = open_wheel(*state);
	atomic_bool begun[2] = {false, false};
	struct job jobs[2];
	sem_t gates[2];

	for (int i = 0; i < 2; i++) {
		sem_init(&gates[i], 0, 0);
		jobs[i] = (struct job){.gate = &gates[i], .begun = &begun[i]};
		set(wheel, i == 0 ? "first" : "second", &jobs[i], INTERVAL);
		assert_status(tw_advance(wheel, INTERVAL), TW_OK);
		WAIT_UNTIL(atomic_load(&begun[i]));
	}
	assert_int_equal(stats_of_wheel(wheel).running, 2);
	assert_string_equal(stats_of_wheel(wheel).longest_running.key, "first");
	sem_post(&gates[0]);
	WAIT_UNTIL(stats_of_wheel(wheel).running == 1);
	assert_string_equal(stats_of_wheel(wheel).longest_running.key, "second");
	sem_post(&gates[1]);
	settle_wheel(wheel);
	assert_nothing_runs(wheel);
	tw_destroy(wheel);
	sem_destroy(&gates[0]);
	sem_destroy(&gates[1]);
}

/* Counts this process's threads that have the name and block these signals (a bit for each). */
static int threads_that_block(uint64_t signals, const char *name)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		char path[300];
		char line[200];
		char found[32] = "";
		uint64_t blocked = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			(void)(sscanf(line, "Name:\t%31[^\n]", found) == 1 ||
			       sscanf(line, "SigBlk:\t%" SCNx64, &blocked) == 1);
		if (file)
			fclose(file);
		count += !strcmp(found, name) && (blocked & signals) == signals;
	}
	closedir(directory);
	return count;
}

static int threads_named(const char *name)
{
	return threads_that_block(0, name);
}

/* A program's handler must not run on a thread that runs nothing of the program. */
TEST(threads, threads_that_run_no_task_leave_signals_to_the_program)
{
	const uint64_t signals = 1U << (SIGTERM - 1) | 1U << (SIGUSR1 - 1) | 1U << (SIGINT - 1);
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
				     SIGTRAP, SIGSYS, SIGABRT, SIGPROF};
	struct tw_options options = options_of(*state);
	struct tw_wheel *wheel;
	sigset_t before;

	if (TEST_IS_EMULATED)
		TEST_SKIP("an emulator keeps signal masks to itself");
	options.name = "quiet";
	options.max_workers = 3;
	wheel = open_wheel_with(&options);
	WAIT_UNTIL(threads_that_block(signals, "quiet-owner") == 1);
	WAIT_UNTIL(threads_that_block(signals, "quiet-watch") == 1);
	/* A thread's own faults and the profiler still reach the program. */
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		assert_int_equal(threads_that_block(1U << (faults[i] - 1), "quiet-owner"), 0);
		assert_int_equal(threads_that_block(1U << (faults[i] - 1), "quiet-watch"), 0);
	}
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
	assert_false(sigismember(&before, SIGTERM));
	tw_destroy(wheel);
}

TEST(threads, threads_have_names_of_fifteen_bytes_that_keep_their_role)
{
	struct tw_options options = options_of(*state);
	struct tw_wheel *named;
	struct tw_wheel *unnamed = open_wheel(*state);

	options.name = "a_name_of_many_bytes";
	options.max_workers = 3;
	named = open_wheel_with(&options);
	WAIT_UNTIL(threads_named("a_name_of-owner") == 1);
	WAIT_UNTIL(threads_named("a_name_of-watch") == 1);
	WAIT_UNTIL(threads_named("a_name_of_man-0") == 1);
	WAIT_UNTIL(threads_named("a_name_of_man-1") == 1);
	WAIT_UNTIL(threads_named("tw-owner") == 1);
	WAIT_UNTIL(threads_named("tw-0") == 1);
	assert_int_equal(threads_named("tw-watch"), 0);
	tw_destroy(named);
	/* A joined thread may be listed for another moment. */
	WAIT_UNTIL(threads_named("a_name_of-owner") == 0);
	WAIT_UNTIL(threads_named("a_name_of_man-0") == 0);
	tw_destroy(unnamed);
}
