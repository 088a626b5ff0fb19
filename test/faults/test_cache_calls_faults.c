/* SPDX-License-Identifier: MIT */
/*
 * Every public call of the cache meets the failure of each of its allocations and threads, and of
 * each pair of allocations. A call that reports missing memory has changed nothing and works when
 * there is memory again; each adopted value is freed once. Leaks are found by the address
 * sanitizer's run.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/cache_calls.h"
#include "support/recorder.h"
#include "support/stats.h"

#include <timingwheel/cache.h>

enum { OLD = 3, LARGE = 100000 };

/* A stage is a cache with "old-0" to "old-2", each with the value "0", set by another thread. */
struct stage {
	enum tw_status (*call)(struct stage *stage);
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	enum tw_cache_policy policy;
	int adopted;
	int freed;
	int removed;       /* old keys that the call removed */
	bool has_new;      /* the call has set "new" */
	bool may_have_new; /* the call may have set it: a loaded value need not be kept */
};

static const char large[LARGE];

static enum tw_status sets_new(struct stage *stage, enum tw_status status)
{
	stage->has_new = status == TW_OK;
	return status;
}

static enum tw_status call_set(struct stage *stage)
{
	return sets_new(stage, tw_cache_set(stage->cache, "new", 3, "0", 1));
}

static enum tw_status call_set_large(struct stage *stage)
{
	return sets_new(stage, tw_cache_set(stage->cache, "new", 3, large, LARGE));
}

static enum tw_status call_set_with_expire(struct stage *stage)
{
	return sets_new(stage, tw_cache_set_with_expire(stage->cache, "new", 3, "0", 1, TW_HOUR));
}

static enum tw_status call_set_again(struct stage *stage)
{
	return tw_cache_set(stage->cache, "old-1", 5, "0", 1);
}

static enum tw_status call_add(struct stage *stage)
{
	return sets_new(stage, put_added(stage->cache, "new", 3, "0", 1, TW_HOUR));
}

static enum tw_status call_replace(struct stage *stage)
{
	return put_replaced(stage->cache, "old-1", 5, "0", 1, TW_HOUR);
}

static void free_adopted(void *value, size_t size, void *context)
{
	struct stage *stage = context;

	stage->freed++;
}

static enum tw_status call_adopt(struct stage *stage)
{
	enum tw_status status =
		put_adopted(stage->cache, "new", 3, VALUE(1), 1, 1, free_adopted, stage, TW_HOUR);

	stage->adopted += status == TW_OK;
	return sets_new(stage, status);
}

static enum tw_status call_get(struct stage *stage)
{
	char value[1];

	return tw_cache_get(stage->cache, "old-1", 5, value, 1, NULL);
}

static enum tw_status call_acquire(struct stage *stage)
{
	const struct tw_cache_entry *entries[40];
	enum tw_status status = TW_OK;
	int count = 0;

	/* This is more than a thread's own pins. */
	while (count < 40 && status == TW_OK)
		status = tw_cache_acquire(stage->cache, "old-1", 5, 0, &entries[count++]);
	while (count-- > 0)
		tw_cache_entry_release(entries[count]);
	return status;
}

static enum tw_status call_peek(struct stage *stage)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = tw_cache_acquire(stage->cache, "old-1", 5, TW_CACHE_NO_USE, &entry);

	tw_cache_entry_release(entry);
	return status;
}

static enum tw_status call_delete(struct stage *stage)
{
	stage->removed = 1;
	return tw_cache_delete(stage->cache, "old-1", 5);
}

static enum tw_status call_pop(struct stage *stage)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = pop_key(stage->cache, "old-1", 5, &entry);

	tw_cache_entry_release(entry);
	stage->removed = status == TW_OK;
	return status;
}

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_value *computed)
{
	assert_null(entry);
	*computed = (struct tw_cache_value){.data = "0", .size = 1};
	return TW_CACHE_REPLACE;
}

static enum tw_status call_compute(struct stage *stage)
{
	return sets_new(stage, tw_cache_compute(stage->cache, "new", 3, compute, NULL));
}

static enum tw_status call_touch(struct stage *stage)
{
	return touch_key(stage->cache, "old-1", 5, TW_MINUTE);
}

/* A loaded value that is returned and not kept is no failure. */
static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	return give_copied(loading, "0", 1, 0);
}

static enum tw_status load_by_adoption(void *argument, const void *key, size_t key_size,
				       struct tw_cache_loading *loading)
{
	struct stage *stage = argument;
	enum tw_status status;

