/* SPDX-License-Identifier: MIT */
/*
 * The pool, seen through the calls: each task runs once; a slow one delays only itself; workers are
 * added for work that blocks, not for work that computes, and end when idle; a wait ends after the
 * tasks handed over before it.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/memory.h"
#include "support/recorder.h"
#include "support/stats.h"

#include <sched.h>
#include <semaphore.h>

enum { BATCH = 32 /* tasks that pass to the pool together */ };

struct pool;

struct task {
	struct pool *pool;
	void (*act)(struct task *); /* or NULL */
	sem_t gate;                 /* for block() */
	atomic_int times_run;
	atomic_int times_released;
};

struct pool {
	struct tw_wheel *wheel;
	size_t size;
	struct task *tasks;
	atomic_size_t begun; /* tasks that wait or compute */
	atomic_size_t done;
	atomic_bool flag;
	atomic_size_t done_before; /* before the marked task */
};

static void execute(void *context, const struct tw_task *tw_task)
{
	struct task *task = tw_task->value;

	if (task->act)
		task->act(task);
	atomic_fetch_add(&task->times_run, 1);
	atomic_fetch_add(&task->pool->done, 1);
}

static void release(void *context, const struct tw_task *tw_task, enum tw_reason reason)
{
	struct task *task = tw_task->value;

	atomic_fetch_add(&task->times_released, 1);
	atomic_fetch_add(&task->pool->done, 1);
}

/* Opens a wheel with `least` to `most` workers, for `size` tasks. */
static void pool_open(struct pool *pool, int least, int most, size_t size)
{
	struct tw_options options = {.clock = TW_CLOCK_MANUAL,
				     .workers = least,
				     .max_workers = most,
				     .release = release,
				     .name = "pool"};

	*pool = (struct pool){.size = size, .tasks = calloc(size, sizeof(*pool->tasks))};
	assert_non_null(pool->tasks);
	for (size_t i = 0; i < size; i++)
		pool->tasks[i].pool = pool;
	assert_status(tw_create(&pool->wheel, INTERVAL, 10, execute, &options), TW_OK);
}

/* Waits for all tasks; each must have run once. */
static void pool_close(struct pool *pool)
{
	settle_wheel(pool->wheel);
	for (size_t i = 0; i < pool->size; i++)
		if (atomic_load(&pool->tasks[i].times_run) != 1)
			fail_msg("task %zu ran %d times", i,
				 atomic_load(&pool->tasks[i].times_run));
	tw_destroy(pool->wheel);
	free(pool->tasks);
}

/* Sets tasks `first` to `end` - 1. */
static void set(struct pool *pool, size_t first, size_t end, tw_duration delay)
{
	for (size_t i = first; i < end; i++)
		assert_status(tw_set_timer(pool->wheel, &i, sizeof(i), &pool->tasks[i], delay),
			      TW_OK);
}

/* Hands these tasks over to the pool, together. */
static void submit(struct pool *pool, size_t first, size_t end)
{
	set(pool, first, end, INTERVAL);
	assert_status(tw_advance(pool->wheel, INTERVAL), TW_OK);
}

/* Hands these tasks over by a drain, in bulk. */
static void submit_bulk(struct pool *pool, size_t first, size_t end)
{
	set(pool, first, end, TW_HOUR);
	assert_status(tw_drain(pool->wheel, execute, NULL), TW_OK);
	assert_status(tw_flush(pool->wheel), TW_OK);
}

static uint64_t workers(struct pool *pool)
{
	return stats_of_wheel(pool->wheel).workers;
}

static uint64_t unfinished(struct pool *pool)
{
	return stats_of_wheel(pool->wheel).unfinished;
}

static size_t done(struct pool *pool)
{
	return atomic_load(&pool->done);
}

static void begin(struct task *task)
{
	atomic_fetch_add(&task->pool->begun, 1);
}

static void pass_gate(struct task *task)
{
	begin(task);
	while (sem_wait(&task->gate) != 0)
		continue;
}

/* Tasks `first` to `end` - 1 wait until they are let go. */
static void block(struct pool *pool, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		pool->tasks[i].act = pass_gate;
		sem_init(&pool->tasks[i].gate, 0, 0);
	}
}

static void let_go(struct pool *pool, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		sem_post(&pool->tasks[i].gate);
}

static void set_flag(struct task *task)
{
	atomic_store(&task->pool->flag, true);
}

