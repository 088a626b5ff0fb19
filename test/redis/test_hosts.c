/* SPDX-License-Identifier: MIT */
/* Runs for hosts that have stalled: how long they are put off, and that none is lost. */
#include "support/test.h"

#include "redis/worker/hosts.h"

enum { RUNS = 11000, LIMIT = 2 };

static const tw_duration stall_time = 100 * TW_MILLISECOND;
static const tw_duration put_off_max = 10 * TW_SECOND;
static struct tw_redis_job jobs[2] = {{.url = "http://one.example/"},
				      {.url = "http://other.example/"}};
static struct run runs[RUNS];
static struct hosts hosts;

static int open_hosts(void **state)
{
	(void)state;
	for (int i = 0; i < RUNS; i++)
		runs[i] = (struct run){.job = &jobs[0]};
	hosts_init(&hosts, LIMIT);
	return 0;
}

static void assert_begins(struct run *run, tw_duration now)
{
	hosts_add(&hosts, run, now);
	assert_ptr_equal(hosts_take(&hosts, now), run);
}

/* How long the run is put off that comes now. */
static tw_duration time_put_off(struct run *run, tw_duration now)
{
	hosts_add(&hosts, run, now);
	assert_ptr_equal(run_list_take(&hosts.put_off), run);
	assert_int_equal(hosts.put_off.count, 0);
	return run->put_off;
}

static void runs_of_a_stalled_host_are_put_off_longer_and_longer_up_to_a_limit(void **state)
{
	tw_duration now = TW_SECOND;
	tw_duration last = stall_time;

	(void)state;
	assert_begins(&runs[0], now);
	assert_begins(&runs[1], now);
	now += stall_time;
	assert_int_equal(time_put_off(&runs[2], now), stall_time);
	for (int i = 3; i < RUNS; i++) {
		tw_duration time = time_put_off(&runs[i], now);

		assert_true(time > last || last == put_off_max);
		last = time;
	}
	assert_int_equal(last, put_off_max);
	/* An end without an answer changes nothing. */
	hosts_end(&hosts, &runs[1], now, false);
	assert_begins(&runs[1], now);
	now += stall_time;
	assert_int_equal(time_put_off(&runs[2], now), put_off_max);
	hosts_end(&hosts, &runs[1], now, true);
	assert_begins(&runs[1], now);
	now += stall_time;
	assert_int_equal(time_put_off(&runs[2], now), stall_time);
	hosts_end(&hosts, &runs[0], now, false);
	hosts_end(&hosts, &runs[1], now, false);
}

static void runs_that_wait_are_given_back_for_no_time(void **state)
{
	tw_duration now = TW_SECOND;

	(void)state;
	assert_begins(&runs[0], now);
	assert_begins(&runs[1], now);
	runs[4].job = &jobs[1];
	for (int i = 2; i < 5; i++)
		hosts_add(&hosts, &runs[i], now);
	hosts_give_back(&hosts);
	assert_int_equal(hosts.put_off.count, 3);
	for (int i = 2; i < 5; i++)
		assert_int_equal(run_list_take(&hosts.put_off)->put_off, 0);
	/* Neither host has any left. */
	hosts_end(&hosts, &runs[0], now, true);
	hosts_end(&hosts, &runs[1], now, true);
	assert_null(hosts_take(&hosts, now));
	for (int i = 0; i < HOST_CHAINS; i++)
		assert_null(hosts.chains[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			runs_of_a_stalled_host_are_put_off_longer_and_longer_up_to_a_limit,
			open_hosts),
		cmocka_unit_test_setup(runs_that_wait_are_given_back_for_no_time, open_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
