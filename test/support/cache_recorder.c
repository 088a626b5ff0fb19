/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "cache_check.h"
#include "cache_recorder.h"

#include "cache/pool.h"

struct cache_recorder *cache_recorder_create_with(const struct variant *variant,
						  tw_duration interval, size_t slots,
						  struct tw_options more)
{
	struct cache_recorder *recorder = calloc(1, sizeof(*recorder));

	assert_non_null(recorder);
	recorder->variant = variant;
	journal_init(&recorder->removals, sizeof(struct removal));
	more = variant_options(variant, more);
	assert_status(tw_create(&recorder->wheel, interval, slots, ignore_task, &more), TW_OK);
	return recorder;
}

struct cache_recorder *cache_recorder_create(const struct variant *variant)
{
	return cache_recorder_create_with(variant, INTERVAL, 64, (struct tw_options){0});
}

struct tw_cache_options cache_recorder_options(struct cache_recorder *recorder)
{
	return (struct tw_cache_options){
		.context = recorder,
		.wheel = recorder->wheel,
		.jitter = -1,
		.on_remove = record_removal,
	};
}

void cache_recorder_start(struct cache_recorder *recorder, tw_duration expire,
			  const struct tw_cache_options *options)
{
	assert_status(tw_cache_create(&recorder->cache, expire, options), TW_OK);
	assert_non_null(recorder->cache);
}

uint64_t cache_weight(size_t key_size, size_t value_size)
{
	size_t size = 48 + (key_size + 7) / 8 * 8;

	/* A larger value has memory of its own. */
	if (size + value_size + 16 > POOL_MOST)
		return pool_cell_size(size + 32) + value_size + 40;
	return pool_cell_size(size + value_size) + 40;
}

struct cache_recorder *cache_recorder_open(const struct variant *variant, tw_duration expire)
{
	return cache_recorder_open_with(variant, expire, (struct tw_cache_options){0});
}

struct cache_recorder *cache_recorder_open_with(const struct variant *variant, tw_duration expire,
						struct tw_cache_options more)
{
	more.on_remove = record_removal;
	return cache_recorder_open_quiet(variant, expire, more);
}

struct cache_recorder *cache_recorder_open_quiet(const struct variant *variant, tw_duration expire,
						 struct tw_cache_options more)
{
	/* The pool may grow for loads that block. */
	struct tw_options wheel = {.max_workers = more.load && variant->workers > 0 ? 8 : 0};
	struct cache_recorder *recorder = cache_recorder_create_with(variant, INTERVAL, 64, wheel);
	struct tw_cache_options options = cache_recorder_options(recorder);

	more.context = options.context;
	more.wheel = options.wheel;
	if (more.jitter == 0)
		more.jitter = options.jitter;
	cache_recorder_start(recorder, expire, &more);
	return recorder;
}

void cache_recorder_close(struct cache_recorder *recorder)
{
	if (recorder->cache) {
		/* What is due may leave in another thread until then. */
		may_fail(tw_cache_flush(recorder->cache));
		assert_balanced(recorder->cache);
		cache_check(recorder->cache);
	}
	tw_cache_destroy(recorder->cache);
	tw_destroy(recorder->wheel);
	journal_destroy(&recorder->removals);
	free(recorder);
}

void cache_recorder_give(struct cache_recorder *recorder, void (*run)(struct cache_recorder *))
{
	run(recorder);
	atomic_store(&recorder->is_over, true);
	cache_recorder_close(recorder);
}

/* Copies the first bytes and returns the full size. */
static size_t excerpt(unsigned char bytes[32], const void *from, size_t size)
{
	if (size > 0)
		memcpy(bytes, from, size < 32 ? size : 32);
	return size;
}

void record_removal(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct cache_recorder *recorder = context;
	struct removal removal = {
		.cause = cause,
		.deadline = tw_cache_entry_deadline(entry),
		.now = tw_now(recorder->wheel),
	};
	size_t size;
	const void *bytes = tw_cache_entry_key(entry, &size);

	removal.key_size = excerpt(removal.key, bytes, size);
	bytes = tw_cache_entry_value(entry, &size);
	removal.value_size = excerpt(removal.value, bytes, size);
	journal_append(&recorder->removals, &removal);
	if (recorder->on_remove != NULL && !atomic_load(&recorder->is_over))
		recorder->on_remove(recorder, entry, cause);
}

void cache_set(struct cache_recorder *recorder, const char *key, const char *value)
{
	assert_status(tw_cache_set(recorder->cache, key, strlen(key), value, strlen(value)), TW_OK);
}

