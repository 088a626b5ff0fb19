/* SPDX-License-Identifier: MIT */
/* One worker serves several namespaces. These tests check what they share, and what each has for
 * itself. */
#include "support/fixture.h"

#include "support/runs.h"

enum { NAMESPACES = 3, SHARDS = 1, NAME_SIZE = 48 };

/* These are the fixture's namespace and more. Tasks have the keys "0:task-7" and so on, with their
 * namespace's number. */
static struct tw_redis *clients[NAMESPACES];
static char names[NAMESPACES][NAME_SIZE];

static int open_all(void **state)
{
	int result = fixture_open_one_shard(state);
	struct fixture *fixture = *state;

	for (int i = 0; i < NAMESPACES; i++) {
		snprintf(names[i], NAME_SIZE, i ? "%s.%d" : "%s", fixture->name_space, i);
		assert_ok(fixture->redis, tw_redis_open_beside(fixture->redis, names[i], SHARDS,
							       &clients[i], NULL));
	}
	return result;
}

static int close_all(void **state)
{
	for (int i = 0; i < NAMESPACES; i++)
		client_close(clients[i]);
	return fixture_close(state);
}

static const struct test_kind kind_opened = {.open = open_all, .close = close_all};

/* SERVE(2, .batch = 1) starts a worker of the first two namespaces with these options. */
#define SERVE(count, ...) serve(fixture, count, (struct tw_redis_worker_options){__VA_ARGS__})
static struct tw_redis_worker *serve(const struct fixture *fixture, size_t count,
				     struct tw_redis_worker_options options)
{
	struct tw_redis_source sources[NAMESPACES] = {0};

	for (size_t i = 0; i < count; i++)
		sources[i].name_space = names[i];
	options.sources = sources;
	options.source_count = count;
	return worker_run(&fixture->options, options);
}

static void add_to(int number, const char *name, tw_duration delay)
{
	char key[KEY_SIZE + 4];

	snprintf(key, sizeof(key), "%d:%s", number, name);
	add_task(clients[number], key, delay);
}

static void add_many_to(int number, int count)
{
	char name[KEY_SIZE];

	for (int i = 0; i < count; i++) {
		number_key(name, i);
		add_to(number, name, 0);
	}
}

/* Returns how many of the first `first` runs belong to the namespace. */
static size_t runs_of(int number, size_t first)
{
	size_t count = 0;

	for (size_t i = 0; i < first; i++)
		count += run_of(NULL, i).key[0] == '0' + number;
	return count;
}

static struct tw_redis_worker_stats stats_of_source(struct tw_redis_worker *worker, int number)
{
	struct tw_redis_worker_stats stats = {0};

	assert_int_equal(tw_redis_worker_get_stats(worker, names[number], &stats), TW_OK);
	return stats;
}

/* ---- Running ---- */

STORED(opened, handler_gets_the_namespace)
{
	struct tw_redis_worker *worker = SERVE(NAMESPACES);

	for (int i = 0; i < NAMESPACES; i++)
		add_many_to(i, 20);
	WAIT_UNTIL(ends_count() == NAMESPACES * 20);
	worker_stop(worker);
	for (size_t i = 0; i < NAMESPACES * 20; i++) {
		struct run_seen run = run_of(NULL, i);

		assert_string_equal(run.name_space, names[*run.key - '0']);
	}
	for (int i = 0; i < NAMESPACES; i++)
		assert_int_equal(stats_of(clients[i]).tasks, 0);
}

TEST(opened, claim_by_hand_gives_the_namespace)
{
	struct tw_redis_batch *batch = claim_new(clients[1], "a", TW_MINUTE);

	assert_string_equal(only_job(batch)->name_space, names[1]);
}

