/* SPDX-License-Identifier: MIT */
/*
 * Each of the first 10,000 allocations of a mixed run fails, and all for a while from some point
 * on: the call says so and has changed nothing, no value is lost, no counter is wrong, and (the
 * address sanitizer's run sees to that) nothing leaks. A model says what the cache must hold.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/cache_recorder.h"
#include "support/seed.h"
#include "support/stats.h"
#include "support/wait.h"

#include "faults/faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEYS = 200,
	FIRST_ALLOCATIONS = TEST_SHARE_OF(4000),
	SPACING = 200, /* from one fault to the next */
	VALUE_MOST = 2000,
	ABSENT = -1,
};

struct run {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	struct random random;
	int versions[KEYS]; /* that the keys have; ABSENT: none */
	int next_version;
	long no_memory; /* calls that answered so */
	/* Values given to tw_cache_adopt with TW_OK, and freed. */
	long adopted;
	atomic_long freed;
	atomic_long told;
};

static void count_removal(void *context, const struct tw_cache_entry *entry,
			  enum tw_cache_cause cause)
{
	struct run *run = context;

	(void)entry;
	(void)cause;
	atomic_fetch_add(&run->told, 1);
}

static void free_adopted(void *value, size_t size, void *context)
{
	struct run *run = context;

	(void)size;
	atomic_fetch_add(&run->freed, 1);
	free(value);
}

/* Keys of two sizes. */
static size_t key_bytes(int key, char bytes[64])
{
	memset(bytes, 'k', 64);
	memcpy(bytes, &key, sizeof(key));
	return key % 2 ? 16 : 64;
}

/* Small ones, and mostly such that get an allocation of their own. Begins with the version. */
static size_t value_bytes(int version, char bytes[VALUE_MOST])
{
	size_t size = version % 4 ? VALUE_MOST - (size_t)(version % 97) : sizeof(version);

	memset(bytes, version & 0x7f, size);
	memcpy(bytes, &version, sizeof(version));
	return size;
}

/* True if it did what was asked; false: out of memory. */
static bool judge(struct run *run, enum tw_status status, enum tw_status expected)
{
	if (status == TW_NO_MEMORY) {
		run->no_memory++;
		return false;
	}
	assert_status(status, expected);
	return true;
}

static void step_set(struct run *run, int key, int kind)
{
	bool is_there = run->versions[key] != ABSENT;
	int version = run->next_version++;
	char bytes[64];
	char value[VALUE_MOST];
	size_t size = key_bytes(key, bytes);
	size_t value_size = value_bytes(version, value);
	enum tw_status status;
	enum tw_status expected = TW_OK;

	if (kind == 0) {
		expected = is_there ? TW_EXISTS : TW_OK;
		status = tw_cache_add(run->cache, bytes, size, value, value_size, TW_HOUR);
	} else if (kind == 1) {
		expected = is_there ? TW_OK : TW_NOT_FOUND;
		status = tw_cache_replace(run->cache, bytes, size, value, value_size, TW_HOUR);
	} else {
		status = tw_cache_set(run->cache, bytes, size, value, value_size);
	}
	if (judge(run, status, expected) && status == TW_OK)
		run->versions[key] = version;
}

/* The value is the test's own allocation, which may fail too. */
static void step_adopt(struct run *run, int key)
{
	int *value = malloc(sizeof(*value));
	char bytes[64];
	size_t size = key_bytes(key, bytes);

	if (value == NULL)
		return;
	*value = run->next_version++;
	if (judge(run,
		  tw_cache_adopt(run->cache, bytes, size, value, sizeof(*value), 1000, free_adopted,
				 run, TW_HOUR),
		  TW_OK)) {
		run->versions[key] = *value;
		run->adopted++;
	} else {
		free(value);
	}
}

static void step_get(struct run *run, int key)
{
	int version = ABSENT;
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	enum tw_status status =
		tw_cache_get(run->cache, bytes, size, &version, sizeof(version), NULL);

	if (status == TW_TRUNCATED)
		status = TW_OK;
	if (judge(run, status, run->versions[key] == ABSENT ? TW_NOT_FOUND : TW_OK))
		assert_int_equal(version, run->versions[key]);
}

static void step_delete(struct run *run, int key)
{
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	enum tw_status status = tw_cache_delete(run->cache, bytes, size);

	if (judge(run, status, run->versions[key] == ABSENT ? TW_NOT_FOUND : TW_OK))
		run->versions[key] = ABSENT;
}

