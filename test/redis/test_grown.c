/* SPDX-License-Identifier: MIT */
/*
 * A program and a library meet, and one of them was built with a header whose structs have grown
 * (grow.awk): the program if GROWN is defined, and otherwise the library (test_grown_library.c).
 * The program's structs end at an inaccessible page, so a call that assumes another size ends the
 * test. A call that fills less than the program's struct leaves 0xff in it.
 */
#include "support/test.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <timingwheel/redis.h>

#include "support/redis_server.h"
#include "support/wait.h"

/* Returns memory that ends before an inaccessible page. */
static void *at_edge(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;
	char *memory =
		mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	assert_int_equal(mprotect(memory + room, page, PROT_NONE), 0);
	memset(memory, 0xff, room);
	return memory + room - size;
}

static void *copy_at_edge(const void *data, size_t size)
{
	return memcpy(at_edge(size), data, size);
}

/* GIVEN makes a struct for a call to read. */
#define GIVEN(type, ...) ((type *)copy_at_edge(&(type){__VA_ARGS__}, sizeof(type)))
/* ROOM makes room for structs that a call fills. */
#define ROOM(type, count) ((type *)at_edge((count) * sizeof(type)))

#ifdef GROWN
static void assert_zero(const unsigned char later[40])
{
	for (int i = 0; i < 40; i++)
		assert_int_equal(later[i], 0);
}
/* Asserts that the call filled the struct up to its end, which is unknown to the library. */
#define ASSERT_FILLED(filled) assert_zero((filled)->later)
/* Asserts that the call refuses an option that is unknown to the library. */
#define ASSERT_REFUSED(given, call)                 \
	do {                                        \
		(given)->later[0] = 1;              \
		assert_int_equal(call, TW_INVALID); \
		(given)->later[0] = 0;              \
	} while (0)
#else
#define ASSERT_FILLED(filled) (void)(filled)
#define ASSERT_REFUSED(given, call) (void)(given)
#endif

static struct tw_redis_options *options_of(struct redis_server *server)
{
	static char name_space[16];
	static int number;

	snprintf(name_space, sizeof(name_space), "grown-%d", number++);
	return GIVEN(struct tw_redis_options, .url = server->url, .name_space = name_space,
		     .shards = 1, .client_name = "grown");
}

static struct tw_redis *open_one(struct redis_server *server)
{
	struct tw_redis *redis;

	assert_int_equal(tw_redis_open(&redis, options_of(server), NULL), TW_OK);
	return redis;
}

static struct tw_redis_task *task_of(const char *key)
{
	return GIVEN(struct tw_redis_task, .key = key, .key_size = strlen(key), .body = "body",
		     .body_size = 4, .group = "group", .max_attempts = 5);
}

static uint64_t count_tasks(struct tw_redis *redis)
{
	struct tw_redis_stats *stats = ROOM(struct tw_redis_stats, 1);

	assert_int_equal(tw_redis_get_stats(redis, stats), TW_OK);
	assert_int_equal(stats->missing, 0);
	ASSERT_FILLED(stats);
	return stats->tasks;
}

static void assert_error(const struct tw_redis_error *error, enum tw_status status)
{
	assert_int_equal(error->status, status);
	assert_int_not_equal(error->text[0], '\0');
	assert_true(strlen(error->text) < sizeof(error->text));
	ASSERT_FILLED(error);
}

static void handles_are_opened(void **state)
{
	struct tw_redis_options *options = options_of(*state);
	struct tw_redis_error *error = ROOM(struct tw_redis_error, 1);
	struct tw_redis *redis;
	struct tw_redis *beside;

	assert_int_equal(tw_redis_open(&redis, options, error), TW_OK);
	assert_int_equal(error->status, TW_OK);
	assert_string_equal(error->text, "");
	ASSERT_FILLED(error);
	assert_int_equal(tw_redis_shard_count(redis), 1);
	assert_int_equal(tw_redis_open_beside(redis, "no name", 1, &beside,
					      error = ROOM(struct tw_redis_error, 1)),
			 TW_INVALID);
	assert_error(error, TW_INVALID);
	assert_int_equal(tw_redis_cancel(redis, "none", 4), TW_NOT_FOUND);
	tw_redis_last_error(redis, error = ROOM(struct tw_redis_error, 1));
	assert_error(error, TW_NOT_FOUND);
	tw_redis_close(redis);

	ASSERT_REFUSED(options, tw_redis_open(&redis, options, NULL));
	options->url = "http://no.example";
	assert_int_equal(tw_redis_open(&redis, options, error = ROOM(struct tw_redis_error, 1)),
			 TW_INVALID);
	assert_null(redis);
	assert_error(error, TW_INVALID);
}

