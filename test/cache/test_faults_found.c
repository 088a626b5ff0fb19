/* SPDX-License-Identifier: MIT */
/* These are faults that the cache once had, each shown by its effect on users. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"

#include <time.h>

static struct tw_wheel *open_wheel(tw_duration interval, enum tw_clock clock, int workers)
{
	struct tw_options options = {.clock = clock, .workers = workers, .max_workers = workers};
	struct tw_wheel *wheel;

	assert_status(tw_create(&wheel, interval, 64, ignore_task, &options), TW_OK);
	return wheel;
}

static void sleep_for(tw_duration time)
{
	struct timespec left = {(time_t)(time / TW_SECOND), (long)(time % TW_SECOND)};

	nanosleep(&left, NULL);
}

struct readers {
	struct tw_cache *cache;
	atomic_bool ended;
};

static void *read_on(void *argument)
{
	struct readers *readers = argument;
	char buffer[8];

	/* relaxed: an end flag, orders nothing */
	while (!atomic_load_explicit(&readers->ended, memory_order_relaxed))
		(void)tw_cache_get(readers->cache, "k", 1, buffer, sizeof(buffer), NULL);
	return NULL;
}

/* The clock is real, as the fault is a race of two threads. */
static void hit_beside_a_touch_does_not_bring_the_old_end_back(void **state)
{
	struct tw_wheel *wheel = open_wheel(TW_MILLISECOND, TW_CLOCK_MONOTONIC, 1);
	struct tw_cache_options options = {
		.wheel = wheel, .jitter = -1, .idle = 10 * TW_MINUTE, .shards = 1};
	struct readers readers = {.cache = NULL};
	const struct tw_cache_entry *entry;
	pthread_t thread;
	tw_duration end;

	assert_status(tw_cache_create(&readers.cache, TW_HOUR, &options), TW_OK);
	assert_int_equal(pthread_create(&thread, NULL, read_on, &readers), 0);
	end = tw_now(wheel) + 500 * TW_MILLISECOND;
	while (tw_now(wheel) < end) {
		tw_duration latest;

		tw_cache_set(readers.cache, "k", 1, "v", 1);
		tw_cache_touch(readers.cache, "k", 1, TW_MINUTE);
		latest = tw_now(wheel) + TW_MINUTE;
		assert_status(tw_cache_acquire(readers.cache, "k", 1, 0, &entry), TW_OK);
		assert_true(tw_cache_entry_deadline(entry) <= latest);
		tw_cache_entry_release(entry);
	}
	/* relaxed: as above */
	atomic_store_explicit(&readers.ended, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	tw_cache_destroy(readers.cache);
	tw_destroy(wheel);
}

static uint64_t weigh_slowly(void *wheel, const void *key, size_t key_size, const void *value,
			     size_t value_size)
{
	assert_status(tw_advance(wheel, TW_SECOND), TW_OK);
	return key_size + value_size;
}

static void lifetime_does_not_begin_before_the_value_is_weighed(void **state)
{
	struct tw_wheel *wheel = open_wheel(TW_SECOND, TW_CLOCK_MANUAL, 1);
	struct tw_cache_options options = {
		.wheel = wheel, .context = wheel, .weigh = weigh_slowly, .jitter = -1};
	const struct tw_cache_entry *entry;
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	assert_status(tw_cache_set(cache, "k", 1, "v", 1), TW_OK);
	assert_status(tw_cache_acquire(cache, "k", 1, 0, &entry), TW_OK);
	assert_int_equal(tw_cache_entry_deadline(entry), tw_now(wheel) + TW_HOUR);
	tw_cache_entry_release(entry);
	tw_cache_destroy(cache);
	tw_destroy(wheel);
}

static void weights_too_large_for_a_sum_keep_the_limit(void **state)
{
	const uint64_t huge = (uint64_t)1 << 63;
	struct tw_cache_options options = {.max_bytes = TW_CACHE_WEIGHT_MAX, .shards = 1};
	struct tw_cache_stats stats;
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	/* Without weights, such values are equally heavy. */
	for (int i = 0; i < 4; i++)
		assert_status(put_adopted(cache, &i, sizeof(i), &options, i & 1 ? huge : 0,
					  i & 1 ? 0 : huge, NULL, NULL, TW_HOUR),
			      TW_OK);
	tw_cache_get_stats(cache, &stats);
	assert_int_equal(stats.entries, 1);
	assert_int_equal(stats.bytes, TW_CACHE_WEIGHT_MAX);
	tw_cache_destroy(cache);
}

static void heavy_value_stays_though_all_others_have_to_go_in(enum tw_cache_policy policy,
							      unsigned shards)
{
	enum { FEW = 5000, MOST = 8 * FEW };
	struct tw_cache_options options = {.max_bytes = MOST, .policy = policy, .shards = shards};
	struct tw_cache_stats stats;
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	for (int i = 0; i < FEW; i++)
		assert_status(tw_cache_set(cache, &i, sizeof(i), "four", 4), TW_OK);
	assert_status(put_adopted(cache, "heavy", 5, NULL, 0, MOST, NULL, NULL, TW_HOUR), TW_OK);
	tw_cache_get_stats(cache, &stats);
	assert_int_equal(stats.entries, 1);
	assert_int_equal(stats.removed[TW_CAUSE_SIZE], FEW);
	assert_status(tw_cache_get(cache, "heavy", 5, NULL, 0, NULL), TW_OK);
	tw_cache_destroy(cache);
}

static void heavy_value_stays_though_all_others_have_to_go(void **state)
{
	for (unsigned shards = 1; shards <= 16; shards *= 4) {
		heavy_value_stays_though_all_others_have_to_go_in(TW_POLICY_LRU, shards);
		heavy_value_stays_though_all_others_have_to_go_in(TW_POLICY_S3FIFO, shards);
	}
}

struct source {
	struct tw_cache *cache;
	atomic_int value;
	atomic_int begun;
	atomic_int held; /* the value whose loads wait */
};

static enum tw_status load_held(void *argument, const void *key, size_t key_size,
				struct tw_cache_loading *loading)
{
	struct source *source = argument;
	int value = atomic_load_explicit(&source->value, memory_order_seq_cst);

	/* seq_cst: a test's signals. */
	atomic_fetch_add_explicit(&source->begun, 1, memory_order_seq_cst);
	while (atomic_load_explicit(&source->held, memory_order_seq_cst) == value)
		sleep_for(TW_MILLISECOND / 10);
	return tw_cache_load_copy(loading, &value, sizeof(value), 0);
}

static void *take_one(void *argument)
{
	struct source *source = argument;
	const struct tw_cache_entry *entry;
	intptr_t value;

	assert_status(tw_cache_take(source->cache, "k", 1, load_held, source, TW_FOREVER, &entry),
		      TW_OK);
	value = *(const int *)tw_cache_entry_value(entry, NULL);
	tw_cache_entry_release(entry);
	return (void *)value;
}

static void take_after_a_delete_does_not_get_what_was_loaded_before_it(void **state)
{
	struct source source = {.value = 1, .held = 1};
	struct tw_cache_stats stats;
	pthread_t threads[2];
	void *values[2];

	assert_status(tw_cache_create(&source.cache, TW_HOUR, NULL), TW_OK);
	pthread_create(&threads[0], NULL, take_one, &source);
	/* seq_cst: a test's signals. */
	while (atomic_load_explicit(&source.begun, memory_order_seq_cst) == 0)
		sleep_for(TW_MILLISECOND / 10);
	atomic_store_explicit(&source.value, 2, memory_order_seq_cst);
	assert_status(tw_cache_delete(source.cache, "k", 1), TW_NOT_FOUND);
	/* The source still holds the first load. */
	pthread_create(&threads[1], NULL, take_one, &source);
	pthread_join(threads[1], &values[1]);
	assert_int_equal((intptr_t)values[1], 2);
	atomic_store_explicit(&source.held, 0, memory_order_seq_cst);
	pthread_join(threads[0], &values[0]);
	assert_int_equal((intptr_t)values[0], 1);
	tw_cache_get_stats(source.cache, &stats);
	assert_int_equal(stats.loads, 2);
	assert_int_equal(stats.misses, 2);
	assert_int_equal(stats.load_waits, 0);
	tw_cache_destroy(source.cache);
}

static enum tw_status load_cancelled(void *argument, const void *key, size_t key_size,
				     struct tw_cache_loading *loading)
{
	/* The cancellation stays pending until a cancellation point. */
	pthread_cancel(pthread_self());
	return tw_cache_load_copy(loading, "v", 1, 50 * TW_MILLISECOND);
}

static void *take_cancelled(void *argument)
{
	const struct tw_cache_entry *entry;

	may_fail(tw_cache_take(argument, "k", 1, load_cancelled, NULL, TW_SECOND, &entry));
	tw_cache_entry_release(entry);
	pthread_testcancel();
	return NULL;
}

/* This clock wakes its wheel by a write, which is a cancellation point. */
static void cancelled_thread_keeps_no_lock(void **state)
{
	struct tw_wheel *wheel = open_wheel(TW_MILLISECOND, TW_CLOCK_BOOTTIME, 1);
	struct tw_cache_options options = {.wheel = wheel, .shards = 1};
	struct tw_cache *cache;
	pthread_t thread;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	sleep_for(20 * TW_MILLISECOND);
	pthread_create(&thread, NULL, take_cancelled, cache);
	pthread_join(thread, NULL);
	/* A kept lock would make this wait for ever. */
	(void)tw_cache_delete(cache, "k", 1);
	tw_cache_destroy(cache);
	tw_destroy(wheel);
}

static void free_where_threads_end(void *value, size_t value_size, void *context)
{
	int *frees = context;

	pthread_testcancel();
	++*frees;
}

static void *destroy_and_signal(void *argument)
{
	struct source *source = argument;

	tw_cache_destroy(source->cache);
	/* seq_cst: a test's signal. */
	atomic_store_explicit(&source->begun, 1, memory_order_seq_cst);
	return NULL;
}

/* The load evicts another value, which the cancelled thread must free. */
static void thread_cancelled_while_a_value_is_freed_leaves_no_take_behind(void **state)
{
	struct tw_cache_options options = {.max_entries = 1, .shards = 1};
	struct source source = {0};
	pthread_t thread;
	int frees = 0;

	assert_status(tw_cache_create(&source.cache, TW_HOUR, &options), TW_OK);
	assert_status(put_adopted(source.cache, "other", 5, "value", 5, 0, free_where_threads_end,
				  &frees, TW_HOUR),
		      TW_OK);
	pthread_create(&thread, NULL, take_cancelled, source.cache);
	pthread_join(thread, NULL);
	assert_int_equal(frees, 1);
	/* A take that still counted would make this wait for ever. */
	pthread_create(&thread, NULL, destroy_and_signal, &source);
	for (int i = 0; i < 10000; i++) {
		/* seq_cst: a test's signal. */
		if (atomic_load_explicit(&source.begun, memory_order_seq_cst) != 0)
			break;
		sleep_for(TW_MILLISECOND);
	}
	/* seq_cst: a test's signal. */
	assert_int_equal(atomic_load_explicit(&source.begun, memory_order_seq_cst), 1);
	pthread_join(thread, NULL);
}

struct flusher {
	struct tw_cache *cache;
	atomic_int status;
};

static void flush_inside(void *argument)
{
	struct flusher *flusher = argument;

	tw_cache_set(flusher->cache, "k", 1, "v", 1);
	tw_cache_delete(flusher->cache, "k", 1);
	/* seq_cst: a test's signal. */
	atomic_store_explicit(&flusher->status, (int)tw_cache_flush(flusher->cache),
			      memory_order_seq_cst);
}

static void heed_not(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
}

static void flush_in_the_only_worker_does_not_wait_for_itself(void **state)
{
	struct tw_wheel *wheel = open_wheel(TW_MILLISECOND, TW_CLOCK_MONOTONIC, 1);
	struct tw_cache_options options = {.wheel = wheel, .on_remove = heed_not};
	struct flusher flusher = {.status = -1};
	struct tw_timer timer;

	assert_status(tw_cache_create(&flusher.cache, TW_HOUR, &options), TW_OK);
	assert_status(tw_after_func(wheel, 0, flush_inside, &flusher, &timer), TW_OK);
	assert_status(tw_wait_idle(wheel), TW_OK);
	assert_int_equal(atomic_load_explicit(&flusher.status, memory_order_seq_cst), TW_INVALID);
	tw_cache_destroy(flusher.cache);
	tw_destroy(wheel);
}

/* The address sanitizer finds this. The clock is real: entries expire in the destroy. */
static void cache_may_end_while_its_entries_expire(void **state)
{
	struct tw_wheel *wheel = open_wheel(200 * TW_MICROSECOND, TW_CLOCK_MONOTONIC, 4);
	struct tw_cache_options options = {.wheel = wheel, .shards = 1, .jitter = -1};

	for (int round = 0; round < TEST_SHARE_OF(1000); round++) {
		struct tw_cache *cache;

		assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
		for (int i = 0; i < 600; i++)
			tw_cache_set_with_expire(cache, &i, sizeof(i), "v", 1,
						 (1 + i % 40) * 50 * TW_MICROSECOND);
		sleep_for(round * 37 % 1500 * TW_MICROSECOND);
		tw_cache_destroy(cache);
	}
	tw_wait_idle(wheel);
	tw_destroy(wheel);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(hit_beside_a_touch_does_not_bring_the_old_end_back),
	cmocka_unit_test(lifetime_does_not_begin_before_the_value_is_weighed),
	cmocka_unit_test(weights_too_large_for_a_sum_keep_the_limit),
	cmocka_unit_test(heavy_value_stays_though_all_others_have_to_go),
	cmocka_unit_test(take_after_a_delete_does_not_get_what_was_loaded_before_it),
	cmocka_unit_test(cancelled_thread_keeps_no_lock),
	cmocka_unit_test(thread_cancelled_while_a_value_is_freed_leaves_no_take_behind),
	cmocka_unit_test(flush_in_the_only_worker_does_not_wait_for_itself),
	cmocka_unit_test(cache_may_end_while_its_entries_expire),
};

TEST_PROGRAM(tests)