static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct run *run = argument;
	char value[VALUE_MOST];
	size_t size = value_bytes(run->next_version, value);

	(void)key;
	(void)key_size;
	return tw_cache_load_copy(loading, value, size, TW_HOUR);
}

static void step_take(struct run *run, int key)
{
	const struct tw_cache_entry *entry;
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	int version;

	if (!judge(run, tw_cache_take(run->cache, bytes, size, load, run, 0, &entry), TW_OK)) {
		assert_null(entry);
		return;
	}
	memcpy(&version, tw_cache_entry_value(entry, NULL), sizeof(version));
	tw_cache_entry_release(entry);
	if (run->versions[key] != ABSENT) {
		assert_int_equal(version, run->versions[key]);
		return;
	}
	assert_int_equal(version, run->next_version++);
	/* If there was no memory to keep it, it is not kept. */
	if (tw_cache_get(run->cache, bytes, size, NULL, 0, NULL) == TW_TRUNCATED)
		run->versions[key] = version;
}

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_computed *computed)
{
	struct run *run = context;
	static char value[VALUE_MOST];

	if (entry && run->next_version % 2 == 0)
		return TW_CACHE_DELETE;
	computed->value = value;
	computed->value_size = value_bytes(run->next_version, value);
	return TW_CACHE_REPLACE;
}

static void step_compute(struct run *run, int key)
{
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	bool deletes = run->versions[key] != ABSENT && run->next_version % 2 == 0;
	int version = run->next_version;

	if (judge(run, tw_cache_compute(run->cache, bytes, size, compute, run), TW_OK))
		run->versions[key] = deletes ? ABSENT : version;
	run->next_version++;
}

static void step_pop(struct run *run, int key)
{
	const struct tw_cache_entry *entry;
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	enum tw_status status = tw_cache_pop(run->cache, bytes, size, &entry);

	if (!judge(run, status, run->versions[key] == ABSENT ? TW_NOT_FOUND : TW_OK))
		return;
	if (entry)
		assert_memory_equal(tw_cache_entry_value(entry, NULL), &run->versions[key],
				    sizeof(int));
	tw_cache_entry_release(entry);
	run->versions[key] = ABSENT;
}

enum { SOME = 10 };

static void step_set_many(struct run *run, int first)
{
	static char values[SOME][VALUE_MOST];
	char keys[SOME][64];
	struct tw_cache_item items[SOME];
	size_t set;
	size_t accepted = 0;
	enum tw_status status;

	for (int i = 0; i < SOME; i++)
		items[i] = (struct tw_cache_item){
			.key = keys[i],
			.key_size = key_bytes((first + i * i) % KEYS, keys[i]),
			.value = values[i],
			.value_size = value_bytes(run->next_version + i, values[i]),
			.status = TW_INVALID,
		};
	status = tw_cache_set_many(run->cache, items, SOME, &set);
	if (judge(run, status, TW_OK))
		for (int i = 0; i < SOME; i++) {
			if (!judge(run, items[i].status, TW_OK))
				continue;
			accepted++;
			run->versions[(first + i * i) % KEYS] = run->next_version + i;
		}
	assert_int_equal(set, accepted);
	run->next_version += SOME;
}

static void step_delete_many(struct run *run, int first)
{
	char bytes[SOME][64];
	struct tw_cache_key keys[SOME];
	size_t deleted;
	size_t expected = 0;

	for (int i = 0; i < SOME; i++)
		keys[i] = (struct tw_cache_key){
			bytes[i], key_bytes((first + i * i) % KEYS, bytes[i]), TW_INVALID};
	if (!judge(run, tw_cache_delete_many(run->cache, keys, SOME, &deleted), TW_OK))
		return;
	for (int i = 0; i < SOME; i++) {
		int *version = &run->versions[(first + i * i) % KEYS];

		assert_status(keys[i].status, *version == ABSENT ? TW_NOT_FOUND : TW_OK);
		expected += *version != ABSENT;
		*version = ABSENT;
	}
	assert_int_equal(deleted, expected);
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	(void)entry;
	++*(int *)context;
	return 1;
}

/* All are given the same version, the next. */
static enum tw_status load_many(void *argument, struct tw_cache_missing *missing, size_t n)
{
	enum tw_status status = TW_OK;

	for (size_t i = 0; i < n && status == TW_OK; i++)
		status = load(argument, missing[i].key, missing[i].key_size, missing[i].loading);
	return status;
}