/* A seen is a task that see() has received. */
struct seen {
	size_t count;
	struct tw_redis_info info;
	char key[16];
	char reason[16];
};

static bool see(void *context, const struct tw_redis_info *info)
{
	struct seen *seen = context;

	ASSERT_FILLED(info);
	ASSERT_FILLED(&info->task);
	assert_int_equal(info->task.body_size, 4);
	assert_memory_equal(info->task.body, "body", 4);
	assert_string_equal(info->task.group, "group");
	assert_int_equal(info->task.max_attempts, 5);
	seen->count++;
	seen->info = *info;
	seen->info.task.body = "body";
	seen->info.task.group = "group";
	seen->info.task.key = seen->key;
	seen->info.reason = seen->reason;
	snprintf(seen->key, sizeof(seen->key), "%.*s", (int)info->task.key_size,
		 (const char *)info->task.key);
	snprintf(seen->reason, sizeof(seen->reason), "%s", info->reason);
	return true;
}

static void task_is_found_and_restored(void **state)
{
	volatile size_t too_many = SIZE_MAX / 2; /* the compiler would warn of it */
	struct tw_redis *redis = open_one(*state);
	struct tw_redis_task *task = task_of("one");
	struct tw_redis_info *infos = ROOM(struct tw_redis_info, 2);
	struct seen seen = {0};
	struct seen dead = {0};
	int64_t due_ms;

	task->delay = TW_HOUR;
	ASSERT_REFUSED(task, tw_redis_add(redis, task, NULL));
	assert_int_equal(tw_redis_add(redis, task, &due_ms), TW_OK);
	assert_int_equal(tw_redis_get(redis, "one", 3, see, &seen), TW_OK);
	assert_string_equal(seen.key, "one");
	assert_int_equal(seen.info.due_ms, due_ms);
	assert_int_equal(seen.info.state, TW_REDIS_PENDING);
	assert_int_equal(seen.info.latest_due_ms, 0);
	assert_string_equal(seen.reason, "");
	assert_int_equal(tw_redis_cancel(redis, "one", 3), TW_OK);

	infos[0] = infos[1] = seen.info;
	infos[1].task.key = "two";
	infos[1].state = TW_REDIS_DEAD;
	infos[1].attempts = 3;
	infos[1].reason = "why";
	ASSERT_REFUSED(&infos[1], tw_redis_restore(redis, infos, 2, NULL));
	ASSERT_REFUSED(&infos[1].task, tw_redis_restore(redis, infos, 2, NULL));
	ASSERT_REFUSED(&infos[1], tw_redis_dead_add(redis, &infos[1]));
	assert_int_equal(tw_redis_restore(redis, infos, too_many, NULL), TW_NO_MEMORY);
	assert_int_equal(tw_redis_restore(redis, infos, 2, NULL), TW_OK);
	seen.count = 0;
	assert_int_equal(tw_redis_each(redis, see, &seen), TW_OK);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.key, "one");
	assert_int_equal(seen.info.due_ms, due_ms);
	infos[1].task.mode = TW_REDIS_REPLACE;
	assert_int_equal(tw_redis_dead_add(redis, &infos[1]), TW_OK);
	assert_int_equal(tw_redis_dead_each(redis, see, &dead), TW_OK);
	assert_int_equal(dead.count, 1);
	assert_string_equal(dead.key, "two");
	assert_int_equal(dead.info.state, TW_REDIS_DEAD);
	assert_int_equal(dead.info.attempts, 3);
	assert_string_equal(dead.reason, "why");
	assert_int_equal(count_tasks(redis), 1);
	tw_redis_close(redis);
}

