/* SPDX-License-Identifier: MIT */
/*
 * Functions of the program that the cache calls: they return, else the process ends. And no call is
 * a cancellation point.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/death.h"
#include "support/exceptions.h"

/* The cache calls one of its functions in each of these calls. */
enum place {
	WEIGH_SET,
	WEIGH_COMPUTED,
	WEIGH_LOADED,
	COMPUTE,
	VISIT,
	LOAD,
	VALUE_AT_ONCE,
	VALUE_LATER,
	VALUE_STOPPED,
	PLACES_HERE,
	/* A thread of the wheel calls these, unless callers run tasks. */
	REMOVE = PLACES_HERE,
	LOAD_APART,
	PLACES
};
static const char *const place_names[] = {
	"weigh in a set",
	"weigh in a compute",
	"weigh in a load",
	"compute",
	"visit",
	"load in a take",
	"on_value of a hit",
	"on_value of a load",
	"on_value in a stop",
	"on_remove",
	"load on the pool",
};

/* A case for a child process, in which the first call at `place` acts. */
struct fatal {
	const struct variant *variant;
	enum place place;
	void (*act)(void);
	bool is_armed;
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	struct tw_cache_loading *_Atomic kept;
	int freed;
};

static void reach(const struct fatal *fatal, bool is_there)
{
	if (fatal->is_armed && is_there)
		fatal->act();
}

static uint64_t on_weigh(void *context, const void *key, size_t key_size, const void *value,
			 size_t value_size)
{
	const struct fatal *fatal = context;

	reach(fatal, fatal->place <= WEIGH_LOADED);
	return 1;
}

static enum tw_cache_verdict on_compute(void *context, const struct tw_cache_entry *entry,
					struct tw_cache_value *computed)
{
	const struct fatal *fatal = context;

	reach(fatal, fatal->place == COMPUTE);
	*computed = (struct tw_cache_value){.data = "v", .size = 1};
	return TW_CACHE_REPLACE;
}

static int on_visit(void *context, const struct tw_cache_entry *entry)
{
	reach(context, true);
	return 1;
}

static enum tw_status on_load(void *context, const void *key, size_t key_size,
			      struct tw_cache_loading *loading)
{
	const struct fatal *fatal = context;

	reach(fatal, fatal->place == LOAD || fatal->place == LOAD_APART);
	return give_copied(loading, "v", 1, 0);
}

/* Keeps loads, where one is to end in another call. */
static enum tw_status on_load_apart(void *context, const void *key, size_t key_size,
				    struct tw_cache_loading *loading)
{
	struct fatal *fatal = context;

	if (fatal->place != VALUE_LATER && fatal->place != VALUE_STOPPED)
		return on_load(context, key, key_size, loading);
	may_fail(tw_cache_load_keep(loading));
	atomic_store(&fatal->kept, loading);
	return TW_OK;
}

static void on_value(void *context, enum tw_status status, const struct tw_cache_entry *entry)
{
	const struct fatal *fatal = context;

	reach(fatal, fatal->place >= VALUE_AT_ONCE && fatal->place <= VALUE_STOPPED);
}

static void on_remove(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	const struct fatal *fatal = context;

	reach(fatal, fatal->place == REMOVE);
}

static void take_apart(struct fatal *fatal, const char *key)
{
	may_fail(tw_cache_take_async(fatal->cache, key, 1, on_value, fatal));
	while (fatal->place != VALUE_AT_ONCE && !atomic_load(&fatal->kept)) {
		(void)tw_poll(fatal->wheel, NULL);
		usleep(1000);
	}
}

/* Makes the call in which the function of the place is called. */
static void call(void *argument)
{
	struct fatal *fatal = argument;
	const struct tw_cache_entry *entry;

	switch (fatal->place) {
	case WEIGH_SET:
		(void)tw_cache_set(fatal->cache, "x", 1, "v", 1);
		break;
	case WEIGH_COMPUTED:
	case COMPUTE:
		(void)tw_cache_compute(fatal->cache, "x", 1, on_compute, fatal);
		break;
	case VISIT:
		(void)tw_cache_each(fatal->cache, on_visit, fatal);
		break;
	case WEIGH_LOADED:
	case LOAD:
		may_fail(tw_cache_take(fatal->cache, "x", 1, on_load, fatal, 0, &entry));
		break;
	case VALUE_AT_ONCE:
		take_apart(fatal, "a");
		break;
	case VALUE_LATER:
		take_apart(fatal, "x");
		(void)tw_cache_load_end(atomic_load(&fatal->kept), TW_OK);
		break;
	case VALUE_STOPPED:
		take_apart(fatal, "x");
		(void)tw_cache_stop(fatal->cache);
		break;
	case LOAD_APART:
		take_apart(fatal, "x");
		break;
	default:
		(void)tw_cache_delete(fatal->cache, "a", 1);
		(void)tw_cache_flush(fatal->cache);
	}
}