STORED(opened, sleeping_worker_hears_of_tasks_of_each_namespace)
{
	struct tw_redis_worker *worker = SERVE(NAMESPACES, .poll = 10 * TW_SECOND);
	int64_t added;

	for (int i = 0; i < NAMESPACES; i++)
		add_to(i, "later", TW_HOUR);
	WAIT_UNTIL(stats_of_source(worker, 0).claims > 0);
	for (int i = 0; i < NAMESPACES; i++) {
		WAIT_UNTIL(redis_server_count_listeners(&fixture->server, names[i]));
		wait_for(100 * TW_MILLISECOND);
		added = wall_clock();
		add_to(i, "sooner", 50 * TW_MILLISECOND);
		WAIT_UNTIL(ends_count() == (size_t)i + 1);
		/* Without hints it would have slept for ten seconds. */
		assert_true(run_of(NULL, (size_t)i).began - added < 6 * TW_SECOND);
		assert_true(stats_of_source(worker, i).hints > 0);
	}
}

STORED(opened, failed_tasks_come_back_to_their_own_namespace)
{
	struct tw_redis_worker *worker;

	runs.outcome = TW_REDIS_KILL;
	runs.reason = "hopeless";
	worker = SERVE(NAMESPACES);
	add_to(1, "a", 0);
	add_to(2, "a", 0);
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DEAD) == 2);
	worker_stop(worker);
	assert_int_equal(stats_of(clients[0]).dead, 0);
	assert_string_equal(find_dead(clients[1], "1:a").reason, "hopeless");
	assert_string_equal(find_dead(clients[2], "2:a").reason, "hopeless");
}

STORED(opened, leases_of_each_namespace_are_extended)
{
	struct tw_redis_worker *worker;

	runs.gate_is_shut = true;
	worker = SERVE(2, .lease = 300 * TW_MILLISECOND);
	add_to(0, "a", 0);
	add_to(1, "a", 0);
	for (int i = 0; i < 2; i++)
		WAIT_UNTIL(stats_of_source(worker, i).extended >= 4);
	runs_open_gate();
	WAIT_UNTIL(ends_count_of(NULL, TW_REDIS_END_DONE) == 2);
}

/* ---- Sharing ---- */

/* The worker has room for a dozen tasks, and each namespace has hundreds. */
STORED(opened, busy_namespaces_have_equal_parts)
{
	enum { EACH = 300, LOOKED_AT = 200 };
	struct tw_redis_worker *worker;

	add_many_to(0, EACH);
	add_many_to(1, EACH);
	worker = SERVE(2, .handlers = 1, .batch = 1);
	WAIT_UNTIL(ends_count() == 2 * EACH);
	worker_stop(worker);
	/* They are equal except for what is claimed at a time. */
	assert_in_range(runs_of(0, LOOKED_AT), 100 - 15, 100 + 15);
	assert_int_equal(runs_of(0, 2 * EACH), EACH);
}

STORED(opened, idle_namespace_leaves_its_part_to_another)
{
	enum { COUNT = 100 };

	SERVE(NAMESPACES, .handlers = 1, .batch = 1);
	add_many_to(1, COUNT);
	WAIT_UNTIL(ends_count() == COUNT);
}

STORED(opened, pause_of_one_namespace_holds_up_no_other)
{
	set_paused(clients[0], true);
	SERVE(2, .handlers = 1, .batch = 1);
	add_many_to(0, 20);
	add_many_to(1, 20);
	WAIT_UNTIL(ends_count() == 20);
	assert_int_equal(runs_of(1, 20), 20);
	assert_int_equal(stats_of(clients[0]).due, 20);
	set_paused(clients[0], false);
	WAIT_UNTIL(ends_count() == 40);
}

