/* SPDX-License-Identifier: MIT */
/*
 * These tests are about which run begins next, and which are put off until when. The tests give the
 * time.
 */
#include "support/test.h"

#include "redis/worker/hosts.h"

enum { RUNS = 100, LIMIT = 8 };

static const tw_duration ms = TW_MILLISECOND;
static struct tw_redis_job jobs[RUNS];
static struct run runs[RUNS];
static struct batch batches[RUNS];
static struct hosts hosts;
static tw_duration now;

static int open_hosts(void **state)
{
	for (int i = 0; i < RUNS; i++) {
		jobs[i] = (struct tw_redis_job){.url = "http://one.example/", .due_ms = i};
		runs[i] =
			(struct run){.job = &jobs[i], .batch = &batches[i], .late_at = TW_FOREVER};
		atomic_init(&batches[i].leased_until, TW_FOREVER);
	}
	now = TW_HOUR;
	hosts_init(&hosts, LIMIT, 7);
	return 0;
}

static int close_hosts(void **state)
{
	hosts_free(&hosts);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_hosts, .close = close_hosts};

static void add(int first, int last)
{
	for (int i = first; i <= last; i++)
		hosts_add(&hosts, &runs[i], now);
	hosts_check(&hosts, now);
}

/* Returns the number of the run that begins, or -1. */
static int begin(void)
{
	const struct run *run = hosts_take(&hosts, now, 64);

	return run ? (int)(run - runs) : -1;
}

static void assert_begin(int first, int last)
{
	for (int i = first; i <= last; i++)
		assert_int_equal(begin(), i);
	assert_int_equal(begin(), -1);
}

/* Ends a request that began `took` ago. */
static void end(int run, tw_duration took, enum host_sign sign)
{
	runs[run].took = took;
	hosts_end(&runs[run], now, sign, 0);
	hosts_check(&hosts, now);
}

/* Asserts that these runs are put off, the later ones first, all to one time. Returns it. */
static tw_duration assert_put_off(int first, int last)
{
	for (int i = last; i >= first; i--) {
		assert_ptr_equal(run_list_take(&hosts.put_off), &runs[i]);
		assert_int_equal(runs[i].put_off, runs[last].put_off);
	}
	assert_int_equal(hosts.put_off.count, 0);
	return now + runs[last].put_off;
}

/* Makes the host one that has answered. */
static void answer_once(void)
{
	add(0, 0);
	assert_begin(0, 0);
	end(0, 0, HOST_ANSWERED);
}

TEST(opened, first_due_begins_first_up_to_the_hosts_limit)
{
	jobs[20].url = "https://user@two.example:80?";
	for (int i = 9; i >= 0; i--)
		add(i, i);
	add(20, 20);
	for (int i = 0; i < LIMIT; i++)
		assert_int_equal(begin(), i);
	assert_begin(20, 20);
	/* One that ends makes room for the next; none is put off, as the host answers. */
	end(3, 100 * ms, HOST_ANSWERED);
	assert_begin(8, 8);
	now += TW_HOUR;
	end(4, 0, HOST_ANSWERED);
	assert_begin(9, 9);
	assert_int_equal(hosts.put_off.count, 0);
}

TEST(opened, host_that_is_silent_keeps_as_many_runs_as_requests)
{
	answer_once();
	add(1, 30);
	assert_begin(1, LIMIT);
	now += 999 * ms;
	hosts_check(&hosts, now);
	assert_int_equal(hosts.aside, 0);
	now += ms;
	hosts_check(&hosts, now);
	assert_int_equal(hosts.aside, LIMIT);
	assert_in_range(assert_put_off(2 * LIMIT + 1, 30) - now, 1500 * ms, 2200 * ms);
	/* An answer, also to the last request, gives it all again. */
	end(LIMIT, 0, HOST_ANSWERED);
	for (int i = 1; i < LIMIT; i++)
		end(i, 0, HOST_ANSWERED);
	assert_begin(LIMIT + 1, 2 * LIMIT);
	hosts_check(&hosts, now);
	assert_int_equal(hosts.aside, 0);
}

TEST(opened, host_that_never_answered_is_silent_earlier)
{
	add(1, 30);
	assert_begin(1, LIMIT);
	assert_int_equal(host_patience(runs[1].host), 200 * ms);
	now += 200 * ms;
	hosts_check(&hosts, now);
	assert_put_off(2 * LIMIT + 1, 30);
}

/* The first hosts leave places to those that come later. */
TEST(opened, hosts_that_never_answered_leave_room_for_others)
{
	static char urls[10][32];
	int begun = 0;
	int i;

	hosts.limit = 56;
	for (i = 0; i < RUNS; i++) {
		snprintf(urls[i / 50], sizeof(urls[0]), "http://%d.example", i / 50);
		jobs[i].url = urls[i / 50];
	}
	add(0, RUNS - 1);
	for (; hosts_take(&hosts, now, 64 - (unsigned)begun); begun++)
		continue;
	assert_in_range(begun, 48, 57);
	/* What is left waits, and nothing is put off yet. */
	hosts_check(&hosts, now);
	assert_int_equal(hosts.aside, RUNS - begun);
	assert_int_equal(hosts.put_off.count, 0);
	/* An answer proves the first host, which has its limit then. */
	end(0, 0, HOST_ANSWERED);
	assert_int_equal(begin() >= 0, 1);
}