/* Claims both due tasks. The jobs are freed with the batch. */
static struct tw_redis_job *claim_both(struct tw_redis *redis, struct tw_redis_batch **batch)
{
	const struct tw_redis_job *jobs;

	assert_int_equal(tw_redis_claim(redis, 0, 10, TW_MINUTE, batch, NULL), TW_OK);
	assert_int_equal(tw_redis_batch_count(*batch), 2);
	jobs = tw_redis_batch_jobs(*batch);
	for (int i = 0; i < 2; i++) {
		ASSERT_FILLED(&jobs[i]);
		assert_int_equal(jobs[i].key_size, 3);
		assert_memory_equal(jobs[i].body, "body", 4);
		assert_int_equal(jobs[i].max_attempts, 5);
		assert_string_equal(jobs[i].group, "group");
	}
	assert_int_not_equal(memcmp(jobs[0].key, jobs[1].key, 3), 0);
	return copy_at_edge(jobs, 2 * sizeof(*jobs));
}

/* Asserts success for both jobs or tasks. */
static void assert_both(enum tw_status status, const enum tw_status each[2])
{
	assert_int_equal(status, TW_OK);
	assert_int_equal(each[0], TW_OK);
	assert_int_equal(each[1], TW_OK);
}

static void jobs_are_an_array(void **state)
{
	struct tw_redis *redis = open_one(*state);
	struct tw_redis_task *tasks = ROOM(struct tw_redis_task, 2);
	struct tw_redis_batch *batch;
	struct tw_redis_job *jobs;
	enum tw_status each[2];

	tasks[0] = *task_of("one");
	tasks[1] = *task_of("two");
	ASSERT_REFUSED(&tasks[1], tw_redis_add_many(redis, tasks, 2, NULL));
	assert_both(tw_redis_add_many(redis, tasks, 2, each), each);
	assert_int_equal(count_tasks(redis), 2);

	jobs = claim_both(redis, &batch);
	ASSERT_REFUSED(&jobs[1], tw_redis_extend(redis, jobs, 2, TW_SECOND, NULL));
	assert_both(tw_redis_extend(redis, jobs, 2, TW_HOUR, each), each);
	assert_both(tw_redis_release(redis, jobs, 2, each), each);
	tw_redis_batch_free(batch);
	jobs = claim_both(redis, &batch);
	assert_both(tw_redis_fail(redis, jobs, 2, 0, "once", each), each);
	tw_redis_batch_free(batch);
	jobs = claim_both(redis, &batch);
	assert_int_equal(jobs[0].attempt, 2);
	assert_int_equal(jobs[1].attempt, 2);
	assert_both(tw_redis_ack(redis, jobs, 2, each), each);
	tw_redis_batch_free(batch);
	assert_int_equal(count_tasks(redis), 0);
	tw_redis_close(redis);
}

static bool see_limits(void *context, const char *group, const struct tw_redis_group_limits *limits)
{
	assert_string_equal(group, "group");
	assert_int_equal(limits->per_second, 5);
	assert_true(limits->paused);
	*(int *)context += 1;
	return true;
}