/* What a take was given, with the key's pin. If there was no memory to keep it, it is not kept. */
static void judge_taken(struct run *run, int key, const struct tw_cache_entry *entry)
{
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	int version;

	memcpy(&version, tw_cache_entry_value(entry, NULL), sizeof(version));
	tw_cache_entry_release(entry);
	assert_int_equal(version,
			 run->versions[key] != ABSENT ? run->versions[key] : run->next_version);
	if (tw_cache_get(run->cache, bytes, size, NULL, 0, NULL) == TW_TRUNCATED)
		run->versions[key] = version;
}

static void step_take_many(struct run *run, int first)
{
	char bytes[SOME][64];
	struct tw_cache_taking items[SOME];
	size_t found;
	size_t expected = 0;
	enum tw_status status;

	for (int i = 0; i < SOME; i++)
		items[i] = (struct tw_cache_taking){
			.key = bytes[i], .key_size = key_bytes((first + i * i) % KEYS, bytes[i])};
	status = tw_cache_take_many(run->cache, items, SOME, load_many, run, 0, &found);
	judge(run, status, TW_OK);
	for (int i = 0; i < SOME; i++)
		if (status == TW_OK && judge(run, items[i].status, TW_OK)) {
			judge_taken(run, (first + i * i) % KEYS, items[i].entry);
			expected++;
		} else {
			assert_null(items[i].entry);
		}
	assert_int_equal(found, expected);
	run->next_version++;
}

struct told {
	enum tw_status status;
	const struct tw_cache_entry *entry;
	atomic_int times;
};

static void be_told(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct told *told = context;

	told->status = status;
	told->entry = entry ? tw_cache_entry_pin(entry) : NULL;
	atomic_fetch_add(&told->times, 1);
}

/* By a thread of the cache. */
static void step_take_async(struct run *run, int key)
{
	char bytes[64];
	size_t size = key_bytes(key, bytes);
	struct told told = {.times = 0};

	if (!judge(run, tw_cache_take_async(run->cache, bytes, size, be_told, &told), TW_OK))
		return;
	WAIT_UNTIL(atomic_load(&told.times) == 1);
	if (judge(run, told.status, TW_OK))
		judge_taken(run, key, told.entry);
	else
		assert_null(told.entry);
	run->next_version++;
}

static void step_seldom(struct run *run)
{
	int entries = 0;
	int visited = 0;

	for (int key = 0; key < KEYS; key++)
		entries += run->versions[key] != ABSENT;
	if (judge(run, tw_cache_each(run->cache, visit, &visited), TW_OK))
		assert_int_equal(visited, entries);
	assert_int_equal(entries_of(run->cache), entries);
	if (random_once_in(&run->random, 4) && judge(run, tw_cache_clear(run->cache), TW_OK)) {
		for (int key = 0; key < KEYS; key++)
			run->versions[key] = ABSENT;
	}
}

static void step(struct run *run)
{
	int key = (int)random_below(&run->random, KEYS);
	uint64_t die = random_below(&run->random, 1000);
	char bytes[64];

	if (die < 300)
		step_set(run, key, (int)(die % 4));
	else if (die < 360)
		step_compute(run, key);
	else if (die < 380)
		step_pop(run, key);
	else if (die < 390)
		step_set_many(run, key);
	else if (die < 400)
		step_delete_many(run, key);
	else if (die < 410)
		step_take_many(run, key);
	else if (die < 430)
		step_take_async(run, key);
	else if (die < 550)
		step_adopt(run, key);
	else if (die < 700)
		step_take(run, key);
	else if (die < 850)
		step_get(run, key);
	else if (die < 950)
		step_delete(run, key);
	else if (die < 990)
		judge(run, tw_cache_touch(run->cache, bytes, key_bytes(key, bytes), TW_HOUR),
		      run->versions[key] == ABSENT ? TW_NOT_FOUND : TW_OK);
	else if (die < 995)
		step_seldom(run);
	else
		assert_status(tw_advance(run->wheel, INTERVAL), TW_OK);
}

static enum tw_status run_open(struct run *run, uint64_t seed)
{
	struct tw_options wheel_options = {.clock = TW_CLOCK_MANUAL,
					   .drive = TW_DRIVE_CALLER,
					   .workers = TW_WORKERS_INLINE,
					   .queue_capacity = 64};
	struct tw_cache_options options = {.context = run,
					   .jitter = -1,
					   .on_remove = count_removal,
					   .shards = 2,
					   .load = load,
					   .load_context = run,
					   .loaders = 1};
	enum tw_status status;