TEST(opened, host_that_is_down_is_tried_by_one_request_at_a_time)
{
	tw_duration begun = now;
	int tries = 0;

	add(0, 2);
	assert_begin(0, 2);
	for (int i = 0; i < 3; i++)
		end(i, 0, HOST_AWAY);
	for (; now < begun + 10 * TW_MINUTE; tries++) {
		tw_duration back;

		runs[1].put_off = runs[3].put_off = 0;
		add(1, 3);
		back = assert_put_off(2, 3);
		assert_int_equal(begin(), -1);
		assert_in_range(back - now, 1200 * ms, 15200 * ms);
		assert_true(back - now <= (now - begun) / 5 + 2500 * ms);
		/* The one that waits here is first, and the others find whether it was answered. */
		now = back - 200 * ms;
		assert_begin(1, 1);
		end(1, 0, HOST_AWAY);
	}
	assert_in_range(tries, 30, 100);
	now += TW_MINUTE;
	add(1, 20);
	assert_begin(1, 1);
	assert_put_off(3, 20);
	end(1, 0, HOST_ANSWERED);
	add(3, 20);
	assert_begin(2, 1 + LIMIT);
}

TEST(opened, older_failure_says_nothing)
{
	add(0, 9);
	assert_begin(0, LIMIT - 1);
	now += 100 * ms;
	end(0, 100 * ms, HOST_ANSWERED);
	assert_begin(8, 8);
	now += 10 * ms;
	end(1, 110 * ms, HOST_AWAY);
	assert_begin(9, 9);
	/* A younger one does. */
	end(8, 10 * ms, HOST_AWAY);
	add(20, 21);
	assert_int_equal(begin(), -1);
	/* A request that was never sent says nothing either. */
	end(9, 0, HOST_UNKNOWN);
	assert_int_equal(begin(), -1);
	end(2, 0, HOST_ANSWERED);
	assert_begin(20, 21);
}

TEST(opened, pause_puts_all_off_to_its_end_whatever_older_requests_answer)
{
	jobs[50].url = "http://two.example/";
	add(0, 3);
	assert_begin(0, 3);
	add(4, 12);
	assert_begin(4, 7);
	hosts_end(&runs[0], now, HOST_ANSWERED, 20 * TW_SECOND);
	hosts_check(&hosts, now);
	assert_int_equal(runs[0].put_off, 20 * TW_SECOND);
	assert_int_equal(assert_put_off(8, 12), now + 20 * TW_SECOND);
	now += TW_SECOND;
	end(1, TW_SECOND, HOST_ANSWERED);
	/* A shorter pause does not end it either. */
	hosts_end(&runs[2], now, HOST_ANSWERED, TW_SECOND);
	assert_int_equal(runs[2].put_off, 19 * TW_SECOND);
	add(20, 25);
	add(50, 50);
	assert_put_off(20, 25);
	assert_begin(50, 50);
	now += 19 * TW_SECOND;
	add(30, 40);
	assert_begin(30, 32);
}

TEST(opened, run_that_would_be_too_late_is_over)
{
	runs[0].late_at = now + 3 * TW_SECOND;
	runs[1].late_at = runs[3].late_at = now + TW_SECOND;
	add(0, 0);
	assert_begin(0, 0);
	add(1, 2);
	/* The pause is longer for the run that was refused, and for one that waits. */
	hosts_end(&runs[0], now, HOST_ANSWERED, 5 * TW_SECOND);
	hosts_check(&hosts, now);
	assert_int_equal(runs[0].fate, FATE_LATE);
	assert_int_equal(runs[0].put_off, 0);
	assert_ptr_equal(run_list_take(&hosts.put_off), &runs[2]);
	assert_int_equal(runs[2].fate, FATE_RUN);
	assert_ptr_equal(run_list_take(&hosts.put_off), &runs[1]);
	assert_int_equal(runs[1].fate, FATE_LATE);
	/* One that has waited here is too late when its turn comes. */
	now += 5 * TW_SECOND;
	add(3, 4);
	assert_begin(4, 4);
	assert_ptr_equal(run_list_take(&hosts.put_off), &runs[3]);
	assert_int_equal(runs[3].fate, FATE_LATE);
}

TEST(opened, run_whose_lease_has_ended_does_not_begin)
{
	atomic_store_explicit(&batches[1].leased_until, now, memory_order_relaxed); /* one thread */
	add(1, 2);
	assert_begin(2, 2);
	assert_ptr_equal(run_list_take(&hosts.put_off), &runs[1]);
	assert_int_equal(runs[1].fate, FATE_RUN);
	assert_int_equal(runs[1].put_off, TW_MILLISECOND);
}

TEST(opened, runs_that_wait_are_given_back_for_no_time)
{
	add(0, 20);
	assert_begin(0, LIMIT - 1);
	hosts_give_back(&hosts);
	assert_int_equal(hosts.put_off.count, 21 - LIMIT);
	for (int i = LIMIT; i < 21; i++)
		assert_int_equal(run_list_take(&hosts.put_off)->put_off, 0);
	end(0, 0, HOST_ANSWERED);
	assert_int_equal(begin(), -1);
}
