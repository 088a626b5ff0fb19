/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of creating a schedule fails once, and all from there on, and each way of reading
 * the zone's file: the call reports it and leaves nothing behind. Leaks are found by the address
 * sanitizer's run.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/recorder.h"

#include <timingwheel/cron.h>

/* Returns false without memory. */
static bool make_and_destroy(const char *zone)
{
	struct tw_cron_error reported = {0};
	struct tw_cron *cron = VALUE(1);
	enum tw_status status = tw_cron_create(&cron, "30 2 * * *", zone, &reported);

	end_faults();
	if (status == TW_OK) {
		tw_cron_destroy(cron);
		return true;
	}
	assert_status(status, TW_NO_MEMORY);
	assert_null(cron);
	assert_string_equal(reported.text, "out of memory");
	return false;
}

static long fail_each_allocation(const char *zone)
{
	long allocations = 0;
	bool made;

	do {
		fail_allocation(++allocations, false);
		made = make_and_destroy(zone);
		assert_int_equal(made, !fault_was_met());
		fail_allocation(allocations, true);
		assert_int_equal(make_and_destroy(zone), made);
	} while (!made);
	return allocations - 1;
}

TEST(once, schedule_without_memory_is_refused)
{
	assert_int_equal(fail_each_allocation(NULL), 1);
	/* These are the bytes of the file, its changes, and the schedule. */
	assert_int_equal(fail_each_allocation("Europe/Berlin"), 3);
}

static void make_with_fault(void *context)
{
	begin_faults();
	(void)make_and_destroy(context);
}

TEST(once, schedule_meets_the_failure_of_each_two_allocations)
{
	(void)fail_each(FAULT_PAIR, make_with_fault, "Europe/Berlin");
}

static void assert_unreadable(int error)
{
	struct tw_cron *cron = VALUE(1);
	struct tw_cron_error reported = {0};

	errno = 0;
	assert_status(tw_cron_create(&cron, "30 2 * * *", "Europe/Berlin", &reported), TW_SYSTEM);
	assert_true(end_faults());
	assert_int_equal(errno, error);
	assert_null(cron);
	assert_string_equal(reported.text, "the zone's file can't be read");
}

TEST(once, zone_that_cannot_be_read_is_refused_and_errno_says_why)
{
	fail_descriptor(1);
	assert_unreadable(EMFILE);
	fail_calls("fstat", EIO);
	assert_unreadable(EIO);
	fail_calls("read", EIO);
	assert_unreadable(EIO);
}

TEST(once, zone_that_ends_before_its_size_is_refused)
{
	struct tw_cron *cron;
	struct tw_cron_error reported = {0};

	fail_calls("read", 0);
	assert_status(tw_cron_create(&cron, "30 2 * * *", "Europe/Berlin", &reported), TW_INVALID);
	assert_true(end_faults());
	assert_string_equal(reported.text, "the zone's file changes");
}

TEST(once, interrupted_read_of_a_zone_is_made_again)
{
	fail_calls("read", EINTR);
	assert_true(make_and_destroy("Europe/Berlin"));
	assert_true(fault_was_met());
}
