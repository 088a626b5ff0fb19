/* SPDX-License-Identifier: MIT */
/*
 * The worker pool is tested alone. Each job is done once; a slow one delays only its worker; a wait
 * ends after the jobs submitted before it, and waits for no others.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/memory.h"

#include <semaphore.h>

#include "base/processor.h"
#include "runtime/worker_pool.h"

struct fixture;

struct task {
	struct fixture *fixture;
	atomic_int times_run;
	atomic_int times_released;
	void (*run)(struct task *); /* or NULL */
	sem_t gate;                 /* block() waits at it */
};

struct fixture {
	struct clock clock;
	struct timer_store store;
	struct handle_table handles;
	struct alarm_table alarms;
	struct limit places;
	struct fork_guard guard;
	struct job_target target;
	struct worker_pool *pool;
	struct job_batches batches;
	atomic_size_t begun; /* tasks that wait at a gate */
	atomic_size_t done;
	atomic_bool flag;
	atomic_size_t done_before; /* before the marked job */
	size_t size;
	struct task *tasks;
};

static void execute(void *context, const struct tw_task *tw_task)
{
	struct fixture *fixture = context;
	struct task *task = tw_task->value;

	if (task->run)
		task->run(task);
	atomic_fetch_add(&task->times_run, 1);
	atomic_fetch_add(&fixture->done, 1);
}

static void release(void *context, const struct tw_task *tw_task, enum tw_reason reason)
{
	struct fixture *fixture = context;
	struct task *task = tw_task->value;

	atomic_fetch_add(&task->times_released, 1 + (int)reason * 100);
	atomic_fetch_add(&fixture->done, 1);
}

/* Opens a pool with `workers` workers at the start, and at most `most`. */
static void fixture_open_growing(struct fixture *fixture, int workers, int most, size_t size)
{
	struct tw_options options = {
		.workers = workers, .max_workers = most, .patience_for_worker = 5 * TW_MILLISECOND};

	*fixture = (struct fixture){.size = size};
	assert_true(clock_init(&fixture->clock, TW_CLOCK_MANUAL, 1));
	timer_store_init(&fixture->store);
	assert_true(handle_table_init(&fixture->handles));
	assert_true(fork_guard_open(&fixture->guard));
	fixture->target = (struct job_target){.name = "pool",
					      .guard = &fixture->guard,
					      .clock = &fixture->clock,
					      .store = &fixture->store,
					      .handles = &fixture->handles,
					      .alarms = &fixture->alarms,
					      .places = &fixture->places,
					      .execute = execute,
					      .release = release,
					      .context = fixture};
	fixture->tasks = calloc(size, sizeof(*fixture->tasks));
	assert_non_null(fixture->tasks);
	fixture->pool = worker_pool_create(&options, &fixture->target);
	assert_non_null(fixture->pool);
}

static void fixture_open(struct fixture *fixture, int workers, size_t size)
{
	fixture_open_growing(fixture, workers, workers, size);
}

static struct tw_stats stats_of(struct fixture *fixture)
{
	struct tw_stats stats = {0};

	worker_pool_count(fixture->pool, &stats);
	return stats;
}

static void fixture_close(struct fixture *fixture)
{
	if (fixture->pool)
		worker_pool_destroy(fixture->pool);
	timer_store_destroy(&fixture->store);
	handle_table_destroy(&fixture->handles);
	free(fixture->tasks);
}

static void add(struct fixture *fixture, size_t number)
{
	struct keyed_timer *keyed = timer_new(&fixture->store, &number, sizeof(number), 0);
	struct timer *timer;

	assert_non_null(keyed);
	timer = &keyed->timer;
	fixture->tasks[number].fixture = fixture;
	timer->value = &fixture->tasks[number];
	timer->deadline = 0;
	timer->job = TIMER_RUN;
	job_batches_add(&fixture->batches, timer);
}

static void add_all(struct fixture *fixture)
{
	for (size_t number = 0; number < fixture->size; number++)
		add(fixture, number);
}