/* Waits for the flag, for 20 seconds at most, and then gives up: the test goes on and fails. */
static void wait_for_flag(struct task *task)
{
	int64_t begun = wall_clock();

	begin(task);
	while (!atomic_load(&task->pool->flag) && wall_clock() - begun < 20 * TW_SECOND)
		give_way();
	if (!atomic_load(&task->pool->flag))
		atomic_fetch_add(&task->times_run, 1);
}

static void compute_until_flag(struct task *task)
{
	begin(task);
	while (!atomic_load(&task->pool->flag))
		continue;
}

static void note_when(struct task *task)
{
	atomic_store(&task->pool->done_before, done(task->pool));
}

/* ---- Each task runs once, and a slow one delays only itself ---- */

TEST(once, tasks_of_many_bursts_run_once_whether_due_or_drained)
{
	static const size_t bursts[] = {1, 2, BATCH - 1, BATCH, BATCH + 1, 100};

	for (int count = 1; count <= 8; count += count) {
		struct pool pool;
		size_t first = 0;

		pool_open(&pool, count, count, TEST_SHARE_OF(50000));
		for (size_t turn = 0; first < pool.size; turn++) {
			size_t end = first + bursts[turn % 6];

			end = end < pool.size ? end : pool.size;
			(turn % 4 == 3 ? submit_bulk : submit)(&pool, first, end);
			first = end;
		}
		pool_close(&pool);
	}
}

TEST(once, slow_task_delays_only_itself)
{
	for (size_t slow = 0; slow < BATCH; slow++) {
		struct pool pool;

		pool_open(&pool, 2, 2, BATCH);
		block(&pool, slow, slow + 1);
		submit(&pool, 0, BATCH);
		WAIT_UNTIL(done(&pool) == BATCH - 1 && unfinished(&pool) == 1);
		let_go(&pool, slow, slow + 1);
		pool_close(&pool);
	}
}

/* One pool does this repeatedly, and its workers sleep in between: all must be woken to help. */
TEST(once, rest_of_a_batch_is_done_while_all_workers_but_one_are_blocked)
{
	struct pool pool;

	pool_open(&pool, 8, 8, 100);
	for (size_t turn = 0; turn < TEST_SHARE_OF(300); turn++) {
		size_t stride = turn % 3 == 0 ? 1 : 1 + turn % 13;

		for (size_t i = 0; i < pool.size; i++) {
			pool.tasks[i].act = NULL;
			atomic_store(&pool.tasks[i].times_run, 0);
		}
		atomic_store(&pool.done, 0);
		for (size_t i = 0; i < 7; i++)
			block(&pool, i * stride, i * stride + 1);
		submit(&pool, 0, pool.size);
		WAIT_UNTIL(done(&pool) == pool.size - 7);
		for (size_t i = 0; i < 7; i++)
			let_go(&pool, i * stride, i * stride + 1);
		settle_wheel(pool.wheel);
	}
	pool_close(&pool);
}

/*
 * One worker is blocked by the first task of a batch. The other one, which is blocked elsewhere,
 * finds the rest of it beside a crowd of later batches.
 */
TEST(once, rest_of_a_batch_is_done_before_a_crowd_of_later_ones)
{
	for (int round = 0; round < 5; round++) {
		struct pool pool;

		pool_open(&pool, 2, 2, 5000);
		block(&pool, 0, 2);
		submit(&pool, 0, 1);
		WAIT_UNTIL(atomic_load(&pool.begun) == 1);
		pool.tasks[BATCH].act = note_when;
		submit(&pool, 1, BATCH + 1);
		WAIT_UNTIL(atomic_load(&pool.begun) == 2);
		submit(&pool, BATCH + 1, pool.size);
		let_go(&pool, 0, 1);
		WAIT_UNTIL(done(&pool) == pool.size - 1);
		assert_in_range(atomic_load(&pool.done_before), BATCH - 1, 4 * BATCH);
		let_go(&pool, 1, 2);
		pool_close(&pool);
	}
}

/* The first task of a batch waits for its last. The workers have been woken together: while one
 * lays the batch out, the other looks whether it may sleep. */
TEST(once, no_worker_leaves_while_a_task_may_need_it)
{
	int64_t begun = wall_clock();

	for (int turn = 0; turn < TEST_SHARE_OF(12000); turn++) {
		struct pool pool;

		pool_open(&pool, 2, 2, BATCH);
		pool.tasks[0].act = wait_for_flag;
		pool.tasks[BATCH - 1].act = set_flag;
		submit(&pool, 0, BATCH);
		pool_close(&pool);
		if (wall_clock() - begun > 3 * TW_SECOND)
			return;
	}
}