	memset(run, 0, sizeof(*run));
	run->random = random_from(seed, 1);
	for (int key = 0; key < KEYS; key++)
		run->versions[key] = ABSENT;
	assert_status(tw_create(&run->wheel, INTERVAL, 16, ignore_task, &wheel_options), TW_OK);
	options.wheel = run->wheel;
	status = tw_cache_create(&run->cache, TW_HOUR, &options);
	if (status != TW_OK)
		assert_null(run->cache);
	return status;
}

/* With another cache, on the run's wheel. */
static void run_open_with(struct run *run, const struct tw_cache_options *options)
{
	struct tw_cache_options with_wheel = *options;

	assert_status(run_open(run, 1), TW_OK);
	tw_cache_destroy(run->cache);
	with_wheel.wheel = run->wheel;
	assert_status(tw_cache_create(&run->cache, TW_HOUR, &with_wheel), TW_OK);
}

/* With memory again. */
static void assert_sound(struct run *run)
{
	struct tw_cache_stats stats;
	uint64_t removed = 0;

	for (int key = 0; key < KEYS; key++)
		step_get(run, key);
	assert_status(tw_cache_flush(run->cache), TW_OK);
	assert_status(tw_cache_get_stats(run->cache, &stats), TW_OK);
	for (int cause = 0; cause < TW_CACHE_CAUSES; cause++)
		removed += stats.removed[cause];
	assert_int_equal(stats.inserts, removed + stats.entries);
	assert_int_equal(atomic_load(&run->told), removed);
}

static void run_close(struct run *run)
{
	tw_cache_destroy(run->cache);
	tw_destroy(run->wheel);
	assert_int_equal(atomic_load(&run->freed), run->adopted);
}

/* Lives until the allocation of that number from now has failed. */
static void meet_fault(struct run *run, long number, bool and_all_after_it)
{
	long no_memory = run->no_memory;

	fail_allocation(number, and_all_after_it);
	/* There are far more allocations than one in forty steps; not all faults are told. */
	for (long i = 0; run->no_memory == no_memory && i < 40 * number + 1000; i++)
		step(run);
	for (int i = 0; and_all_after_it && i < 100; i++)
		step(run);
	assert_true(end_faults());
}

static void live_with_fault(void *context)
{
	struct run run;

	assert_status(run_open(&run, *(uint64_t *)context), TW_OK);
	for (int i = 0; i < KEYS; i++)
		step(&run);
	begin_faults();
	for (int i = 0; i < 4 * KEYS; i++)
		step(&run);
	assert_true(end_faults() || run.no_memory == 0);
	assert_sound(&run);
	run_close(&run);
}

static void each_call_stack_may_be_without_memory(void **state)
{
	uint64_t seed = seed_choose();

	(void)state;
	assert_true(fail_each(FAULT_ALLOCATION, live_with_fault, &seed) > 3);
	assert_true(fail_each(FAULT_REST, live_with_fault, &seed) > 3);
}

/* In each run one allocation of so many fails, each time another one. Under a sanitizer not all. */
static void each_of_the_first_allocations_may_fail(void **state)
{
	enum { STRIDE = SPACING / TEST_SHARE_OF(SPACING) };
	uint64_t seed = seed_choose();

	(void)state;
	for (long first = 1 + (long)(seed % STRIDE); first <= SPACING; first += STRIDE) {
		struct run run;

		assert_status(run_open(&run, seed), TW_OK);
		meet_fault(&run, first, false);
		for (long number = first; number < FIRST_ALLOCATIONS; number += SPACING)
			meet_fault(&run, SPACING, false);
		assert_sound(&run);
		run_close(&run);
	}
}

static void memory_may_run_out_at_any_allocation(void **state)
{
	uint64_t seed = seed_choose();

	(void)state;
	for (long number = 1; number <= SPACING; number += TEST_PART) {
		struct run run;

		assert_status(run_open(&run, seed), TW_OK);
		for (int times = 0; times < 5; times++)
			meet_fault(&run, number, true);
		assert_sound(&run);
		run_close(&run);
	}
}

static enum tw_status create_with_own_wheel(struct tw_cache **cache)
{
	struct tw_cache_options options = {.load = load};
	int anything;

	*cache = (void *)&anything;
	return tw_cache_create(cache, TW_HOUR, &options);
}