static void submit_to(struct fixture *fixture, enum job_lane lane)
{
	worker_pool_submit(fixture->pool, lane, &fixture->batches);
	assert_int_equal(fixture->batches.count, 0);
	assert_null(fixture->batches.first);
}

static void submit(struct fixture *fixture)
{
	submit_to(fixture, JOB_LANE_PROMPT);
}

static void submit_one(struct fixture *fixture, size_t number)
{
	add(fixture, number);
	submit(fixture);
}

static size_t done(struct fixture *fixture)
{
	return atomic_load(&fixture->done);
}

static void assert_each_was_run_once(struct fixture *fixture)
{
	assert_int_equal(done(fixture), fixture->size);
	for (size_t number = 0; number < fixture->size; number++)
		if (atomic_load(&fixture->tasks[number].times_run) != 1)
			fail_msg("job %zu was run %d times", number,
				 atomic_load(&fixture->tasks[number].times_run));
}

static void pass_gate(struct task *task)
{
	atomic_store(&task->fixture->flag, true);
	atomic_fetch_add(&task->fixture->begun, 1);
	while (sem_wait(&task->gate) != 0)
		continue;
}

/* The task waits until it is released. */
static void block(struct fixture *fixture, size_t number)
{
	fixture->tasks[number].run = pass_gate;
	sem_init(&fixture->tasks[number].gate, 0, 0);
}

static void let_go(struct fixture *fixture, size_t number)
{
	sem_post(&fixture->tasks[number].gate);
}

static void let_all_go(struct fixture *fixture)
{
	for (size_t number = 0; number < fixture->size; number++)
		let_go(fixture, number);
	WAIT_UNTIL(stats_of(fixture).unfinished == 0);
}

static void fixture_open_blocked(struct fixture *fixture, int workers, size_t size, size_t number)
{
	fixture_open(fixture, workers, size);
	block(fixture, number);
}

/* Waits for all jobs; each must have run once. */
static void finish(struct fixture *fixture)
{
	worker_pool_wait(fixture->pool);
	assert_each_was_run_once(fixture);
	fixture_close(fixture);
}

TEST(once, jobs_of_many_submissions_to_both_lanes_are_done_once)
{
	static const int worker_counts[] = {1, 2, 8};
	static const size_t batch_sizes[] = {1, 2, 31, 32, 33, 100};

	for (size_t i = 0; i < 3; i++) {
		struct fixture fixture;

		fixture_open(&fixture, worker_counts[i], TEST_SHARE_OF(100000));
		for (size_t number = 0, batch = 0; number < fixture.size; batch++) {
			size_t end = number + batch_sizes[batch % 6];

			for (; number < end && number < fixture.size; number++)
				add(&fixture, number);
			submit_to(&fixture, batch % 4 == 3 ? JOB_LANE_BULK : JOB_LANE_PROMPT);
		}
		finish(&fixture);
	}
}

TEST(once, slow_job_holds_up_nothing_but_its_worker)
{
	for (size_t slow = 0; slow < WORKER_BATCH; slow++) {
		struct fixture fixture;

		fixture_open_blocked(&fixture, 2, WORKER_BATCH, slow);
		add_all(&fixture);
		submit(&fixture);
		WAIT_UNTIL(done(&fixture) == WORKER_BATCH - 1);
		/* A job is done a little before it counts as finished. */
		WAIT_UNTIL(stats_of(&fixture).unfinished == 1);
		assert_int_equal(atomic_load(&fixture.tasks[slow].times_run), 0);
		let_go(&fixture, slow);
		finish(&fixture);
	}
}

/* Runs `jobs` jobs on the fixture's 8 workers. One every `stride` jobs blocks, until 7 workers are
 * blocked. */