/* Calls in the child, where what is thrown would be caught. */
static void call_to_the_end(void *argument)
{
	struct fatal *fatal = argument;
	struct tw_options wheel_options = variant_options(fatal->variant, (struct tw_options){0});
	struct tw_cache_options options = {.context = fatal,
					   .name = "odd one",
					   .weigh = on_weigh,
					   .on_remove = on_remove,
					   .load = on_load_apart,
					   .load_context = fatal};

	assert_status(tw_create(&fatal->wheel, INTERVAL, 16, NULL, &wheel_options), TW_OK);
	options.wheel = fatal->wheel;
	assert_status(tw_cache_create(&fatal->cache, TW_HOUR, &options), TW_OK);
	assert_status(tw_cache_set(fatal->cache, "a", 1, "v", 1), TW_OK);
	fatal->is_armed = true;
	(void)exception_comes_out_of(call, fatal);
	pause();
}

static const char not_returned[] =
	"timingwheel: a callback of the cache \"odd one\" has not returned";

/* `message` is that of functions that a thread of the wheel calls. */
static void assert_ends_the_process(const struct variant *variant, void (*act)(void),
				    const char *message)
{
	bool is_driven = variant->workers < 0 && variant->drive != TW_DRIVE_THREAD;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	for (int place = 0; place < PLACES; place++) {
		struct fatal fatal = {.variant = variant, .place = (enum place)place, .act = act};
		bool is_here = place < PLACES_HERE || is_driven;

		print_message("%s\n", place_names[place]);
		assert_dies(call_to_the_end, &fatal, is_here ? not_returned : message);
	}
}

TEST(inline_and_threads, callback_that_does_not_return_ends_the_process)
{
	for (int way = 0; way < NO_RETURNS; way++)
		assert_ends_the_process(*state, no_returns[way],
					way == THROWS ? terminated : not_returned);
}

/* ---- Cancellation ---- */

static void free_at_cancellation_point(void *value, size_t value_size, void *freed)
{
	pthread_testcancel();
	++*(int *)freed;
}

/* Makes calls with a cancellation pending. The take wakes the wheel, and evicts what was
 * adopted. */
static void *make_calls_cancelled(void *argument)
{
	struct fatal *fatal = argument;
	const struct tw_cache_entry *entry;

	pthread_cancel(pthread_self());
	(void)put_adopted(fatal->cache, "a", 1, "v", 1, 0, free_at_cancellation_point,
			  &fatal->freed, TW_HOUR);
	may_fail(tw_cache_take(fatal->cache, "b", 1, on_load, fatal, TW_SECOND, &entry));
	tw_cache_entry_release(entry);
	(void)tw_cache_delete(fatal->cache, "b", 1);
	(void)tw_cache_flush(fatal->cache);
	tw_cache_destroy(fatal->cache);
	fatal->cache = NULL;
	end_if_cancelled();
	return NULL;
}

/* This clock wakes its wheel by a write, which is a cancellation point. */
TEST(once, cancelled_thread_makes_its_calls_to_the_end)
{
	struct tw_options wheel_options = {.clock = TW_CLOCK_BOOTTIME};
	struct fatal fatal = {.is_armed = false};
	struct tw_cache_options options = {.max_entries = 1,
					   .shards = 1,
					   .context = &fatal,
					   .on_remove = on_remove,
					   .load = on_load,
					   .load_context = &fatal};
	pthread_t thread;
	void *result;

	assert_status(tw_create(&options.wheel, TW_MILLISECOND, 64, NULL, &wheel_options), TW_OK);
	assert_status(tw_cache_create(&fatal.cache, TW_HOUR, &options), TW_OK);
	assert_int_equal(pthread_create(&thread, NULL, make_calls_cancelled, &fatal), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_null(fatal.cache);
	assert_int_equal(fatal.freed, 1);
	tw_destroy(options.wheel);
}