/* ---- Lanes ---- */

/* One worker is blocked while a crowd comes, and then one task, by these calls. Returns how many
 * tasks were done before that. */
static size_t overtaken_by(void (*crowd)(struct pool *, size_t, size_t),
			   void (*one)(struct pool *, size_t, size_t))
{
	struct pool pool;
	size_t before;

	pool_open(&pool, 1, 1, 5000);
	block(&pool, 0, 1);
	submit(&pool, 0, 1);
	WAIT_UNTIL(atomic_load(&pool.begun) == 1);
	pool.tasks[pool.size - 1].act = note_when;
	crowd(&pool, 1, pool.size - 1);
	one(&pool, pool.size - 1, pool.size);
	/* A drain goes on in the owner's turns. */
	WAIT_UNTIL(unfinished(&pool) == pool.size);
	let_go(&pool, 0, 1);
	settle_wheel(pool.wheel);
	before = atomic_load(&pool.done_before);
	pool_close(&pool);
	return before;
}

TEST(once, due_task_overtakes_a_drained_crowd)
{
	assert_in_range(overtaken_by(submit_bulk, submit), 1, 2 * BATCH);
}

TEST(once, drained_task_is_not_starved_by_a_crowd_of_due_ones)
{
	assert_in_range(overtaken_by(submit, submit_bulk), BATCH, 20 * BATCH);
}

/* ---- Growth ---- */

/* Some of the 40 tasks lie behind a blocked one. */
TEST(once, pool_grows_while_tasks_block_and_others_wait)
{
	struct pool pool;

	pool_open(&pool, 2, 64, 40);
	assert_int_equal(workers(&pool), 2);
	block(&pool, 0, 40);
	submit(&pool, 0, 40);
	WAIT_UNTIL(atomic_load(&pool.begun) == 40);
	/* A new one may be slower to start than the watcher is to look again. */
	assert_in_range(workers(&pool), 40, 48);
	let_go(&pool, 0, 40);
	pool_close(&pool);
}

TEST(once, pool_has_at_most_max_workers)
{
	for (int most = 1; most <= 4; most++) {
		struct pool pool;

		pool_open(&pool, 1, most, 12);
		block(&pool, 0, 12);
		submit(&pool, 0, 12);
		WAIT_UNTIL(atomic_load(&pool.begun) == (size_t)most);
		/* These are some more patiences. */
		wait_for(25 * TW_MILLISECOND);
		assert_int_equal(workers(&pool), most);
		assert_int_equal(atomic_load(&pool.begun), most);
		assert_int_equal(unfinished(&pool), 12);
		let_go(&pool, 0, 12);
		pool_close(&pool);
	}
}

/* The one worker that is not blocked lays out a batch, and is blocked by its first task. */
TEST(once, pool_grows_for_tasks_laid_out_while_the_watcher_looked)
{
	for (int turn = 0; turn < TEST_SHARE_OF(300); turn++) {
		struct pool pool;

		pool_open(&pool, 2, 4, 4);
		block(&pool, 0, 4);
		submit(&pool, 0, 1);
		WAIT_UNTIL(atomic_load(&pool.begun) == 1);
		submit(&pool, 1, 4);
		WAIT_UNTIL(atomic_load(&pool.begun) == 4);
		let_go(&pool, 0, 4);
		pool_close(&pool);
	}
}

/* The other one waits in no worker's batch. */
TEST(once, task_may_need_another_that_only_one_more_worker_can_do)
{
	struct pool pool;

	pool_open(&pool, 1, 2, 2);
	pool.tasks[0].act = wait_for_flag;
	pool.tasks[1].act = set_flag;
	submit(&pool, 0, 1);
	WAIT_UNTIL(atomic_load(&pool.begun) == 1);
	submit(&pool, 1, 2);
	pool_close(&pool);
}

static size_t processors(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (size_t)CPU_COUNT(&set);
}

static void compute_a_little(struct task *task)
{
	int64_t begun = wall_clock();

	while (wall_clock() - begun < 20 * TW_MICROSECOND)
		continue;
}

/* However busy the machine is with other programs: a thread without a processor is not blocked. The
 * thread sanitizer has locks of its own, at which a few may be. */