static void block_7_workers(struct fixture *fixture, size_t jobs, size_t stride)
{
	fixture->size = jobs;
	memset(fixture->tasks, 0, jobs * sizeof(*fixture->tasks));
	atomic_store(&fixture->done, 0);
	for (size_t i = 0; i < 7; i++)
		block(fixture, i * stride);
	add_all(fixture);
	submit(fixture);
	WAIT_UNTIL(done(fixture) == jobs - 7);
	for (size_t i = 0; i < 7; i++)
		let_go(fixture, i * stride);
	worker_pool_wait(fixture->pool);
	assert_each_was_run_once(fixture);
}

/* One pool does this repeatedly, and its workers sleep in between: all must be woken to help. */
TEST(once, rest_of_a_batch_is_done_while_all_workers_but_one_are_blocked)
{
	struct fixture fixture;

	fixture_open(&fixture, 8, 100);
	for (size_t turn = 0; turn < TEST_SHARE_OF(100); turn++) {
		block_7_workers(&fixture, WORKER_BATCH, 1);
		block_7_workers(&fixture, WORKER_BATCH, 1 + turn % 5);
		block_7_workers(&fixture, 100, 1 + turn % 16);
	}
	fixture_close(&fixture);
}

static void note_when(struct task *task)
{
	atomic_store(&task->fixture->done_before, done(task->fixture));
}

/*
 * One worker is blocked by the first job of a batch; the other looks at the rest of it only once
 * there is a crowd of later batches.
 */
static void rest_of_a_batch_comes_before_a_crowd(void)
{
	struct fixture fixture;

	fixture_open(&fixture, 2, 5000);
	for (size_t i = 0; i < 2; i++)
		block(&fixture, i);
	submit_one(&fixture, 0);
	WAIT_UNTIL(atomic_exchange(&fixture.flag, false));
	fixture.tasks[WORKER_BATCH].run = note_when;
	for (size_t number = 1; number <= WORKER_BATCH; number++)
		add(&fixture, number);
	submit(&fixture);
	WAIT_UNTIL(atomic_load(&fixture.flag));
	for (size_t number = WORKER_BATCH + 1; number < fixture.size; number++)
		add(&fixture, number);
	submit(&fixture);
	let_go(&fixture, 0);
	WAIT_UNTIL(done(&fixture) == fixture.size - 1);
	assert_in_range(atomic_load(&fixture.done_before), WORKER_BATCH - 1, 3 * WORKER_BATCH);
	let_go(&fixture, 1);
	finish(&fixture);
}

/* Either worker may be the blocked one. */
TEST(once, rest_of_a_batch_is_done_before_a_crowd_of_later_ones)
{
	for (int round = 0; round < 10; round++)
		rest_of_a_batch_comes_before_a_crowd();
}

/* Submits all the fixture's jobs at once; each blocks. */
static void block_all(struct fixture *fixture)
{
	for (size_t number = 0; number < fixture->size; number++)
		block(fixture, number);
	add_all(fixture);
	submit(fixture);
}

/* Waits for the flag, for 20 seconds at most, and then ends the wait so that the test goes on. */
static void wait_for_flag(struct task *task)
{
	int64_t start = wall_clock();

	while (!atomic_load(&task->fixture->flag)) {
		if (wall_clock() - start > INT64_C(20000000000))
			return;
		give_way();
	}
}

static void set_flag(struct task *task)
{
	atomic_store(&task->fixture->flag, true);
}

/* Some of the 30 jobs lie behind a blocked one on a batch. */
TEST(once, pool_grows_while_all_workers_are_blocked_and_jobs_wait)
{
	struct fixture fixture;

	fixture_open_growing(&fixture, 2, 64, 40);
	assert_int_equal(stats_of(&fixture).workers, 2);
	block_all(&fixture);
	WAIT_UNTIL(atomic_load(&fixture.begun) == 40);
	/* A worker of the first two may have been asleep for all of that time. */
	assert_in_range(stats_of(&fixture).workers, 40, 42);
	let_all_go(&fixture);
	finish(&fixture);
}