static void creation_may_fail_at_each_allocation(void **state)
{
	long number = 0;
	bool met;

	(void)state;
	do {
		struct tw_cache *cache;
		enum tw_status status;

		fail_allocation(++number, false);
		status = create_with_own_wheel(&cache);
		met = end_faults();
		if (status == TW_OK) {
			assert_status(tw_cache_set(cache, "key", 3, "value", 5), TW_OK);
			tw_cache_destroy(cache);
		} else {
			assert_true(met);
			assert_status(status, TW_NO_MEMORY);
			assert_null(cache);
		}
	} while (met);
	assert_in_range(number, 10, 5000);
}

static void creation_may_fail_at_each_thread(void **state)
{
	struct tw_cache *cache;

	(void)state;
	for (long number = 1; number <= 5; number++) {
		fail_thread(number);
		errno = 0;
		assert_status(create_with_own_wheel(&cache), TW_SYSTEM);
		assert_int_equal(errno, EAGAIN);
		assert_null(cache);
	}
	fail_thread(0);
	assert_status(create_with_own_wheel(&cache), TW_OK);
	tw_cache_destroy(cache);
}

/* Removal and expiry need no memory. */
static void entries_leave_without_memory(void **state)
{
	struct run run;
	struct tw_cache_stats stats;

	(void)state;
	assert_status(run_open(&run, 1), TW_OK);
	for (int key = 0; key < KEYS; key++)
		assert_status(tw_cache_set_with_expire(run.cache, &key, sizeof(key), "v", 1,
						       (key % 3 + 1) * INTERVAL),
			      TW_OK);
	fail_allocation(1, true);
	for (int key = 0; key < KEYS; key += 3)
		assert_status(tw_cache_delete(run.cache, &key, sizeof(key)), TW_OK);
	assert_status(tw_advance(run.wheel, 10 * INTERVAL), TW_OK);
	assert_status(tw_cache_flush(run.cache), TW_OK);
	assert_status(tw_cache_get_stats(run.cache, &stats), TW_OK);
	end_faults();
	assert_int_equal(stats.entries, 0);
	assert_int_equal(stats.removed[TW_CAUSE_EXPIRED], KEYS - (KEYS + 2) / 3);
	assert_int_equal(atomic_load(&run.told), KEYS);
	run_close(&run);
}

/* Those too that are far off, and have to be filed anew as they come nearer. */
static void far_entries_leave_without_memory(void **state)
{
	struct run run;

	(void)state;
	assert_status(run_open(&run, 1), TW_OK);
	for (int key = 0; key < KEYS; key++)
		assert_status(tw_cache_set_with_expire(run.cache, &key, sizeof(key), "v", 1,
						       (key + 1) * 37 * INTERVAL),
			      TW_OK);
	fail_allocation(1, true);
	for (int key = 0; key < KEYS; key++) {
		assert_status(tw_advance(run.wheel, 37 * INTERVAL), TW_OK);
		assert_int_equal(entries_of(run.cache), KEYS - 1 - key);
	}
	end_faults();
	run_close(&run);
}

/* What removed keys left behind is thrown away, and there is no memory to file the others anew. */
static void entries_that_lost_their_file_leave_without_memory(void **state)
{
	enum { MANY = 2000, KEPT = 300 };
	const struct tw_cache_options options = {.shards = 1, .jitter = -1};
	struct run run;

	(void)state;
	run_open_with(&run, &options);
	for (int key = 0; key < MANY; key++)
		assert_status(tw_cache_set_with_expire(run.cache, &key, sizeof(key), "v", 1,
						       (key + 1) * INTERVAL),
			      TW_OK);
	fail_allocation(1, true);
	for (int key = KEPT; key < MANY; key++)
		assert_status(tw_cache_delete(run.cache, &key, sizeof(key)), TW_OK);
	for (int key = 0; key < KEPT; key++) {
		assert_status(tw_advance(run.wheel, INTERVAL), TW_OK);
		assert_int_equal(entries_of(run.cache), KEPT - 1 - key);
		/* And when there is memory again, all is as it was. */
		if (key == KEPT / 2)
			end_faults();
	}
	run_close(&run);
}

