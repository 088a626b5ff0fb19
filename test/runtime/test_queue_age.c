/* SPDX-License-Identifier: MIT */
/* The age of the oldest command in a queue is tested with the test's own clock. */
#include "support/test.h"

#include <timingwheel/timingwheel.h>

#include "runtime/queue_age.h"

struct fixture {
	struct command_queue queue;
	struct queue_age age;
};

static void open_at(struct fixture *fixture, tw_duration now)
{
	assert_true(command_queue_init(&fixture->queue, 16));
	queue_age_init(&fixture->age, now);
}

static void give(struct fixture *fixture, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&fixture->queue, &position);

		assert_non_null(cell);
		command_queue_publish(cell, position);
	}
}

/* Does a turn of the owner that applies `count` commands and ends at `end`. */
static void turn(struct fixture *fixture, size_t count, tw_duration end)
{
	command_queue_pop(&fixture->queue, count);
	queue_age_note(&fixture->age, &fixture->queue, end);
}

static void command_is_no_older_than_the_turn_that_left_nothing(void **state)
{
	struct fixture fixture;

	(void)state;
	open_at(&fixture, 10);
	give(&fixture, 1);
	assert_int_equal(queue_age_read(&fixture.age, 15), 5);
	turn(&fixture, 1, 20);
	give(&fixture, 1);
	assert_int_equal(queue_age_read(&fixture.age, 27), 7);
	turn(&fixture, 0, 30);
	assert_int_equal(queue_age_read(&fixture.age, 31), 11);
	turn(&fixture, 1, 40);
	assert_int_equal(queue_age_read(&fixture.age, 41), 1);
	command_queue_destroy(&fixture.queue);
}

/* The queue is never empty, but its oldest command is never old. */
static void age_follows_the_head_of_a_busy_queue(void **state)
{
	struct fixture fixture;

	(void)state;
	open_at(&fixture, 0);
	give(&fixture, 3);
	turn(&fixture, 0, 10); /* three given before 10 */
	give(&fixture, 3);
	turn(&fixture, 2, 20);
	assert_int_equal(queue_age_read(&fixture.age, 20), 20);
	turn(&fixture, 1, 30); /* they are applied; six given before 30 */
	assert_int_equal(queue_age_read(&fixture.age, 30), 20);
	give(&fixture, 3);
	turn(&fixture, 2, 40);
	assert_int_equal(queue_age_read(&fixture.age, 40), 30);
	turn(&fixture, 2, 50);
	assert_int_equal(queue_age_read(&fixture.age, 50), 20);
	command_queue_destroy(&fixture.queue);
}

static void sleep_is_no_part_of_the_age(void **state)
{
	struct fixture fixture;

	(void)state;
	open_at(&fixture, 0);
	turn(&fixture, 0, 10);
	queue_age_begin_sleep(&fixture.age);
	give(&fixture, 1);
	assert_int_equal(queue_age_read(&fixture.age, 3600), 0);
	queue_age_end_sleep(&fixture.age, 3600);
	/* The command that wakes comes first; then the owner. */
	queue_age_end_sleep(&fixture.age, 3605);
	assert_int_equal(queue_age_read(&fixture.age, 3610), 10);
	turn(&fixture, 0, 3620);
	assert_int_equal(queue_age_read(&fixture.age, 3620), 20);
	give(&fixture, 1);
	turn(&fixture, 1, 3630);
	assert_int_equal(queue_age_read(&fixture.age, 3630), 10);
	command_queue_destroy(&fixture.queue);
}

static void age_is_never_negative(void **state)
{
	struct fixture fixture;

	(void)state;
	open_at(&fixture, 10);
	assert_int_equal(queue_age_read(&fixture.age, 9), 0);
	command_queue_destroy(&fixture.queue);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(command_is_no_older_than_the_turn_that_left_nothing),
	cmocka_unit_test(age_follows_the_head_of_a_busy_queue),
	cmocka_unit_test(sleep_is_no_part_of_the_age),
	cmocka_unit_test(age_is_never_negative),
};

TEST_PROGRAM(tests)