/* The one worker that is not blocked lays out a batch, and is blocked by its first job. */
TEST(once, pool_grows_for_jobs_laid_out_while_it_looked)
{
	size_t turns = TEST_SHARE_OF(300);

	for (size_t turn = 0; turn < turns; turn++) {
		struct fixture fixture;

		fixture_open_growing(&fixture, 2, 4, 4);
		for (size_t number = 0; number < 4; number++)
			block(&fixture, number);
		submit_one(&fixture, 0);
		WAIT_UNTIL(atomic_load(&fixture.begun) == 1);
		for (size_t number = 1; number < 4; number++)
			add(&fixture, number);
		submit(&fixture);
		WAIT_UNTIL(atomic_load(&fixture.begun) == 4);
		let_all_go(&fixture);
		finish(&fixture);
	}
}

TEST(once, pool_has_at_most_max_workers)
{
	for (int most = 1; most <= 4; most++) {
		struct fixture fixture;

		fixture_open_growing(&fixture, 1, most, 40);
		block_all(&fixture);
		WAIT_UNTIL(atomic_load(&fixture.begun) == (size_t)most);
		/* This is another five patiences. */
		wait_for(25000000);
		assert_int_equal(stats_of(&fixture).workers, most);
		let_all_go(&fixture);
		assert_each_was_run_once(&fixture);
		fixture_close(&fixture);
	}
}

TEST(once, job_may_need_another_that_only_one_more_worker_can_do)
{
	struct fixture fixture;

	fixture_open_growing(&fixture, 1, 2, 2);
	fixture.tasks[0].run = wait_for_flag;
	fixture.tasks[1].run = set_flag;
	add_all(&fixture);
	submit(&fixture);
	worker_pool_destroy(fixture.pool);
	fixture.pool = NULL;
	assert_true(atomic_load(&fixture.flag));
	assert_each_was_run_once(&fixture);
	fixture_close(&fixture);
}

static void compute_until_flag(struct task *task)
{
	atomic_fetch_add(&task->fixture->begun, 1);
	while (!atomic_load(&task->fixture->flag))
		continue;
}

enum { ROOM_TO_GROW = 16 };