/* Returns whether a flush ended before the deadline of what could not be filed. */
static bool flush_ends_before_the_deadline(void)
{
	enum { MANY = 1000 };
	const tw_duration lifetime = 500 * TW_MILLISECOND; /* comes up after half of it */
	struct tw_options wheel_options = {0};
	struct tw_cache_options options = {.shards = 1, .jitter = -1};
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	bool ends;

	assert_status(tw_create(&wheel, TW_MICROSECOND, 16, ignore_task, &wheel_options), TW_OK);
	options.wheel = wheel;
	assert_status(tw_cache_create(&cache, lifetime, &options), TW_OK);
	for (int key = 0; key < MANY; key++)
		assert_status(tw_cache_set(cache, &key, sizeof(key), "v", 1), TW_OK);
	fail_allocation(1, true);
	while (!fault_was_met())
		wait_for(TW_MILLISECOND);
	assert_status(tw_cache_flush(cache), TW_OK);
	ends = entries_of(cache) == MANY;
	end_faults();
	tw_cache_destroy(cache);
	tw_destroy(wheel);
	return ends;
}

/* Under a clock that goes on, what can't be filed comes up again and again, but nobody waits for an
 * end of that. On a busy machine a flush may begin too late to show it. */
static void flush_ends_without_memory(void **state)
{
	int attempts = 0;

	(void)state;
	while (!flush_ends_before_the_deadline())
		assert_in_range(++attempts, 1, 50);
}

/* To have a key looked at sooner may take memory: without it the deadline stays. */
static void touch_without_memory_changes_nothing(void **state)
{
	struct run run;

	(void)state;
	assert_status(run_open(&run, 1), TW_OK);
	assert_status(tw_cache_set_with_expire(run.cache, "key", 3, "v", 1, 500 * INTERVAL), TW_OK);
	fail_allocation(1, true);
	assert_status(tw_cache_touch(run.cache, "key", 3, 2 * INTERVAL), TW_NO_MEMORY);
	assert_status(tw_cache_touch(run.cache, "key", 3, 600 * INTERVAL), TW_OK);
	end_faults();
	assert_status(tw_advance(run.wheel, 599 * INTERVAL), TW_OK);
	assert_int_equal(entries_of(run.cache), 1);
	assert_status(tw_cache_touch(run.cache, "key", 3, INTERVAL), TW_OK);
	assert_status(tw_advance(run.wheel, INTERVAL), TW_OK);
	assert_int_equal(entries_of(run.cache), 0);
	run_close(&run);
}

/* Limits hold though there is no memory for what an eviction may want to note. */
static void limits_hold_without_memory(void **state)
{
	const struct tw_cache_options options = {.policy = TW_POLICY_S3FIFO, .jitter = -1};
	struct tw_cache_stats stats;
	struct run run;

	(void)state;
	run_open_with(&run, &options);
	for (int key = 0; key < 1000; key++)
		assert_status(tw_cache_set(run.cache, &key, sizeof(key), "v", 1), TW_OK);
	fail_allocation(1, true);
	assert_status(tw_cache_set_limit(run.cache, 100, 0), TW_OK);
	assert_status(tw_cache_get_stats(run.cache, &stats), TW_OK);
	end_faults();
	assert_int_equal(stats.entries, 100);
	for (int key = 0; key < 1000; key++)
		assert_status(tw_cache_set(run.cache, &key, sizeof(key), "v", 1), TW_OK);
	assert_int_equal(entries_of(run.cache), 100);
	run_close(&run);
}

/* ---- At one moment ---- */

/* By a thread that the cache does not know yet, and can't come to know. */
static void call_without_memory(void (*make)(void *argument), void *argument)
{
	struct blocked_call call;

	fail_allocation(1, true);
	blocked_call_start(&call, make, argument);
	blocked_call_end(&call);
	assert_true(end_faults());
}

/* There is none for the value, and there is for what the loader does then. */
static enum tw_status load_without_memory(void *argument, const void *key, size_t key_size,
					  struct tw_cache_loading *loading)
{
	static const char value[4 << 20];
	size_t *size = argument;

	(void)key;
	(void)key_size;
	assert_status(tw_cache_load_copy(loading, "first", 5, 0), TW_OK);
	fail_allocation(1, true);
	assert_status(tw_cache_load_copy(loading, value, sizeof(value), 0), TW_NO_MEMORY);
	assert_true(end_faults());
	if (*size == 0)
		return TW_NO_MEMORY;
	return *size > 5 ? tw_cache_load_copy(loading, value, *size, 0) : TW_OK;
}