STORED(opened, limits_of_one_namespace_hold_only_for_it)
{
	const struct tw_redis_limits one = {.running = 1};
	struct tw_redis_worker *worker;

	assert_ok(clients[0], tw_redis_set_limits(clients[0], NULL, &one));
	runs.gate_is_shut = true;
	add_many_to(0, 5);
	add_many_to(1, 7);
	worker = SERVE(2, .handlers = 16);
	WAIT_UNTIL(runs_running() == 8);
	wait_for(300 * TW_MILLISECOND);
	assert_int_equal(runs_running(), 8);
	assert_int_equal(stats_of_source(worker, 0).held, 1);
	assert_int_equal(stats_of_source(worker, 1).held, 7);
	runs_open_gate();
	WAIT_UNTIL(ends_count() == 12);
	/* The worker hears of the removed limits in that namespace, too. */
	assert_ok(clients[0], tw_redis_set_limits(clients[0], NULL, &(struct tw_redis_limits){0}));
	pthread_mutex_lock(&runs.lock);
	runs.gate_is_shut = true;
	pthread_mutex_unlock(&runs.lock);
	add_many_to(0, 5);
	WAIT_UNTIL(runs_running() == 5);
	runs_open_gate();
}

STORED(opened, dead_letters_are_counted_in_each_namespace)
{
	struct tw_redis_worker *worker;

	runs.outcome = TW_REDIS_KILL;
	worker = SERVE(2, .dead_max_count = SHARDS);
	add_many_to(0, 40);
	add_many_to(1, 40);
	WAIT_UNTIL(ends_count() == 80);
	worker_stop(worker);
	/* One task a shard stays. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(stats_of(clients[i]).dead, SHARDS);
}

/* ---- The worker ---- */

STORED(opened, namespaces_need_no_connections_of_their_own)
{
	struct tw_redis_worker *worker = SERVE(NAMESPACES);

	for (int i = 0; i < NAMESPACES; i++) {
		add_to(i, "a", 0);
		WAIT_UNTIL(stats_of_source(worker, i).done == 1);
	}
	/* These are the fixture's, the worker's, and the one for hints. */
	WAIT_UNTIL(redis_server_says(&fixture->server, "CLIENT LIST", "name=timingwheel") == 3);
}

STORED(opened, counts_of_the_namespaces_add_up)
{
	struct tw_redis_worker *worker = SERVE(NAMESPACES);
	struct tw_redis_worker_stats all;
	uint64_t lateness = 0;

	for (int i = 0; i < NAMESPACES; i++)
		add_many_to(i, 10 * (i + 1));
	WAIT_UNTIL(ends_count() == 60);
	assert_int_equal(tw_redis_worker_stop(worker, TW_FOREVER), TW_OK);
	all = worker_stats(worker);
	assert_int_equal(all.claimed, 60);
	assert_int_equal(all.done, 60);
	for (int i = 0; i < NAMESPACES; i++) {
		struct tw_redis_worker_stats own = stats_of_source(worker, i);

		assert_int_equal(own.claimed, 10 * (i + 1));
		assert_int_equal(own.done, 10 * (i + 1));
		assert_int_equal(own.held, 0);
		assert_int_equal(own.running, 0);
		assert_int_equal(own.round_trips, all.round_trips);
		lateness += own.lateness.total_us;
	}
	assert_int_equal(lateness, all.lateness.total_us);
	assert_int_equal(tw_redis_worker_get_stats(worker, "another", &all), TW_NOT_FOUND);
	assert_int_equal(tw_redis_worker_get_stats(worker, names[0], NULL), TW_INVALID);
	assert_int_equal(tw_redis_worker_get_stats(NULL, names[0], &all), TW_INVALID);
	worker_destroy(worker);
}

STORED(opened, stop_gives_back_to_each_namespace_what_was_not_begun)
{
	enum { EACH = 30 };
	struct tw_redis_worker *worker;
	size_t begun;

	for (int i = 0; i < 2; i++)
		add_many_to(i, EACH);
	runs.takes = 300 * TW_MILLISECOND;
	worker = SERVE(2, .handlers = 2);
	WAIT_UNTIL(runs_running() == 2);
	worker_stop(worker);
	begun = runs_count();
	assert_int_equal(ends_count_of(NULL, TW_REDIS_END_DONE), begun);
	for (int i = 0; i < 2; i++) {
		struct tw_redis_stats stats = stats_of(clients[i]);

		assert_int_equal(stats.due, EACH - runs_of(i, begun));
		assert_int_equal(stats.tasks, stats.due);
		assert_int_equal(stats.started, 0);
	}
}

/* ---- Options ---- */

/* Starts a worker without a fixture, so without options for Redis. */
static enum tw_status try_start(struct fixture *fixture, const struct tw_redis_source *sources,
				size_t count, struct tw_redis_error *error)
{
	const struct tw_redis_worker_options options = {.sources = sources, .source_count = count};
	struct tw_redis_worker *worker = VALUE(1);
	enum tw_status status =
		tw_redis_worker_start(&worker, fixture ? &fixture->options : NULL, &options, error);

	if (status == TW_OK)
		worker_stop(worker);
	else
		assert_null(worker);
	return status;
}

STORED(opened, bad_lists_of_namespaces_are_invalid)
{
	static const struct {
		struct tw_redis_source sources[2];
		const char *text;
	} bad[] = {
		{{{.name_space = "a"}, {.name_space = "a b"}}, "1 to 64 letters"},
		{{{.name_space = "a"}, {.name_space = ""}}, "1 to 64 letters"},
		{{{.name_space = "a"}, {.name_space = "b", .shards = 1025}}, "1024 shards"},
		{{{.name_space = "a"}, {.name_space = "a"}}, "a is listed twice"},
		{{{.name_space = NULL}, {.name_space = "default"}}, "default is listed twice"},
	};
	static const struct tw_redis_source many[TW_REDIS_SOURCES_MAX + 1];
	struct tw_redis_error error;

	/* They are found before anything is connected. */
	fixture->options.url = "redis://127.0.0.1:1";
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(try_start(fixture, bad[i].sources, 2, &error), TW_INVALID);
		assert_int_equal(error.status, TW_INVALID);
		assert_non_null(strstr(error.text, bad[i].text));
	}
	assert_int_equal(try_start(fixture, many, TW_REDIS_SOURCES_MAX + 1, &error), TW_INVALID);
	assert_int_equal(try_start(fixture, NULL, 1, NULL), TW_INVALID);
	assert_int_equal(try_start(NULL, NULL, 1, NULL), TW_INVALID);
}