	status = give_adopted(loading, VALUE(1), 1, 1, free_adopted, stage, 0);
	stage->adopted += status == TW_OK;
	return status;
}

static enum tw_status take(struct stage *stage, tw_cache_load *loader)
{
	const struct tw_cache_entry *entry;
	enum tw_status status =
		tw_cache_take(stage->cache, "new", 3, loader, stage, TW_FOREVER, &entry);

	assert_int_equal(status == TW_OK, entry != NULL);
	tw_cache_entry_release(entry);
	stage->may_have_new = true;
	return status;
}

static enum tw_status call_take(struct stage *stage)
{
	return take(stage, load);
}

static enum tw_status call_take_of_an_adopted_value(struct stage *stage)
{
	return take(stage, load_by_adoption);
}

static enum tw_status call_take_by_the_cache(struct stage *stage)
{
	return take(stage, NULL);
}

static void be_answered(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	atomic_store((atomic_int *)context, (int)status);
}

static enum tw_status call_take_async(struct stage *stage)
{
	atomic_int outcome;
	enum tw_status status;

	atomic_init(&outcome, -1);
	status = tw_cache_take_async(stage->cache, "new", 3, be_answered, &outcome);
	stage->may_have_new = true;
	if (status == TW_OK) {
		(void)tw_poll(stage->wheel, NULL);
		assert_true(atomic_load(&outcome) >= 0);
		status = (enum tw_status)atomic_load(&outcome);
	}
	return status;
}

static enum tw_status call_get_many(struct stage *stage)
{
	struct tw_cache_lookup items[] = {{.key = "old-0", .key_size = 5},
					  {.key = "old-1", .key_size = 5}};

	return tw_cache_get_many(stage->cache, items, 2, NULL);
}

static enum tw_status call_clear(struct stage *stage)
{
	enum tw_status status = tw_cache_clear(stage->cache);

	stage->removed = status == TW_OK ? OLD : 0;
	return status;
}

static int visit(void *count, const struct tw_cache_entry *entry)
{
	++*(int *)count;
	return 1;
}

static enum tw_status call_each(struct stage *stage)
{
	int count = 0;
	enum tw_status status = tw_cache_each(stage->cache, visit, &count);

	assert_true(status != TW_OK || count == OLD);
	return status;
}

static enum tw_status call_set_limit(struct stage *stage)
{
	return tw_cache_set_limit(stage->cache, 1000, 0);
}

static enum tw_status call_get_stats(struct stage *stage)
{
	struct tw_cache_stats stats;

	return tw_cache_get_stats(stage->cache, &stats);
}

static void ignore_text(void *context, const char *text, size_t size)
{
}

static enum tw_status call_write_metrics(struct stage *stage)
{
	return tw_cache_write_metrics(stage->cache, ignore_text, NULL, NULL);
}

static enum tw_status call_flush(struct stage *stage)
{
	return tw_cache_flush(stage->cache);
}

static enum tw_status call_stop(struct stage *stage)
{
	enum tw_status status = tw_cache_stop(stage->cache);

	return status == TW_CLOSED ? TW_OK : status;
}

static void ignore_removal(void *context, const struct tw_cache_entry *entry,
			   enum tw_cache_cause cause)
{
}

/* This cache has all options. */
static enum tw_status create(struct stage *stage)
{
	const struct tw_cache_options options = {.wheel = stage->wheel,
						 .name = "faults",
						 .policy = stage->policy,
						 .max_entries = 1000,
						 .shards = 1,
						 .jitter = -1,
						 .negative_expire = TW_MINUTE,
						 .on_remove = ignore_removal,
						 .load = load,
						 .loaders = 1,
						 .refresh_after = TW_MINUTE,
						 .idle = TW_HOUR,
						 .stale_if_error = TW_MINUTE};

	return tw_cache_create(&stage->cache, TW_HOUR, &options);
}

static void stage_open_wheel(struct stage *stage)
{
	const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};

	*stage = (struct stage){.call = stage->call, .policy = stage->policy};
	assert_status(tw_create(&stage->wheel, INTERVAL, 16, ignore_task, &options), TW_OK);
}

static void *set_old(void *cache)
{
	for (int i = 0; i < OLD; i++) {
		char key[8];

		snprintf(key, sizeof(key), "old-%d", i);
		if (tw_cache_set(cache, key, 5, "0", 1) != TW_OK)
			return cache;
	}
	return NULL;
}