static void loader_is_told_that_there_is_no_memory_for_its_value(void **state)
{
	static const size_t sizes[] = {0, 5, 4 << 20};
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	const struct tw_cache_entry *entry;

	for (int i = 0; i < 3; i++) {
		size_t size = sizes[i];

		assert_status(tw_cache_take(recorder->cache, "key", 3, load_without_memory, &size,
					    0, &entry),
			      size > 0 ? TW_OK : TW_NO_MEMORY);
		if (size == 0) {
			assert_null(entry);
			assert_holds_none(recorder, "key");
			continue;
		}
		(void)tw_cache_entry_value(entry, &size);
		assert_int_equal(size, sizes[i]);
		tw_cache_entry_release(entry);
		assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_OK);
	}
	cache_recorder_close_balanced(recorder);
}

static enum tw_status load_new(void *argument, const void *key, size_t key_size,
			       struct tw_cache_loading *loading)
{
	(void)key;
	(void)key_size;
	atomic_fetch_add((atomic_int *)argument, 1);
	return tw_cache_load_copy(loading, "new", 3, 0);
}

/* And the one place for a load that refreshes is free again. */
static void refresh_without_memory_is_for_the_next_lookup(void **state)
{
	atomic_int loads = 0;
	struct cache_recorder *recorder =
		cache_recorder_open_with(*state, TW_HOUR,
					 (struct tw_cache_options){.load = load_new,
								   .load_context = &loads,
								   .loaders = 1,
								   .refresh_after = TW_MINUTE,
								   .max_refreshing = 1});

	cache_set(recorder, "key", "old");
	cache_pass(recorder, 2 * TW_MINUTE);
	for (int i = 0; i < 3; i++) {
		fail_allocation(1, true);
		assert_holds(recorder, "key", "old");
		assert_true(end_faults());
	}
	assert_int_equal(atomic_load(&loads), 0);
	assert_holds(recorder, "key", "old");
	WAIT_UNTIL(cache_stats(recorder).load_time.count == 1);
	assert_holds(recorder, "key", "new");
	cache_recorder_close_balanced(recorder);
}

static void count_stats(void *recorder, const struct tw_cache_stats *stats)
{
	struct cache_recorder *of = recorder;

	assert_int_equal(stats->inserts, 2);
	++*(int *)of->argument;
}

struct pass {
	struct cache_recorder *recorder;
	tw_duration by;
	enum tw_status status;
};

static void advance_by(void *argument)
{
	struct pass *pass = argument;

	pass->status = tw_advance(pass->recorder->wheel, pass->by);
}

/* The thread that drives the wheel tells of removals and statistics. */
static void removals_and_statistics_are_told_by_a_thread_without_memory(void **state)
{
	int calls = 0;
	struct cache_recorder *recorder = cache_recorder_create(*state);
	struct tw_cache_options options = cache_recorder_options(recorder);
	struct pass pass = {recorder, 10 * INTERVAL, TW_OK};

	recorder->argument = &calls;
	options.on_stats = count_stats;
	options.stats_interval = 10 * INTERVAL;
	cache_recorder_start(recorder, TW_HOUR, &options);
	cache_set_for(recorder, "key", "expires", 5 * INTERVAL);
	cache_set(recorder, "key of another", "stays");
	call_without_memory(advance_by, &pass);
	assert_status(pass.status, TW_OK);
	assert_int_equal(calls, 1);
	assert_int_equal(removal_count(recorder), 1);
	assert_removed(recorder, "expires", TW_CAUSE_EXPIRED);
	cache_pass(recorder, 10 * INTERVAL);
	assert_int_equal(calls, 2);
	cache_recorder_close_balanced(recorder);
}

static void destroy_cache(void *cache)
{
	tw_cache_destroy(cache);
}

static void cache_is_destroyed_without_memory(void **state)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);

	cache_set_letters(recorder, "abc");
	call_without_memory(destroy_cache, recorder->cache);
	recorder->cache = NULL;
	assert_int_equal(removal_count_of(recorder, TW_CAUSE_SHUTDOWN), 3);
	cache_recorder_close(recorder);
}

struct kept {
	struct tw_cache_loading *_Atomic loading;
	enum tw_status status; /* of its end */
};

static enum tw_status load_keep(void *argument, const void *key, size_t key_size,
				struct tw_cache_loading *loading)
{
	struct kept *kept = argument;

	(void)key;
	(void)key_size;
	if (atomic_load(&kept->loading))
		return tw_cache_load_copy(loading, "second", 6, 0);
	assert_status(tw_cache_load_keep(loading), TW_OK);
	atomic_store(&kept->loading, loading);
	return TW_OK;
}