TEST(once, pool_grows_to_the_processors_for_short_computations)
{
	size_t most = processors() + (SANITIZER_THREAD ? 4 : 2);
	struct pool pool;

	pool_open(&pool, 2, 64, TEST_SHARE_OF(200000));
	for (size_t i = 0; i < pool.size; i++)
		pool.tasks[i].act = compute_a_little;
	submit(&pool, 0, pool.size);
	while (done(&pool) < pool.size) {
		assert_in_range(workers(&pool), 2, most);
		wait_for(TW_MILLISECOND);
	}
	pool_close(&pool);
}

/* Tasks that compute on and on get two workers more than there are processors. */
TEST(once, long_computations_hold_up_others_for_a_second_but_get_two_workers_more_at_most)
{
	size_t count = processors() + 2;
	struct pool pool;

	pool_open(&pool, 1, 64, count + 4);
	for (size_t i = 0; i < pool.size; i++)
		pool.tasks[i].act = compute_until_flag;
	submit(&pool, 0, pool.size);
	WAIT_UNTIL(atomic_load(&pool.begun) == count);
	wait_for(100 * TW_MILLISECOND);
	assert_int_equal(workers(&pool), count);
	atomic_store(&pool.flag, true);
	pool_close(&pool);
}

/* ---- Idle ends ---- */

enum { MANY_WORKERS = 64 };

/* Runs a task on each of MANY_WORKERS workers. */
static void have_many_workers(struct pool *pool)
{
	size_t first = done(pool);

	block(pool, first, first + MANY_WORKERS);
	submit(pool, first, first + MANY_WORKERS);
	WAIT_UNTIL(atomic_load(&pool->begun) == first + MANY_WORKERS);
	assert_int_equal(workers(pool), MANY_WORKERS);
	let_go(pool, first, first + MANY_WORKERS);
	settle_wheel(pool->wheel);
}

/* Counts of the ended workers must stay, also when another worker takes a slot over. */
static bool only_two_are_left(struct pool *pool)
{
	struct tw_stats stats = stats_of_wheel(pool->wheel);

	assert_int_equal(stats.task_duration.count, done(pool));
	assert_int_equal(stats.unfinished, 0);
	return stats.workers == 2;
}

/* Gives later threads stacks so large that libc keeps only a few for reuse, whatever `ulimit -s`
 * says. */
static void set_large_stacks(void)
{
	pthread_attr_t attributes;

	assert_int_equal(pthread_getattr_default_np(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, 8 << 20), 0);
	assert_int_equal(pthread_setattr_default_np(&attributes), 0);
	pthread_attr_destroy(&attributes);
}

/* Allows what the system keeps for ended threads. */
static bool memory_is_back(long resident, long mapped, long peak)
{
	return resident_memory() - resident <= 512 << 10 &&
	       mapped_memory() - mapped <= (peak - mapped) / 4;
}

TEST(once, workers_that_were_idle_for_long_end_and_their_counts_stay)
{
	struct pool pool;
	long resident;
	long mapped;
	long peak;

	set_large_stacks();
	pool_open(&pool, 2, MANY_WORKERS, 2 * MANY_WORKERS);
	resident = resident_memory();
	mapped = mapped_memory();
	have_many_workers(&pool);
	peak = mapped_memory();
	assert_true(TEST_HAS_SANITIZER || !memory_is_back(resident, mapped, peak));
	WAIT_UNTIL(only_two_are_left(&pool));
	WAIT_UNTIL(TEST_HAS_SANITIZER || TEST_IS_EMULATED ||
		   memory_is_back(resident, mapped, peak));
	have_many_workers(&pool);
	assert_int_equal(stats_of_wheel(pool.wheel).task_duration.count, pool.size);
	pool_close(&pool);
}

/* ---- Waits ---- */

enum { WAITERS = 5 };

static void wait_idle(void *wheel)
{
	(void)!tw_wait_idle(wheel);
}

static void waiter_start(struct blocked_call *waiter, struct pool *pool)
{
	blocked_call_start(waiter, wait_idle, pool->wheel);
	blocked_call_falls_asleep(waiter);
}

static void submit_blocked(struct pool *pool, size_t number)
{
	block(pool, number, number + 1);
	submit(pool, number, number + 1);
	WAIT_UNTIL(unfinished(pool) >= 1);
}

/* The one worker goes from a task that is waited for to the next one, which is not. */
TEST(once, wait_does_not_wait_for_tasks_handed_over_after_it)
{
	struct blocked_call waiters[WAITERS];
	struct pool pool;

	pool_open(&pool, 1, 1, 2);
	submit_blocked(&pool, 0);
	for (int i = 0; i < WAITERS; i++)
		waiter_start(&waiters[i], &pool);
	submit_blocked(&pool, 1);
	let_go(&pool, 0, 1);
	for (int i = 0; i < WAITERS; i++)
		blocked_call_end(&waiters[i]);
	assert_int_equal(unfinished(&pool), 1);
	let_go(&pool, 1, 2);
	pool_close(&pool);
}