static void stage_open(struct stage *stage)
{
	pthread_t other;
	void *failed;

	stage_open_wheel(stage);
	assert_status(create(stage), TW_OK);
	assert_int_equal(pthread_create(&other, NULL, set_old, stage->cache), 0);
	pthread_join(other, &failed);
	assert_null(failed);
}

static void stage_close(struct stage *stage)
{
	tw_cache_destroy(stage->cache);
	tw_destroy(stage->wheel);
	assert_int_equal(stage->freed, stage->adopted);
}

static void assert_sound(struct stage *stage)
{
	uint64_t count = entries_of(stage->cache);

	if (stage->may_have_new)
		assert_in_range(count, OLD, OLD + 1);
	else
		assert_int_equal(count, OLD - stage->removed + stage->has_new);
}

static void call_with_fault(void *context)
{
	struct stage *stage = context;
	enum tw_status status;
	bool met;

	stage_open(stage);
	begin_faults();
	status = stage->call(stage);
	met = end_faults();
	assert_sound(stage);
	if (status != TW_OK) {
		assert_status(status, TW_NO_MEMORY);
		assert_true(met);
		assert_status(stage->call(stage), TW_OK);
		assert_sound(stage);
	}
	stage_close(stage);
}

TEST(once, each_call_meets_each_failure)
{
	static enum tw_status (*const calls[])(struct stage *) = {call_set,
								  call_set_large,
								  call_set_with_expire,
								  call_set_again,
								  call_add,
								  call_replace,
								  call_adopt,
								  call_get,
								  call_acquire,
								  call_peek,
								  call_delete,
								  call_pop,
								  call_compute,
								  call_touch,
								  call_take,
								  call_take_of_an_adopted_value,
								  call_take_by_the_cache,
								  call_take_async,
								  call_get_many,
								  call_clear,
								  call_each,
								  call_set_limit,
								  call_get_stats,
								  call_write_metrics,
								  call_flush,
								  call_stop};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (enum fault fault = 0; fault < FAULT_KINDS; fault++) {
			struct stage stage = {.call = calls[i], .policy = TW_POLICY_S3FIFO};

			(void)fail_each(fault, call_with_fault, &stage);
			stage.policy = TW_POLICY_LRU;
			(void)fail_each(fault, call_with_fault, &stage);
		}
}

static void create_with_fault(void *context)
{
	struct stage *stage = context;
	enum tw_status status;
	int anything;
	bool met;

	if (stage->call)
		stage_open_wheel(stage);
	else
		stage->wheel = NULL;
	stage->cache = (void *)&anything;
	begin_faults();
	errno = 0;
	status = create(stage);
	met = end_faults();
	if (status == TW_OK) {
		tw_cache_destroy(stage->cache);
	} else {
		assert_true(met);
		assert_null(stage->cache);
		if (status != TW_NO_MEMORY) {
			assert_status(status, TW_SYSTEM);
			assert_int_equal(errno, EAGAIN);
		}
	}
	tw_destroy(stage->wheel);
}

TEST(once, creation_meets_each_failure)
{
	for (enum fault fault = 0; fault < FAULT_KINDS; fault++) {
		struct stage with_own_wheel = {.call = NULL};
		struct stage on_a_wheel = {.call = call_set};

		(void)fail_each(fault, create_with_fault, &with_own_wheel);
		(void)fail_each(fault, create_with_fault, &on_a_wheel);
	}
}

/* A thread that has used no cache yet looks up a key twice. */
struct newcomer {
	struct tw_cache *cache;
	enum tw_status first;
	enum tw_status second;
	bool has_failed; /* the call that was to fail */
};

static void *look_up_twice(void *argument)
{
	struct newcomer *newcomer = argument;
	char value[1];

	fail_calls("pthread_setspecific", ENOMEM);
	newcomer->first = tw_cache_get(newcomer->cache, "old-1", 5, value, 1, NULL);
	newcomer->has_failed = end_faults();
	newcomer->second = tw_cache_get(newcomer->cache, "old-1", 5, value, 1, NULL);
	return NULL;
}

/* The system has no room to register the end of a thread. */
TEST(once, thread_without_room_for_its_end_is_refused)
{
	struct stage stage = {.call = NULL};
	struct newcomer newcomer;
	pthread_t thread;

	stage_open(&stage);
	newcomer.cache = stage.cache;
	assert_int_equal(pthread_create(&thread, NULL, look_up_twice, &newcomer), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_status(newcomer.first, TW_NO_MEMORY);
	assert_true(newcomer.has_failed);
	assert_status(newcomer.second, TW_OK);
	stage_close(&stage);
}
