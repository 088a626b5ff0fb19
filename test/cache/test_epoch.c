/* SPDX-License-Identifier: MIT */
/*
 * These tests use eras alone: a reader keeps only what it may see, and readers are reused.
 */
#include "support/test.h"

#include "cache/arena.h"
#include "cache/epoch.h"

#include <sched.h>

static void open_epochs(struct epochs *epochs)
{
	struct arena *arena = malloc(sizeof(*arena));

	arena_init(arena);
	assert_true(epochs_init(epochs, arena));
}

static void close_epochs(struct epochs *epochs)
{
	epochs_destroy(epochs);
	arena_destroy(epochs->arena);
	free(epochs->arena);
}

/* Returns the era of a reader inside. */
static uint64_t era_in(struct epochs *epochs, uint64_t birth, uint64_t stamp)
{
	struct eras eras;

	epochs_gather(epochs, stamp, &eras);
	return eras_find(&eras, birth, stamp);
}

TEST(once, reader_inside_sees_what_lived_in_its_era)
{
	struct epochs epochs;
	struct reader *reader;
	uint64_t era;

	open_epochs(&epochs);
	reader = epochs_reader(&epochs);
	epochs_advance(&epochs, 1);
	era = reader_enter(reader, &epochs);
	assert_int_equal(era, 2);
	assert_true(epochs_is_in(&epochs, era));
	epochs_advance(&epochs, 2);
	epochs_advance(&epochs, 2);
	assert_int_equal(epochs_stamp(&epochs), 3);
	assert_false(epochs_is_in(&epochs, era));
	/* The cases are: freed before, from before till after, created after. */
	assert_int_equal(era_in(&epochs, 1, 1), 0);
	assert_int_equal(era_in(&epochs, 1, 2), era);
	assert_int_equal(era_in(&epochs, 2, 3), era);
	assert_int_equal(era_in(&epochs, 3, 3), 0);
	reader_leave(reader);
	assert_int_equal(era_in(&epochs, 1, 3), 0);
	close_epochs(&epochs);
}

/* Readers that do not fit into the list of eras count as a whole. */
TEST(once, many_readers_hold_all_between_them)
{
	enum { READERS = ERAS_MOST + 10 };
	struct reader *readers[READERS];
	struct epochs epochs;

	open_epochs(&epochs);
	for (uint64_t i = 0; i < READERS; i++) {
		readers[i] = epochs_add_reader(&epochs);
		assert_int_equal(reader_enter(readers[i], &epochs), 10 * i + 1);
		for (uint64_t k = 1; k <= 10; k++)
			epochs_advance(&epochs, 10 * i + k);
	}
	for (uint64_t i = 0; i < READERS; i++)
		assert_int_not_equal(era_in(&epochs, 10 * i + 1, 10 * i + 1), 0);
	assert_int_equal(era_in(&epochs, 2, 10), 0);
	assert_int_equal(era_in(&epochs, 10 * READERS, 10 * READERS), 0);
	close_epochs(&epochs);
}

static void *read_once(void *argument)
{
	struct epochs *epochs = argument;
	struct reader *reader = epochs_reader(epochs);

	if (reader) {
		reader_enter(reader, epochs);
		reader_leave(reader);
	}
	return reader;
}

TEST(once, reader_of_a_thread_that_ended_is_the_next_one_s)
{
	struct epochs epochs;
	void *first = NULL;

	open_epochs(&epochs);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *reader;

		assert_int_equal(pthread_create(&thread, NULL, read_once, &epochs), 0);
		assert_int_equal(pthread_join(thread, &reader), 0);
		assert_non_null(reader);
		first = first ? first : reader;
		assert_ptr_equal(reader, first);
	}
	assert_int_equal(epochs_readers(&epochs), 0);
	close_epochs(&epochs);
}

TEST(once, thread_keeps_its_reader_while_others_caches_come_and_go)
{
	struct epochs epochs;
	const struct reader *reader;

	open_epochs(&epochs);
	reader = epochs_reader(&epochs);
	for (int i = 0; i < 50; i++) {
		struct epochs other;

		open_epochs(&other);
		assert_non_null(epochs_reader(&other));
		close_epochs(&other);
		assert_ptr_equal(epochs_reader(&epochs), reader);
	}
	assert_int_equal(epochs_readers(&epochs), 1);
	close_epochs(&epochs);
}

/* A thread reads inside, and ends. */
struct reading {
	struct epochs epochs;
	int *value;
	atomic_bool has_begun;
};

static void *read_and_end(void *argument)
{
	struct reading *reading = argument;
	struct reader *reader = epochs_reader(&reading->epochs);

	/* relaxed, here and below: orders nothing, so only the places do */
	atomic_store_explicit(&reading->has_begun, true, memory_order_relaxed);
	(void)reader_enter(reader, &reading->epochs);
	if (*reading->value != 1)
		abort();
	reader_leave(reader);
	return NULL;
}

/* The thread sanitizer checks this: only they are between the thread's read and the freeing. */
TEST(once, what_a_thread_read_before_it_ended_may_be_freed)
{
	for (int i = 0; i < 100; i++) {
		struct reading reading = {.value = malloc(sizeof(int))};
		pthread_t thread;

		*reading.value = 1;
		open_epochs(&reading.epochs);
		assert_int_equal(pthread_create(&thread, NULL, read_and_end, &reading), 0);
		while (!atomic_load_explicit(&reading.has_begun, memory_order_relaxed) ||
		       epochs_readers(&reading.epochs) > 0)
			sched_yield();
		assert_int_equal(era_in(&reading.epochs, 1, 1), 0);
		free(reading.value);
		pthread_join(thread, NULL);
		close_epochs(&reading.epochs);
	}
}
