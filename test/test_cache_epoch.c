/* SPDX-License-Identifier: MIT */
/*
 * Epochs on their own: none goes on past a reader that is behind, what was unlinked is in sight as
 * long as it may be, and readers are found again and handed on.
 */
#include "support/test.h"

#include "cache/epoch.h"

#include <pthread.h>

static void open_epochs(struct epochs *epochs)
{
	assert_true(epochs_init(epochs, sizeof(struct reader)));
}

static void reader_inside_holds_up_the_epoch_after_the_next(void **state)
{
	struct epochs epochs;
	struct reader *reader;
	uint64_t stamp;

	(void)state;
	open_epochs(&epochs);
	reader = epochs_reader(&epochs);
	assert_true(epochs_advance(&epochs));
	reader_enter(reader, &epochs);
	stamp = epochs_stamp(&epochs);
	assert_true(epochs_advance(&epochs));
	for (int i = 0; i < 3; i++)
		assert_false(epochs_advance(&epochs));
	assert_false(stamp_is_over(stamp, epochs_current(&epochs)));
	reader_leave(reader);
	assert_true(epochs_advance(&epochs));
	assert_true(stamp_is_over(stamp, epochs_current(&epochs)));
	epochs_destroy(&epochs);
}

/* It has the reader's epoch, and the reader may have found it. */
static void stamp_of_the_next_epoch_waits_for_the_reader_too(void **state)
{
	struct epochs epochs;
	struct reader *reader;
	uint64_t stamp;

	(void)state;
	open_epochs(&epochs);
	reader = epochs_reader(&epochs);
	reader_enter(reader, &epochs);
	assert_true(epochs_advance(&epochs));
	stamp = epochs_stamp(&epochs);
	assert_false(epochs_advance(&epochs));
	reader_leave(reader);
	assert_true(epochs_advance(&epochs));
	assert_false(stamp_is_over(stamp, epochs_current(&epochs)));
	assert_true(epochs_advance(&epochs));
	assert_true(stamp_is_over(stamp, epochs_current(&epochs)));
	epochs_destroy(&epochs);
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

static void reader_of_a_thread_that_ended_is_the_next_one_s(void **state)
{
	struct epochs epochs;
	void *first = NULL;

	(void)state;
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
	assert_int_equal(epochs_readers(&epochs), 1);
	epochs_destroy(&epochs);
}

static void thread_keeps_its_reader_while_others_caches_come_and_go(void **state)
{
	struct epochs epochs;
	const struct reader *reader;

	(void)state;
	open_epochs(&epochs);
	reader = epochs_reader(&epochs);
	for (int i = 0; i < 50; i++) {
		struct epochs other;

		open_epochs(&other);
		assert_non_null(epochs_reader(&other));
		epochs_destroy(&other);
		assert_ptr_equal(epochs_reader(&epochs), reader);
	}
	assert_int_equal(epochs_readers(&epochs), 1);
	epochs_destroy(&epochs);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(reader_inside_holds_up_the_epoch_after_the_next),
	cmocka_unit_test(stamp_of_the_next_epoch_waits_for_the_reader_too),
	cmocka_unit_test(reader_of_a_thread_that_ended_is_the_next_one_s),
	cmocka_unit_test(thread_keeps_its_reader_while_others_caches_come_and_go),
};

TEST_PROGRAM(tests)
