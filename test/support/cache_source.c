/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "cache_calls.h"
#include "cache_source.h"

#include "wait.h"

void source_give(source_opener *open, void *state, struct tw_cache_options more,
		 void (*run)(SOURCED_PARAMETERS))
{
	struct source source;
	struct cache_recorder *recorder = open(state, &source, more);

	run(recorder, &source);
	atomic_store(&recorder->is_over, true);
	cache_recorder_close(recorder);
}

enum tw_status source_load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct source *source = argument;

	atomic_fetch_add(&source->loads, 1);
	if (source->gated) {
		gate_pass(&source->gate);
	}
	if (source->value != NULL) {
		enum tw_status status =
			give_copied(loading, source->value, strlen(source->value), source->expire);

		if (status != TW_OK)
			return status;
	}
	return source->status;
}

void source_open(struct source *source, const char *value)
{
	memset(source, 0, sizeof(*source));
	source->value = value;
	gate_init(&source->gate);
}

enum tw_status take(struct cache_recorder *recorder, const char *key, struct source *source,
		    tw_duration wait, const struct tw_cache_entry **entry)
{
	return tw_cache_take(recorder->cache, key, strlen(key), source_load, source, wait, entry);
}

void assert_taken_(struct cache_recorder *recorder, const char *key, struct source *source,
		   const char *value, const char *file, int line)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = take(recorder, key, source, TW_FOREVER, &entry);

	_assert_string_equal(tw_status_name(status), "TW_OK", file, line);
	assert_value_(entry, value, file, line);
	tw_cache_entry_release(entry);
}

void assert_not_taken_(struct cache_recorder *recorder, const char *key, struct source *source,
		       enum tw_status expected, const char *file, int line)
{
	const struct tw_cache_entry *entry = (const void *)source;

	_assert_int_equal(take(recorder, key, source, TW_FOREVER, &entry), expected, file, line);
	_assert_true(entry == NULL, "entry == NULL", file, line);
}

static void *taker_run(void *argument)
{
	struct taker *taker = argument;

	taker->status =
		take(taker->recorder, taker->key, taker->source, taker->wait, &taker->entry);
	return NULL;
}

void taker_start(struct taker *taker, struct cache_recorder *recorder, const char *key,
		 struct source *source, tw_duration wait)
{
	*taker = (struct taker){.recorder = recorder, .key = key, .source = source, .wait = wait};
	assert_int_equal(pthread_create(&taker->thread, NULL, taker_run, taker), 0);
}

void taker_start_load(struct taker *taker, struct cache_recorder *recorder, const char *key,
		      struct source *source)
{
	source->gated = true;
	taker_start(taker, recorder, key, source, TW_FOREVER);
	gate_await(&source->gate);
}

void assert_taker_ends_(struct taker *taker, enum tw_status status, const char *value,
			const char *file, int line)
{
	_assert_int_equal(pthread_join(taker->thread, NULL), 0, file, line);
	_assert_int_equal(taker->status, status, file, line);
	if (status == TW_OK)
		assert_value_(taker->entry, value, file, line);
	else
		_assert_true(taker->entry == NULL, "no entry", file, line);
	tw_cache_entry_release(taker->entry);
}