STORED(opened, namespace_with_another_number_of_shards_is_unfit)
{
	const struct tw_redis_source sources[] = {{.name_space = names[0]},
						  {.name_space = names[1], .shards = SHARDS + 1}};
	struct tw_redis_error error;

	assert_int_equal(try_start(fixture, sources, 2, &error), TW_REDIS_UNFIT);
	assert_non_null(strstr(error.text, names[1]));
	WAIT_UNTIL(redis_server_says(&fixture->server, "CLIENT LIST", "name=timingwheel") == 1);
}

STORED(opened, as_many_namespaces_as_there_may_be_are_served)
{
	struct tw_redis_source sources[TW_REDIS_SOURCES_MAX];
	char texts[TW_REDIS_SOURCES_MAX][NAME_SIZE];
	struct tw_redis *last;

	for (int i = 0; i < TW_REDIS_SOURCES_MAX; i++) {
		snprintf(texts[i], NAME_SIZE, "%s-%d", fixture->name_space, i);
		sources[i] = (struct tw_redis_source){.name_space = texts[i], .shards = 2};
	}
	WORK(fixture, .sources = sources, .source_count = TW_REDIS_SOURCES_MAX);
	assert_ok(fixture->redis,
		  tw_redis_open_beside(fixture->redis, texts[TW_REDIS_SOURCES_MAX - 1], 2, &last,
				       NULL));
	add_task(last, "a", 0);
	WAIT_UNTIL(ends_count() == 1);
	client_close(last);
}

FIXTURE_FILE
