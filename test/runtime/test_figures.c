/* SPDX-License-Identifier: MIT */
/*
 * The public headers state figures about memory: the bytes of a timer, of a walk and of the
 * statistics, the stack of calls that need much, the bytes written at a time.
 * house/check_figures.sh checks those about cost, time and number.
 */
#include "support/test.h"

#include "support/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/alarm.h"
#include "runtime/job.h"

enum { KIB = 1024 };

/* ---- Timers ---- */

TEST(once, handles_take_80_bytes)
{
	assert_int_equal(sizeof(struct alarm), 80);
}

/* Returns the bytes of the slab block for a key of that size, or 0 if malloc has the timer. */
static size_t block_of_key(struct timer_store *store, size_t key_size)
{
	static const char key[1024];
	struct timer_bin bin = {0};
	struct keyed_timer *timer = timer_new(store, key, key_size, 0);
	size_t size = 0;

	assert_non_null(timer);
	if (timer->timer.class != TIMER_KEYED_LARGE)
		size = store->slabs[timer->timer.class].block_size;
	timer_free(store, &bin, timer);
	timer_store_flush(store, &bin);
	return size;
}

TEST(once, timers_with_keys_take_128_to_1024_bytes_and_malloc_has_longer_ones)
{
	struct timer_store store;

	timer_store_init(&store);
	assert_int_equal(block_of_key(&store, 1), 128);
	assert_int_equal(block_of_key(&store, 24), 128);
	assert_true(block_of_key(&store, 25) > 128);
	assert_int_equal(block_of_key(&store, 920), 1024);
	assert_int_equal(block_of_key(&store, 921), 0);
	timer_store_destroy(&store);
}

/* ---- Statistics ---- */

TEST(once, statistics_of_a_worker_take_11_KiB)
{
	assert_in_range(sizeof(struct job_thread), 10 * KIB, 11 * KIB + KIB / 2);
}

static void note_size(void *most, const char *text, size_t size)
{
	if (*(size_t *)most < size)
		*(size_t *)most = size;
}

RECORDED(everywhere, metrics_are_written_by_at_most_4_KiB)
{
	char prefix[TW_METRICS_PREFIX_MAX + 1];
	size_t most = 0;

	memset(prefix, 'p', TW_METRICS_PREFIX_MAX);
	prefix[TW_METRICS_PREFIX_MAX] = '\0';
	assert_status(tw_write_metrics(recorder->wheel, note_size, &most, prefix), TW_OK);
	assert_in_range(most, 1, 4 * KIB);
}

/* ---- Stacks ---- */

enum { STACK = 256 * KIB, PAINT = 0xa5 };

static void call_nothing(struct tw_wheel *wheel)
{
}

static void call_get_stats(struct tw_wheel *wheel)
{
	static struct tw_stats stats;

	(void)tw_get_stats(wheel, &stats);
}

static void call_write_metrics(struct tw_wheel *wheel)
{
	static size_t most;

	(void)tw_write_metrics(wheel, note_size, &most, NULL);
}

struct painted {
	struct tw_wheel *wheel;
	void (*call)(struct tw_wheel *wheel);
};

static void *call_on_painted_stack(void *argument)
{
	struct painted *painted = argument;

	painted->call(painted->wheel);
	return NULL;
}

/* Returns the bytes of stack that a thread needs for the call. */
static size_t stack_with(struct tw_wheel *wheel, void (*call)(struct tw_wheel *wheel))
{
	struct painted painted = {wheel, call};
	unsigned char *stack =
		mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t untouched = 0;
	pthread_attr_t attributes;
	pthread_t thread;

	assert_true(stack != MAP_FAILED);
	/* The dynamic linker's search for the functions needs a stack, too. */
	call(wheel);
	memset(stack, PAINT, STACK);
	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attributes, call_on_painted_stack, &painted), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	while (untouched < STACK && stack[untouched] == PAINT)
		untouched++;
	munmap(stack, STACK);
	return STACK - untouched;
}

RECORDED(workers, calls_need_no_more_stack_than_their_headers_say)
{
	size_t nothing;

	if (TEST_HAS_SANITIZER || TEST_IS_EMULATED)
		TEST_SKIP("a sanitizer or an emulator needs stack of its own");
	set_timer(recorder, "a key", 1, INTERVAL);
	settle(recorder);
	nothing = stack_with(recorder->wheel, call_nothing);
	assert_in_range(stack_with(recorder->wheel, call_get_stats) - nothing, 0, 12 * KIB);
	assert_in_range(stack_with(recorder->wheel, call_write_metrics) - nothing, 0, 18 * KIB);
}