static void limits_are_set_and_read(void **state)
{
	struct tw_redis *redis = open_one(*state);
	struct tw_redis_limits *limits = GIVEN(struct tw_redis_limits, .running = 3);
	struct tw_redis_group_limits *group =
		GIVEN(struct tw_redis_group_limits, .weight = 2, .per_second = 5, .paused = true);
	int names = 0;

	limits->per_second = 4;
	ASSERT_REFUSED(limits, tw_redis_set_limits(redis, limits));
	assert_int_equal(tw_redis_set_limits(redis, limits), TW_OK);
	limits = ROOM(struct tw_redis_limits, 1);
	assert_int_equal(tw_redis_get_limits(redis, limits), TW_OK);
	assert_int_equal(limits->running, 3);
	assert_int_equal(limits->per_second, 4);
	ASSERT_FILLED(limits);

	ASSERT_REFUSED(group, tw_redis_set_group_limits(redis, "group", group));
	assert_int_equal(tw_redis_set_group_limits(redis, "group", group), TW_OK);
	group = ROOM(struct tw_redis_group_limits, 1);
	assert_int_equal(tw_redis_get_group_limits(redis, "group", group), TW_OK);
	assert_int_equal(group->weight, 2);
	assert_int_equal(group->per_second, 5);
	assert_true(group->paused);
	ASSERT_FILLED(group);
	assert_int_equal(tw_redis_get_group_limits(redis, "other", group), TW_NOT_FOUND);
	assert_int_equal(group->weight, 0);
	ASSERT_FILLED(group);
	assert_int_equal(tw_redis_each_group_limits(redis, see_limits, &names), TW_OK);
	assert_int_equal(names, 1);
	tw_redis_close(redis);
}

static void groups_are_an_array(void **state)
{
	struct tw_redis *redis = open_one(*state);
	struct tw_redis_group_stats *groups = ROOM(struct tw_redis_group_stats, 2);
	struct tw_redis_task *task = task_of("one");
	size_t count;

	assert_int_equal(tw_redis_add(redis, task, NULL), TW_OK);
	task->key = "two";
	assert_int_equal(tw_redis_add(redis, task, NULL), TW_OK);
	task->key = "six";
	task->group = "small";
	assert_int_equal(tw_redis_add(redis, task, NULL), TW_OK);
	assert_int_equal(tw_redis_get_groups(redis, groups, 2, &count), TW_OK);
	assert_int_equal(count, 2);
	assert_string_equal(groups[0].name, "group");
	assert_int_equal(groups[0].waiting, 2);
	assert_string_equal(groups[1].name, "small");
	assert_int_equal(groups[1].waiting, 1);
	ASSERT_FILLED(&groups[0]);
	ASSERT_FILLED(&groups[1]);
	tw_redis_close(redis);
}

/* A work is what a worker's functions saw. */
struct work {
	atomic_uint reports;
	atomic_bool verdict_was_zero;
	char reason[16]; /* why the handler's task failed */
};

static enum tw_redis_outcome handle(void *context, const struct tw_redis_job *job,
				    struct tw_redis_verdict *verdict)
{
	static const struct tw_redis_verdict nothing;
	struct work *work = context;

	work->verdict_was_zero = !memcmp(verdict, &nothing, sizeof(nothing));
	memset(verdict, 0xff, sizeof(*verdict));
	snprintf(verdict->reason, sizeof(verdict->reason), "%.*s is bad", (int)job->key_size,
		 (const char *)job->key);
	return TW_REDIS_KILL;
}

static void report(void *context, const struct tw_redis_report *report)
{
	struct work *work = context;

	if (!report->job->url)
		snprintf(work->reason, sizeof(work->reason), "%s", report->reason);
	work->reports++;
}

/* Adds a task for the handler, and one whose callback gets no answer. */
static void add_work(const struct tw_redis_options *options)
{
	struct tw_redis_task *task = task_of("one");
	struct tw_redis *redis;

	assert_int_equal(tw_redis_open(&redis, options, NULL), TW_OK);
	assert_int_equal(tw_redis_add(redis, task, NULL), TW_OK);
	task->key = "two";
	task->url = "http://127.0.0.1:1/";
	task->max_attempts = 1;
	assert_int_equal(tw_redis_add(redis, task, NULL), TW_OK);
	tw_redis_close(redis);
}

static void assert_counts(const struct tw_redis_worker_stats *stats)
{
	assert_int_equal(stats->claimed, 2);
	assert_int_equal(stats->dead, 2);
	assert_int_not_equal(stats->lateness.total_us, 0);
	assert_true(stats->turned >= 0 && stats->turned < TW_MINUTE);
	ASSERT_FILLED(stats);
}

