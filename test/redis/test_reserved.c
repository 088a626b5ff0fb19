/* SPDX-License-Identifier: MIT */
/* A struct that a program fills is refused unless its reserved fields are 0. In a struct that the
 * library fills they become 0, whatever they were. */
#include "support/fixture.h"

enum { FIELDS = 4 };

/* Asserts that the call is refused while one of the reserved fields is set. */
#define ASSERT_REFUSED(given, call)                               \
	do {                                                      \
		for (int field_ = 0; field_ < FIELDS; field_++) { \
			(given)->reserved[field_] = 1;            \
			assert_int_equal(call, TW_INVALID);       \
			(given)->reserved[field_] = 0;            \
		}                                                 \
	} while (0)

/* Asserts that the reserved fields are 0, and sets them and all others to something else. */
#define ASSERT_FILLED(filled)                                            \
	do {                                                             \
		for (int field_ = 0; field_ < FIELDS; field_++)          \
			assert_int_equal((filled)->reserved[field_], 0); \
		SPOIL(filled);                                           \
	} while (0)

#define SPOIL(filled) memset(filled, 0xff, sizeof(*(filled)))

STORED(fixture, options_with_a_reserved_field_are_refused)
{
	struct tw_redis_options options = fixture->options;
	struct tw_redis_worker_options worker_options = {0};
	struct tw_redis_worker *worker;
	struct tw_redis *redis;

	ASSERT_REFUSED(&options, tw_redis_open(&redis, &options, NULL));
	assert_null(redis);
	ASSERT_REFUSED(&options, tw_redis_worker_start(&worker, &options, NULL, NULL));
	ASSERT_REFUSED(&worker_options,
		       tw_redis_worker_start(&worker, &options, &worker_options, NULL));
	assert_null(worker);
}

STORED(fixture, task_with_a_reserved_field_is_refused)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_task tasks[2] = {{.key = "one", .key_size = 3},
					 {.key = "two", .key_size = 3}};
	struct tw_redis_info info = {.task = tasks[0]};
	struct tw_redis_added each[2];

	ASSERT_REFUSED(&tasks[0], tw_redis_add(redis, &tasks[0], 1, NULL));
	ASSERT_REFUSED(&info, tw_redis_restore(redis, &info, 1, NULL));
	ASSERT_REFUSED(&info.task, tw_redis_restore(redis, &info, 1, NULL));
	info.state = TW_REDIS_DEAD;
	ASSERT_REFUSED(&info, tw_redis_restore(redis, &info, 1, NULL));
	ASSERT_REFUSED(&info.task, tw_redis_restore(redis, &info, 1, NULL));
	assert_int_equal(stats_of(redis).tasks + stats_of(redis).dead, 0);
	/* The other one is added. */
	ASSERT_REFUSED(&tasks[1], tw_redis_add(redis, tasks, 2, each));
	assert_int_equal(each[0].status, TW_OK);
	assert_int_equal(each[1].status, TW_INVALID);
	assert_int_equal(stats_of(redis).tasks, 1);
}

STORED(fixture, limits_with_a_reserved_field_are_refused)
{
	struct tw_redis *redis = fixture->redis;
	const char *const groups[] = {NULL, "group"};

	for (size_t i = 0; i < 2; i++) {
		struct tw_redis_limits limits = {.paused = true};

		ASSERT_REFUSED(&limits, tw_redis_set_limits(redis, groups[i], &limits));
		SPOIL(&limits);
		assert_ok(redis, tw_redis_get_limits(redis, groups[i], &limits));
		assert_false(limits.paused);
		ASSERT_FILLED(&limits);
	}
}

STORED(fixture, job_with_a_reserved_field_is_refused)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_batch *batch = claim_new(redis, "one", TW_MINUTE);
	struct tw_redis_job job = *only_job(batch);

	ASSERT_REFUSED(&job, tw_redis_extend(redis, &job, 1, TW_SECOND, NULL));
	ASSERT_REFUSED(&job, tw_redis_finish(redis, &job, 1, TW_REDIS_DONE, NULL, NULL));
	assert_ok(redis, tw_redis_finish(redis, &job, 1, TW_REDIS_DONE, NULL, NULL));
	ASSERT_FILLED(&job);
}

STORED(fixture, reserved_fields_of_errors_become_0)
{
	struct tw_redis_error error;
	struct tw_redis *redis;

	SPOIL(&error);
	assert_int_equal(tw_redis_open(&redis, &fixture->options, &error), TW_OK);
	ASSERT_FILLED(&error);
	client_close(redis);
	assert_int_equal(tw_redis_open_beside(fixture->redis, "no name", 1, &redis, &error),
			 TW_INVALID);
	ASSERT_FILLED(&error);
	assert_int_equal(cancel_task(fixture->redis, "none"), TW_NOT_FOUND);
	tw_redis_last_error(fixture->redis, &error);
	ASSERT_FILLED(&error);
}

static bool see(void *context, const struct tw_redis_info *info)
{
	struct tw_redis_info seen = *info;

	*(int *)context += 1;
	ASSERT_FILLED(&seen.task);
	seen = *info;
	ASSERT_FILLED(&seen);
	return true;
}

STORED(fixture, reserved_fields_of_what_a_namespace_has_become_0)
{
	struct tw_redis *redis = fixture->redis;
	struct tw_redis_task task = {.key = "one", .key_size = 3, .group = "group"};
	struct tw_redis_group_stats row;
	struct tw_redis_stats stats;
	size_t count;
	int seen = 0;

	add_one(redis, &task);
	SPOIL(&stats);
	assert_ok(redis, tw_redis_get_stats(redis, &stats));
	assert_int_equal(stats.tasks, 1);
	ASSERT_FILLED(&stats);
	SPOIL(&row);
	assert_ok(redis, tw_redis_get_groups(redis, &row, 1, &count));
	assert_int_equal(count, 1);
	ASSERT_FILLED(&row);
	assert_ok(redis, tw_redis_get(redis, "one", 3, see, &seen));
	assert_ok(redis, tw_redis_each(redis, TW_REDIS_TASKS, see, &seen));
	assert_int_equal(seen, 2);
}

STORED(fixture, reserved_fields_of_what_a_worker_has_become_0)
{
	struct tw_redis_worker_stats stats;
	struct tw_redis_worker_info row;
	struct tw_redis_worker *worker;
	struct tw_redis_error error;
	size_t count = 0;

	SPOIL(&error);
	assert_int_equal(tw_redis_worker_start(&worker, &fixture->options, NULL, &error), TW_OK);
	ASSERT_FILLED(&error);
	SPOIL(&stats);
	assert_int_equal(tw_redis_worker_get_stats(worker, NULL, &stats), TW_OK);
	ASSERT_FILLED(&stats.error);
	ASSERT_FILLED(&stats);
	assert_int_equal(tw_redis_worker_get_stats(worker, fixture->name_space, &stats), TW_OK);
	ASSERT_FILLED(&stats);
	SPOIL(&row);
	WAIT_UNTIL(tw_redis_get_workers(fixture->redis, &row, 1, &count) == TW_OK && count == 1);
	ASSERT_FILLED(&row);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

FIXTURE_FILE