/* A wait that comes during another one waits for what is handed over until that ends, no longer. */
TEST(once, wait_during_another_ends_after_what_came_until_that_ended)
{
	struct blocked_call waiters[2];
	struct pool pool;

	pool_open(&pool, 4, 4, 4);
	for (size_t i = 0; i < 2; i++) {
		submit_blocked(&pool, i);
		waiter_start(&waiters[i], &pool);
	}
	submit_blocked(&pool, 2);
	let_go(&pool, 0, 1);
	blocked_call_end(&waiters[0]);
	submit_blocked(&pool, 3);
	let_go(&pool, 1, 2);
	WAIT_UNTIL(unfinished(&pool) == 2);
	assert_false(blocked_call_has_returned(&waiters[1]));
	let_go(&pool, 2, 3);
	blocked_call_end(&waiters[1]);
	assert_int_equal(unfinished(&pool), 1);
	let_go(&pool, 3, 4);
	pool_close(&pool);
}

/* A task comes before each wait. All but the first are done before these waits can count theirs. */
TEST(once, any_number_may_wait_whose_tasks_end_in_any_order)
{
	enum { MANY = 100 };
	struct blocked_call waiters[MANY];
	struct pool pool;

	pool_open(&pool, 2, 2, MANY);
	for (size_t i = 0; i < MANY; i++) {
		submit_blocked(&pool, i);
		waiter_start(&waiters[i], &pool);
		if (i > 0 && i % 2 == 0)
			let_go(&pool, i - 1, i + 1);
	}
	assert_false(blocked_call_has_returned(&waiters[0]));
	let_go(&pool, 0, 1);
	let_go(&pool, MANY - 1, MANY);
	for (size_t i = 0; i < MANY; i++)
		blocked_call_end(&waiters[i]);
	pool_close(&pool);
}

struct stream {
	struct pool pool;
	atomic_size_t submitted;
	atomic_uint broken;
};

/* Waits repeatedly; all tasks handed over before must be done then. */
static void *wait_and_look(void *argument)
{
	struct stream *stream = argument;
	struct pool *pool = &stream->pool;
	size_t looked_at = 0;

	while (looked_at < pool->size) {
		size_t submitted = atomic_load(&stream->submitted);

		wait_idle(pool->wheel);
		for (; looked_at < submitted; looked_at++)
			if (atomic_load(&pool->tasks[looked_at].times_run) != 1)
				atomic_fetch_add(&stream->broken, 1);
	}
	return NULL;
}

TEST(once, several_may_wait_while_tasks_are_handed_over)
{
	struct stream stream = {0};
	pthread_t waiters[WAITERS];
	size_t end;

	pool_open(&stream.pool, 2, 2, TEST_SHARE_OF(50000));
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&waiters[i], NULL, wait_and_look, &stream), 0);
	for (size_t first = 0; first < stream.pool.size; first = end) {
		end = first + 7 < stream.pool.size ? first + 7 : stream.pool.size;
		submit(&stream.pool, first, end);
		atomic_store(&stream.submitted, end);
	}
	for (int i = 0; i < WAITERS; i++)
		pthread_join(waiters[i], NULL);
	assert_int_equal(atomic_load(&stream.broken), 0);
	pool_close(&stream.pool);
}

/* ---- A stop ---- */

TEST(once, stop_while_all_workers_are_busy_releases_the_tasks_behind)
{
	struct pool pool;
	int runs = 0;

	pool_open(&pool, 2, 2, 100);
	block(&pool, 0, pool.size);
	submit(&pool, 0, pool.size);
	WAIT_UNTIL(atomic_load(&pool.begun) == 2);
	assert_status(tw_stop(pool.wheel), TW_OK);
	let_go(&pool, 0, pool.size);
	settle_wheel(pool.wheel);
	for (size_t i = 0; i < pool.size; i++) {
		runs += atomic_load(&pool.tasks[i].times_run);
		assert_int_equal(atomic_load(&pool.tasks[i].times_run) +
					 atomic_load(&pool.tasks[i].times_released),
				 1);
	}
	assert_int_equal(runs, 2);
	assert_int_equal(stats_of_wheel(pool.wheel).stopped, pool.size - 2);
	pool.size = 0;
	pool_close(&pool);
}