static void assert_rows(struct tw_redis_worker *worker)
{
	struct tw_redis_host_stats *hosts = ROOM(struct tw_redis_host_stats, 2);
	size_t count;

	assert_int_equal(tw_redis_worker_get_hosts(worker, hosts, 2, &count), TW_OK);
	assert_int_equal(count, 2);
	assert_string_equal(hosts[0].name, "");
	assert_int_equal(hosts[0].answers[0], 0);
	assert_string_equal(hosts[1].name, "127.0.0.1:1");
	assert_int_equal(hosts[1].answers[0], 1);
	ASSERT_FILLED(&hosts[0]);
	ASSERT_FILLED(&hosts[1]);
}

static void assert_present(const struct tw_redis_options *options)
{
	struct tw_redis_worker_info *workers = ROOM(struct tw_redis_worker_info, 2);
	struct tw_redis *redis;
	size_t count = 0;

	assert_int_equal(tw_redis_open(&redis, options, NULL), TW_OK);
	WAIT_UNTIL(tw_redis_get_workers(redis, workers, 2, &count) == TW_OK && count == 2);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(strchr(workers[i].name, ':'));
		assert_true(workers[i].report_age >= 0 && workers[i].report_age < TW_MINUTE);
		ASSERT_FILLED(&workers[i]);
	}
	tw_redis_close(redis);
}

static void worker_runs_tasks(void **state)
{
	struct tw_redis_options *options = options_of(*state);
	struct tw_redis_error *error = ROOM(struct tw_redis_error, 1);
	struct tw_redis_worker_stats *stats = ROOM(struct tw_redis_worker_stats, 1);
	struct work work = {0};
	struct tw_redis_worker_options *worker_options =
		GIVEN(struct tw_redis_worker_options, .context = &work, .handler = handle,
		      .report = report);
	struct tw_redis_worker *worker;
	struct tw_redis_worker *second;

	add_work(options);
	ASSERT_REFUSED(options, tw_redis_worker_start(&worker, options, worker_options, NULL));
	ASSERT_REFUSED(worker_options,
		       tw_redis_worker_start(&worker, options, worker_options, NULL));
	assert_int_equal(tw_redis_worker_start(&worker, options, worker_options, error), TW_OK);
	assert_int_equal(error->status, TW_OK);
	ASSERT_FILLED(error);
	WAIT_UNTIL(work.reports == 2);
	assert_string_equal(work.reason, "one is bad");
	assert_true(work.verdict_was_zero);

	WAIT_UNTIL(tw_redis_worker_get_stats(worker, stats) == TW_OK && stats->dead == 2);
	assert_counts(stats);
	stats = ROOM(struct tw_redis_worker_stats, 1);
	assert_int_equal(tw_redis_worker_get_source_stats(worker, options->name_space, stats),
			 TW_OK);
	assert_counts(stats);
	assert_int_equal(tw_redis_worker_last_error(worker, error = ROOM(struct tw_redis_error, 1)),
			 TW_OK);
	assert_int_equal(error->status, TW_OK);
	ASSERT_FILLED(error);
	assert_rows(worker);
	assert_int_equal(tw_redis_worker_start(&second, options, worker_options, NULL), TW_OK);
	assert_present(options);
	assert_int_equal(tw_redis_worker_destroy(second), TW_OK);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);

	worker_options->batch = TW_REDIS_BATCH_MAX + 1;
	assert_int_equal(tw_redis_worker_start(&worker, options, worker_options,
					       error = ROOM(struct tw_redis_error, 1)),
			 TW_INVALID);
	assert_null(worker);
	assert_error(error, TW_INVALID);
}

static int start_server(void **state)
{
	static struct redis_server server;

	redis_server_start(&server, NULL);
	*state = &server;
	return 0;
}

static int stop_server(void **state)
{
	redis_server_stop(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles_are_opened),  cmocka_unit_test(task_is_found_and_restored),
		cmocka_unit_test(jobs_are_an_array),   cmocka_unit_test(limits_are_set_and_read),
		cmocka_unit_test(groups_are_an_array), cmocka_unit_test(worker_runs_tasks),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