/* Returns the processor time that this program could have had and has not. */
static int64_t processor_time_lacked(int processors)
{
	return wall_clock() * processors - clock_read_real(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * The pool has as many workers as processors, and jobs that compute for 30 patiences. Returns
 * whether it started ten others, although the workers had all but 15 % of a processor. To start one
 * they must have lacked nearly half of one for a patience.
 */
static bool pool_that_computes_grows(void)
{
	int processors = (int)processors_available();
	struct fixture fixture;
	int64_t lacked;
	uint64_t workers;

	fixture_open_growing(&fixture, processors, processors + ROOM_TO_GROW,
			     (size_t)processors + ROOM_TO_GROW);
	for (size_t number = 0; number < fixture.size; number++)
		fixture.tasks[number].run = compute_until_flag;
	add_all(&fixture);
	lacked = processor_time_lacked(processors);
	submit(&fixture);
	wait_for(150 * TW_MILLISECOND);
	workers = stats_of(&fixture).workers;
	lacked = processor_time_lacked(processors) - lacked;
	atomic_store(&fixture.flag, true);
	finish(&fixture);
	return workers > (uint64_t)processors + 10 && lacked < 22 * TW_MILLISECOND;
}

/* A machine may have halted all threads for a moment, as if they were blocked. */
TEST(once, pool_does_not_grow_while_its_workers_compute)
{
	int times = 0;

	while (times < 5 && pool_that_computes_grows())
		times++;
	assert_in_range(times, 0, 4);
}

TEST(once, jobs_that_compute_for_ever_do_not_keep_the_others_waiting)
{
	size_t processors = processors_available();
	struct fixture fixture;

	fixture_open_growing(&fixture, (int)processors, (int)processors + 1, processors + 1);
	for (size_t number = 0; number < processors; number++)
		fixture.tasks[number].run = compute_until_flag;
	fixture.tasks[processors].run = set_flag;
	add_all(&fixture);
	submit(&fixture);
	finish(&fixture);
}

static uint64_t tasks_ended(struct fixture *fixture)
{
	static struct job_sums sums;

	worker_pool_sum(fixture->pool, &sums);
	return histogram_percentiles(&sums.duration).count;
}

enum { MANY_WORKERS = 64 };

/* Runs a job on each of MANY_WORKERS workers; `jobs` jobs have begun in all by then. */
static void have_many_workers(struct fixture *fixture, uint64_t jobs)
{
	block_all(fixture);
	WAIT_UNTIL(atomic_load(&fixture->begun) == jobs);
	assert_int_equal(stats_of(fixture).workers, MANY_WORKERS);
	let_all_go(fixture);
	assert_int_equal(tasks_ended(fixture), jobs);
}

/* Counts of the ended workers must stay, also when another worker takes one over. */
static bool only_two_are_left(struct fixture *fixture)
{
	assert_int_equal(tasks_ended(fixture), MANY_WORKERS);
	assert_int_equal(stats_of(fixture).unfinished, 0);
	return stats_of(fixture).workers == 2;
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

/* Allows what the pool keeps for ended workers, and the system for their threads. */
static bool memory_is_back(long resident, long mapped, long peak)
{
	return resident_memory() - resident <= 512 << 10 &&
	       mapped_memory() - mapped <= (peak - mapped) / 4;
}

/* Workers that are needed again reuse the same places. */
TEST(once, workers_that_were_idle_for_long_end_and_their_counts_stay)
{
	struct fixture fixture;
	long resident;
	long mapped;
	long peak;

	set_large_stacks();
	fixture_open_growing(&fixture, 2, MANY_WORKERS, MANY_WORKERS);
	resident = resident_memory();
	mapped = mapped_memory();
	have_many_workers(&fixture, MANY_WORKERS);
	peak = mapped_memory();
	assert_true(TEST_HAS_SANITIZER || !memory_is_back(resident, mapped, peak));
	WAIT_UNTIL(only_two_are_left(&fixture));
	WAIT_UNTIL(TEST_HAS_SANITIZER || TEST_IS_EMULATED ||
		   memory_is_back(resident, mapped, peak));
	/* Those two stay. */
	assert_true(only_two_are_left(&fixture));
	have_many_workers(&fixture, 2 * MANY_WORKERS);
	fixture_close(&fixture);
}

/*
 * One worker, blocked by the first job, has a crowd waiting in one lane and then one marked job in
 * the other. Returns how many of the crowd were done before that.
 */
static size_t overtaken_by(enum job_lane marked_lane, enum job_lane crowded_lane)
{
	struct fixture fixture;
	size_t before;

	fixture_open_blocked(&fixture, 1, 10000, 0);
	submit_one(&fixture, 0);
	WAIT_UNTIL(atomic_load(&fixture.flag));
	for (size_t number = 1; number < fixture.size - 1; number++)
		add(&fixture, number);
	submit_to(&fixture, crowded_lane);
	fixture.tasks[fixture.size - 1].run = note_when;
	add(&fixture, fixture.size - 1);
	submit_to(&fixture, marked_lane);
	let_go(&fixture, 0);
	worker_pool_wait(fixture.pool);
	assert_each_was_run_once(&fixture);
	before = atomic_load(&fixture.done_before);
	fixture_close(&fixture);
	return before;
}

TEST(once, prompt_job_is_not_held_up_by_a_crowd_in_bulk)
{
	assert_in_range(overtaken_by(JOB_LANE_PROMPT, JOB_LANE_BULK), 1, 2 * WORKER_BATCH);
}

TEST(once, bulk_is_not_starved_by_a_crowd_of_prompt_jobs)
{
	assert_in_range(overtaken_by(JOB_LANE_BULK, JOB_LANE_PROMPT), WORKER_BATCH,
			20 * WORKER_BATCH);
}

enum { WAITERS = 5 };

static void wait_for_pool(void *pool)
{
	worker_pool_wait(pool);
}

static void waiter_start(struct blocked_call *waiter, struct worker_pool *pool)
{
	blocked_call_start(waiter, wait_for_pool, pool);
	blocked_call_falls_asleep(waiter);
}

/* A later job ends before the one that they wait for, so that they wake and must go on waiting. */
TEST(once, all_waiters_return_together)
{
	struct fixture fixture;
	struct blocked_call waiters[WAITERS];

	fixture_open_blocked(&fixture, 2, 10, 8);
	for (size_t number = 0; number < 9; number++)
		submit_one(&fixture, number);
	for (int i = 0; i < WAITERS; i++)
		waiter_start(&waiters[i], fixture.pool);
	submit_one(&fixture, 9);
	WAIT_UNTIL(done(&fixture) == 9);
	for (int i = 0; i < WAITERS; i++)
		blocked_call_falls_asleep(&waiters[i]);
	let_go(&fixture, 8);
	for (int i = 0; i < WAITERS; i++)
		blocked_call_end(&waiters[i]);
	finish(&fixture);
}

/* Each begins to wait after another job, and none of these is done; the waits end one after the
 * other. */
TEST(once, waits_that_overlap_do_not_wait_for_each_others_jobs)
{
	struct fixture fixture;
	struct blocked_call waiters[WAITERS];

	fixture_open(&fixture, WAITERS + 1, WAITERS + 1);
	for (size_t i = 0; i <= WAITERS; i++)
		block(&fixture, i);
	for (size_t i = 0; i < WAITERS; i++) {
		submit_one(&fixture, i);
		waiter_start(&waiters[i], fixture.pool);
	}
	submit_one(&fixture, WAITERS);
	for (size_t i = 0; i < WAITERS; i++) {
		let_go(&fixture, i);
		blocked_call_end(&waiters[i]);
		assert_int_equal(done(&fixture), i + 1);
	}
	let_go(&fixture, WAITERS);
	finish(&fixture);
}

/* The later of two overlapping waits has its own jobs done first. */
TEST(once, wait_ends_after_the_jobs_of_earlier_waits_too)
{
	struct fixture fixture;
	struct blocked_call waiters[2];

	fixture_open(&fixture, 2, 2);
	for (size_t i = 0; i < 2; i++) {
		block(&fixture, i);
		submit_one(&fixture, i);
		waiter_start(&waiters[i], fixture.pool);
	}
	let_go(&fixture, 1);
	WAIT_UNTIL(stats_of(&fixture).unfinished == 1);
	for (size_t i = 0; i < 2; i++)
		blocked_call_falls_asleep(&waiters[i]);
	let_go(&fixture, 0);
	for (size_t i = 0; i < 2; i++)
		blocked_call_end(&waiters[i]);
	finish(&fixture);
}

/* There are more waits than wait groups, with a job before each. */
TEST(once, any_number_may_wait_at_a_time)
{
	enum { MANY = 270 };
	struct fixture fixture;
	struct blocked_call *waiters = calloc(MANY, sizeof(*waiters));

	assert_non_null(waiters);
	fixture_open_blocked(&fixture, 1, MANY, 0);
	for (size_t i = 0; i < MANY; i++) {
		submit_one(&fixture, i);
		waiter_start(&waiters[i], fixture.pool);
	}
	assert_int_equal(stats_of(&fixture).unfinished, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_false(blocked_call_has_returned(&waiters[i]));
	let_go(&fixture, 0);
	for (size_t i = 0; i < MANY; i++)
		blocked_call_end(&waiters[i]);
	finish(&fixture);
	free(waiters);
}

/* They wait for a wait group first, and then have no job to wait for. */
TEST(once, wait_whose_jobs_are_done_before_it_has_a_group_ends)
{
	enum { MANY = 260 };
	struct fixture fixture;
	struct blocked_call *waiters = calloc(MANY, sizeof(*waiters));

	assert_non_null(waiters);
	fixture_open(&fixture, 2, MANY);
	for (size_t i = 0; i < MANY; i++) {
		block(&fixture, i);
		submit_one(&fixture, i);
		waiter_start(&waiters[i], fixture.pool);
		/* The first one's wait group is the oldest, so all are kept. */
		if (i > 0)
			let_go(&fixture, i);
		WAIT_UNTIL(done(&fixture) == i);
	}
	let_go(&fixture, 0);
	for (size_t i = 0; i < MANY; i++)
		blocked_call_end(&waiters[i]);
	finish(&fixture);
	free(waiters);
}

struct stream {
	struct fixture fixture;
	atomic_size_t submitted;
	atomic_uint broken;
};

/* Waits repeatedly; all jobs submitted before must be done then. */
static void *wait_and_look(void *argument)
{
	struct stream *stream = argument;
	struct fixture *fixture = &stream->fixture;
	size_t looked_at = 0;

	while (looked_at < fixture->size) {
		size_t submitted = atomic_load(&stream->submitted);

		worker_pool_wait(fixture->pool);
		for (; looked_at < submitted; looked_at++)
			if (atomic_load(&fixture->tasks[looked_at].times_run) != 1)
				atomic_fetch_add(&stream->broken, 1);
	}
	return NULL;
}

TEST(once, several_may_wait_while_jobs_are_submitted)
{
	struct stream stream = {0};
	pthread_t waiters[WAITERS];

	fixture_open(&stream.fixture, 2, TEST_SHARE_OF(50000));
	for (int i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&waiters[i], NULL, wait_and_look, &stream), 0);
	for (size_t number = 0; number < stream.fixture.size; number++) {
		add(&stream.fixture, number);
		if (number % 7 == 0 || number == stream.fixture.size - 1) {
			submit(&stream.fixture);
			atomic_store(&stream.submitted, number + 1);
		}
	}
	for (int i = 0; i < WAITERS; i++)
		pthread_join(waiters[i], NULL);
	assert_int_equal(atomic_load(&stream.broken), 0);
	assert_each_was_run_once(&stream.fixture);
	fixture_close(&stream.fixture);
}

static void ask_where_it_is(struct task *task)
{
	char name[16] = "";

	pthread_getname_np(pthread_self(), name, sizeof(name));
	atomic_store(&task->fixture->flag,
		     worker_pool_is_here(task->fixture->pool) && strcmp(name, "pool-0") == 0);
}

TEST(once, only_a_worker_of_the_pool_is_here)
{
	struct fixture here;
	struct fixture elsewhere;

	fixture_open(&here, 1, 1);
	fixture_open(&elsewhere, 1, 1);
	assert_false(worker_pool_is_here(here.pool));
	here.tasks[0].run = ask_where_it_is;
	submit_one(&here, 0);
	worker_pool_wait(here.pool);
	assert_true(atomic_load(&here.flag));
	/* A worker of one pool asks the other. */
	elsewhere.tasks[0].run = ask_where_it_is;
	add(&elsewhere, 0);
	elsewhere.tasks[0].fixture = &here;
	submit(&elsewhere);
	worker_pool_wait(elsewhere.pool);
	assert_false(atomic_load(&here.flag));
	fixture_close(&here);
	fixture_close(&elsewhere);
}

/*
 * The first job of a batch waits for its last, so another worker must do that one. The workers have
 * been woken together: while one lays the last batch out, the other looks whether it may leave. A
 * busy machine is slow at this, and does it less often.
 */
TEST(once, no_worker_leaves_while_a_job_may_need_it)
{
	size_t turns = TEST_SHARE_OF(12000);
	int64_t begun = wall_clock();

	for (size_t turn = 0; turn < turns && wall_clock() - begun < INT64_C(4000000000); turn++) {
		int64_t start = wall_clock();
		struct fixture fixture;

		fixture_open(&fixture, 2, WORKER_BATCH);
		fixture.tasks[0].run = wait_for_flag;
		fixture.tasks[WORKER_BATCH - 1].run = set_flag;
		add_all(&fixture);
		submit(&fixture);
		worker_pool_destroy(fixture.pool);
		fixture.pool = NULL;
		assert_each_was_run_once(&fixture);
		assert_true(wall_clock() - start < INT64_C(20000000000));
		fixture_close(&fixture);
	}
}