static void end_load(void *argument)
{
	struct kept *kept = argument;

	kept->status = tw_cache_load_end(atomic_load(&kept->loading), TW_OK);
}

/* A take that has to look again after a load is told by the thread that ends it. */
static void take_that_looks_again_without_memory_is_told_so(void **state)
{
	struct kept kept = {NULL, TW_OK};
	struct cache_recorder *recorder = cache_recorder_open_with(
		*state, TW_HOUR,
		(struct tw_cache_options){.load = load_keep, .load_context = &kept, .loaders = 1});
	struct told early = {.times = 0};
	struct told late = {.times = 0};

	assert_status(tw_cache_take_async(recorder->cache, "key", 3, be_told, &early), TW_OK);
	WAIT_UNTIL(atomic_load(&kept.loading));
	assert_status(tw_cache_load_copy(atomic_load(&kept.loading), "first", 5, 0), TW_OK);
	assert_status(tw_cache_delete(recorder->cache, "key", 3), TW_NOT_FOUND);
	assert_status(tw_cache_take_async(recorder->cache, "key", 3, be_told, &late), TW_OK);
	call_without_memory(end_load, &kept);
	assert_int_equal(atomic_load(&early.times), 1);
	assert_status(early.status, TW_OK);
	assert_value(early.entry, "first");
	tw_cache_entry_release(early.entry);
	assert_int_equal(atomic_load(&late.times), 1);
	assert_status(late.status, TW_NO_MEMORY);
	assert_null(late.entry);
	assert_status(tw_cache_take_async(recorder->cache, "key", 3, be_told, &late), TW_OK);
	WAIT_UNTIL(atomic_load(&late.times) == 2);
	assert_value(late.entry, "second");
	tw_cache_entry_release(late.entry);
	cache_recorder_close_balanced(recorder);
}

static enum tw_status load_and_end_thread(void *argument, const void *key, size_t key_size,
					  struct tw_cache_loading *loading)
{
	(void)key;
	(void)key_size;
	(void)loading;
	if (atomic_fetch_add((atomic_int *)argument, 1) == 0) {
		fail_thread(1);
		pthread_exit(NULL);
	}
	return tw_cache_load_copy(loading, "new", 3, 0);
}

/* The one thread of the cache. */
static void loader_is_replaced_when_there_are_threads_again(void **state)
{
	atomic_int loads = 0;
	struct cache_recorder *recorder = cache_recorder_open_with(
		*state, TW_HOUR,
		(struct tw_cache_options){
			.load = load_and_end_thread, .load_context = &loads, .loaders = 1});
	struct told told = {.times = 0};

	assert_status(tw_cache_take_async(recorder->cache, "key", 3, be_told, &told), TW_OK);
	WAIT_UNTIL(atomic_load(&told.times) == 1);
	assert_status(told.status, TW_LOAD_FAILED);
	assert_status(tw_cache_take_async(recorder->cache, "key", 3, be_told, &told), TW_OK);
	WAIT_UNTIL(atomic_load(&told.times) == 2);
	assert_true(fault_was_met());
	assert_status(told.status, TW_OK);
	assert_value(told.entry, "new");
	tw_cache_entry_release(told.entry);
	cache_recorder_close_balanced(recorder);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_call_stack_may_be_without_memory),
	cmocka_unit_test(each_of_the_first_allocations_may_fail),
	cmocka_unit_test(memory_may_run_out_at_any_allocation),
	cmocka_unit_test(creation_may_fail_at_each_allocation),
	cmocka_unit_test(creation_may_fail_at_each_thread),
	cmocka_unit_test(entries_leave_without_memory),
	cmocka_unit_test(far_entries_leave_without_memory),
	cmocka_unit_test(entries_that_lost_their_file_leave_without_memory),
	cmocka_unit_test(flush_ends_without_memory),
	cmocka_unit_test(touch_without_memory_changes_nothing),
	cmocka_unit_test(limits_hold_without_memory),
	TEST_IN(levels_inline, loader_is_told_that_there_is_no_memory_for_its_value),
	TEST_IN(levels_inline, refresh_without_memory_is_for_the_next_lookup),
	TEST_IN(levels_inline, removals_and_statistics_are_told_by_a_thread_without_memory),
	TEST_IN(levels_inline, cache_is_destroyed_without_memory),
	TEST_IN(levels_inline, take_that_looks_again_without_memory_is_told_so),
	TEST_IN(levels_inline, loader_is_replaced_when_there_are_threads_again),
};

TEST_PROGRAM(tests)
