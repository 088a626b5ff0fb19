/* SPDX-License-Identifier: MIT */
/*
 * This program uses each struct that may grow. It is compiled with today's headers, and with
 * headers where each has one more field, `grown` (GROWN), and runs with a library of the other
 * kind. Structs that calls read or fill lie in memory of their size, which the address sanitizer
 * guards.
 */
#include <timingwheel/cache.h>
#include <timingwheel/cron.h>

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A later field in padding at a struct's end would not change its size. */
#ifdef GROWN
#define ENDS_WITH(type, last)
#define IS_ZERO(pointer) assert((pointer)->grown == 0)
#else
#define ENDS_WITH(type, last)                                                            \
	_Static_assert(offsetof(struct type, last) + sizeof(((struct type *)0)->last) == \
			       sizeof(struct type),                                      \
		       #type " has no padding at its end")
#define IS_ZERO(pointer) ((void)0)
#endif

ENDS_WITH(tw_options, on_thread_end);
ENDS_WITH(tw_stats, longest_running);
ENDS_WITH(tw_cache_options, on_stats);
ENDS_WITH(tw_cache_stats, memory_pinned);
ENDS_WITH(tw_cache_computed, expire);
ENDS_WITH(tw_cron_error, position);

static int threads_ended;
static int runs;
static int stats_seen;

/* Returns `size` bytes of memory, filled with `byte`. */
static void *filled(size_t size, int byte)
{
	void *memory = malloc(size);

	assert(memory);
	return memset(memory, byte, size);
}

static void on_thread_end(void *context, const char *name)
{
	assert(context == &threads_ended && strncmp(name, "grow", 4) == 0);
	threads_ended++;
}

static void on_expiry(void *context, const struct tw_task *task)
{
	assert(context == &threads_ended && task->key_size == 1 && task->value == &runs);
	assert(tw_current_task()->wheel == task->wheel);
	runs++;
}

static int visit(void *context, const struct tw_pending_timer *timer)
{
	assert(context == &runs && timer->value == &runs && timer->period == 0);
	return 1;
}

/* The last options are read, and the last statistics filled in. */
static void use_wheel(void)
{
	struct tw_options *options = filled(sizeof(*options), 0);
	struct tw_stats *stats = filled(sizeof(*stats), 255);
	struct tw_wheel *wheel;

	options->context = &threads_ended;
	options->name = "grow";
	options->workers = 1;
	options->clock = TW_CLOCK_MANUAL;
	options->on_thread_end = on_thread_end;
	assert(tw_create(&wheel, TW_MILLISECOND, 64, on_expiry, options) == TW_OK);
	free(options);
	assert(tw_set_timer(wheel, "k", 1, &runs, TW_MILLISECOND) == TW_OK);
	assert(tw_each(wheel, visit, &runs) == TW_OK);
	assert(tw_get_stats(wheel, stats) == TW_OK);
	assert(stats->set == 1 && stats->pending == 1 && stats->longest_running.key_size == 0);
	IS_ZERO(stats);
	assert(tw_advance(wheel, TW_MILLISECOND) == TW_OK);
	assert(tw_wait_idle(wheel) == TW_OK);
	tw_destroy(wheel);
	assert(runs == 1 && threads_ended == 1);
	free(stats);
}

static void on_stats(void *context, const struct tw_cache_stats *stats)
{
	assert(context == &stats_seen && stats->entries == 1 && stats->memory_pinned == 0);
	stats_seen++;
}

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_computed *computed)
{
	assert(!entry && !computed->value && computed->expire == 0);
	IS_ZERO(computed);
	*computed = (struct tw_cache_computed){.value = context, .value_size = 1};
	return TW_CACHE_REPLACE;
}

static void use_cache(void)
{
	struct tw_options by_caller = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct tw_cache_options *options = filled(sizeof(*options), 0);
	struct tw_cache_stats *stats = filled(sizeof(*stats), 255);
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	char value = 'v';

	assert(tw_create(&wheel, TW_SECOND, 64, NULL, &by_caller) == TW_OK);
	options->context = &stats_seen;
	options->wheel = wheel;
	options->stats_interval = TW_SECOND;
	options->on_stats = on_stats;
	assert(tw_cache_create(&cache, TW_HOUR, options) == TW_OK);
	free(options);
	assert(tw_cache_compute(cache, "k", 1, compute, &value) == TW_OK);
	assert(tw_advance(wheel, 2 * TW_SECOND) == TW_OK);
	assert(stats_seen > 0);
	assert(tw_cache_get_stats(cache, stats) == TW_OK);
	assert(stats->entries == 1 && stats->inserts == 1 && stats->memory_pinned == 0);
	IS_ZERO(stats);
	tw_cache_destroy(cache);
	tw_destroy(wheel);
	free(stats);
}

static void use_cron(void)
{
	struct tw_cron_error *error = filled(sizeof(*error), 255);
	struct tw_cron *cron;

	assert(tw_cron_create(&cron, "0 24 * * *", NULL, error) == TW_INVALID);
	assert(error->text && error->position == 2 && !error->in_zone);
	IS_ZERO(error);
	free(error);
}

#ifdef GROWN
static enum tw_cache_verdict compute_more(void *context, const struct tw_cache_entry *entry,
					  struct tw_cache_computed *computed)
{
	(void)entry;
	*computed = (struct tw_cache_computed){.value = context, .value_size = 1, .grown = 1};
	return TW_CACHE_REPLACE;
}

/* Values unknown to the library are refused. */
static void ask_for_more(void)
{
	struct tw_options options = {.grown = 1};
	struct tw_cache_options cache_options = {.grown = 1};
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	char value = 'v';

	assert(tw_create(&wheel, TW_SECOND, 64, on_expiry, &options) == TW_INVALID && !wheel);
	assert(tw_cache_create(&cache, TW_HOUR, &cache_options) == TW_INVALID && !cache);
	assert(tw_cache_create(&cache, TW_HOUR, NULL) == TW_OK);
	assert(tw_cache_compute(cache, "k", 1, compute_more, &value) == TW_INVALID);
	assert(tw_cache_count(cache) == 0);
	tw_cache_destroy(cache);
}
#else
static void ask_for_more(void)
{
}
#endif

int main(void)
{
	use_wheel();
	use_cache();
	use_cron();
	ask_for_more();
	return 0;
}
