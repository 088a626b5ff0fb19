/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of the making of a schedule fails once, and all from there on: the call says so
 * and leaves nothing behind. Leaks are for the address sanitizer's run to find.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/recorder.h"

#include <stdbool.h>

#include <timingwheel/cron.h>

/* False: there was no memory. */
static bool make_and_destroy(const char *zone)
{
	struct tw_cron_error error = {0};
	struct tw_cron *cron = VALUE(1);
	enum tw_status status = tw_cron_create(&cron, "30 2 * * *", zone, &error);

	end_faults();
	if (status == TW_OK) {
		tw_cron_destroy(cron);
		return true;
	}
	assert_status(status, TW_NO_MEMORY);
	assert_null(cron);
	assert_string_equal(error.text, "out of memory");
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

static void schedule_without_memory_is_refused(void **state)
{
	(void)state;
	assert_int_equal(fail_each_allocation(NULL), 1);
	/* The bytes of the file, its changes, and the schedule. */
	assert_int_equal(fail_each_allocation("Europe/Berlin"), 3);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(schedule_without_memory_is_refused),
};

TEST_PROGRAM(tests)