void cache_set_letters(struct cache_recorder *recorder, const char *letters)
{
	for (; *letters != '\0'; letters++)
		cache_set(recorder, (const char[]){*letters, '\0'}, (const char[]){*letters, '\0'});
}

void cache_set_for(struct cache_recorder *recorder, const char *key, const char *value,
		   tw_duration expire)
{
	assert_status(tw_cache_set_with_expire(recorder->cache, key, strlen(key), value,
					       strlen(value), expire),
		      TW_OK);
}

enum tw_status cache_get(struct cache_recorder *recorder, const char *key)
{
	enum tw_status status = tw_cache_get(recorder->cache, key, strlen(key), NULL, 0, NULL);

	return status == TW_TRUNCATED ? TW_OK : status;
}

const struct tw_cache_entry *cache_pinned(struct cache_recorder *recorder, const char *key)
{
	const struct tw_cache_entry *entry;

	assert_status(tw_cache_acquire(recorder->cache, key, strlen(key), 0, &entry), TW_OK);
	assert_non_null(entry);
	return entry;
}

struct tw_cache_stats cache_stats(struct cache_recorder *recorder)
{
	struct tw_cache_stats stats;

	assert_status(tw_cache_get_stats(recorder->cache, &stats), TW_OK);
	return stats;
}

void cache_advance(struct cache_recorder *recorder, tw_duration by)
{
	assert_status(tw_advance(recorder->wheel, by), TW_OK);
}

void cache_pass(struct cache_recorder *recorder, tw_duration by)
{
	cache_advance(recorder, by);
	/* A task of the cache may set another, and that one the next. */
	for (int generation = 0; generation < 3; generation++)
		assert_status(tw_wait_idle(recorder->wheel), TW_OK);
}

void cache_settle(struct cache_recorder *recorder)
{
	assert_status(tw_cache_flush(recorder->cache), TW_OK);
	cache_check(recorder->cache);
}

size_t removal_count(struct cache_recorder *recorder)
{
	return journal_count(&recorder->removals);
}

struct removal removal_at(struct cache_recorder *recorder, size_t index)
{
	struct removal removal;

	journal_get(&recorder->removals, index, &removal);
	return removal;
}

static bool has_cause(const void *removal, const void *cause)
{
	return ((const struct removal *)removal)->cause == *(const enum tw_cache_cause *)cause;
}

size_t removal_count_of(struct cache_recorder *recorder, enum tw_cache_cause cause)
{
	return journal_find(&recorder->removals, has_cause, &cause, NULL);
}

static bool has_value(const void *element, const void *value)
{
	const struct removal *removal = element;
	size_t size = strlen(value);

	return removal->value_size == size && memcmp(removal->value, value, size) == 0;
}

size_t times_removed(struct cache_recorder *recorder, const char *value)
{
	return journal_find(&recorder->removals, has_value, value, NULL);
}

void assert_holds_(struct tw_cache *cache, const char *key, const char *value, const char *file,
		   int line)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = tw_cache_acquire(cache, key, strlen(key), 0, &entry);

	_assert_string_equal(tw_status_name(status), "TW_OK", file, line);
	assert_value_(entry, value, file, line);
	tw_cache_entry_release(entry);
}

void assert_lives_for_(struct cache_recorder *recorder, const char *key, const char *value,
		       tw_duration time, const char *file, int line)
{
	cache_pass(recorder, time - 1);
	assert_holds_(recorder->cache, key, value, file, line);
	cache_pass(recorder, 1);
	_assert_string_equal(tw_status_name(cache_get(recorder, key)), "TW_NOT_FOUND", file, line);
}

void assert_value_(const struct tw_cache_entry *entry, const char *value, const char *file,
		   int line)
{
	size_t size;
	const void *bytes = tw_cache_entry_value(entry, &size);

	_assert_int_equal(size, strlen(value), file, line);
	_assert_memory_equal(bytes, value, size, file, line);
}

void assert_removed_(struct cache_recorder *recorder, const char *value, enum tw_cache_cause cause,
		     const char *file, int line)
{
	size_t index = 0;

	_assert_int_equal(journal_find(&recorder->removals, has_value, value, &index), 1, file,
			  line);
	_assert_int_equal(removal_at(recorder, index).cause, cause, file, line);
}

void assert_balanced_(struct tw_cache *cache, const char *file, int line)
{
	struct tw_cache_stats stats;
	uint64_t accounted;

	_assert_int_equal(tw_cache_get_stats(cache, &stats), TW_OK, file, line);
	accounted = stats.entries;
	for (int cause = 0; cause < TW_CACHE_CAUSES; cause++)
		accounted += stats.removed[cause];
	_assert_int_equal(stats.inserts, accounted, file, line);
}
