/* SPDX-License-Identifier: MIT */
/*
 * These tests are about postponed runs, for hosts that have stalled and for hosts that ask for
 * pauses. None is lost, and they resume in few batches.
 */
#include "support/test.h"

#include "redis/worker/hosts.h"

enum { RUNS = 20000, LIMIT = 2, SHARDS = 64, CLUMP = 100 };

static const tw_duration stall_time = 100 * TW_MILLISECOND;
static struct tw_redis_job jobs[SHARDS + 1];
static struct run runs[RUNS];
static struct hosts hosts;

static int open_hosts(void **state)
{
	for (unsigned i = 0; i < SHARDS; i++)
		jobs[i] = (struct tw_redis_job){.url = "http://one.example/", .shard = i};
	jobs[SHARDS] = (struct tw_redis_job){.url = "http://other.example/"};
	for (int i = 0; i < RUNS; i++)
		runs[i] = (struct run){.job = &jobs[i % SHARDS]};
	hosts_init(&hosts, LIMIT, SHARDS, CLUMP);
	return 0;
}

static int close_hosts(void **state)
{
	hosts_free(&hosts);
	return 0;
}

static const struct test_kind kind_opened = {.open = open_hosts, .close = close_hosts};

static void assert_begins(struct run *run, tw_duration now)
{
	hosts_add(&hosts, run, now);
	assert_ptr_equal(hosts_take(&hosts, now), run);
}

/* Returns for how long the run that comes now is postponed. */
static tw_duration time_put_off(struct run *run, tw_duration now)
{
	hosts_add(&hosts, run, now);
	assert_ptr_equal(run_list_take(&hosts.put_off), run);
	assert_int_equal(hosts.put_off.count, 0);
	return run->put_off;
}

/* Lets the host run as many as it may. Returns a time when it has stalled for `silence`. */
static tw_duration stall(tw_duration silence)
{
	assert_begins(&runs[0], TW_SECOND);
	assert_begins(&runs[1], TW_SECOND);
	return TW_SECOND + silence;
}

static int compare_put_off(const void *a, const void *b)
{
	const struct run *one = a;
	const struct run *other = b;

	return (one->put_off > other->put_off) - (one->put_off < other->put_off);
}

/* A visit is a claim of one shard, or two. */
TEST(opened, long_line_of_a_silent_host_costs_few_visits_a_second)
{
	tw_duration now = stall(5 * TW_SECOND);
	tw_duration last = 0;
	size_t visits = 0;
	size_t size = 0;

	for (int i = 2; i < RUNS; i++)
		time_put_off(&runs[i], now);
	qsort(runs + 2, RUNS - 2, sizeof(runs[0]), compare_put_off);
	for (int i = 2; i < RUNS; i++) {
		bool same = i > 2 && runs[i].put_off == runs[i - 1].put_off;

		/* All runs of a batch are of one shard. */
		assert_true(!same || runs[i].job == runs[i - 1].job);
		size = same ? size + 1 : 1;
		visits += !same;
		assert_in_range(size, 1, CLUMP);
		assert_true(same || !last || runs[i].put_off - last >= 500 * TW_MILLISECOND);
		last = runs[i].put_off;
	}
	assert_in_range(visits, RUNS / CLUMP, RUNS / CLUMP + SHARDS);
	/* They come back at 100 or 200 a second. */
	assert_in_range(last, RUNS / 200 * TW_SECOND, RUNS / 100 * TW_SECOND);
	hosts_end(&hosts, &runs[0], now, false, 0);
	hosts_end(&hosts, &runs[1], now, false, 0);
}

TEST(opened, few_runs_of_a_slow_host_come_back_soon)
{
	tw_duration now = stall(stall_time);

	assert_int_equal(time_put_off(&runs[2], now), stall_time);
	for (int i = 3; i < SHARDS; i++)
		assert_in_range(time_put_off(&runs[i], now), stall_time, 4 * TW_SECOND);
	/* An answer makes it fast again; the queue continues where it ended. */
	hosts_end(&hosts, &runs[0], now, true, 0);
	hosts_end(&hosts, &runs[1], now, false, 0);
	now += 10 * TW_SECOND;
	assert_begins(&runs[0], now);
	hosts_end(&hosts, &runs[0], now, true, 0);
	assert_begins(&runs[0], now);
	assert_begins(&runs[1], now);
	now += stall_time;
	assert_int_equal(time_put_off(&runs[2], now), stall_time);
	hosts_end(&hosts, &runs[0], now, true, 0);
	hosts_end(&hosts, &runs[1], now, true, 0);
}

TEST(opened, line_outlives_the_runs_of_its_host)
{
	tw_duration now = stall(5 * TW_SECOND);
	tw_duration last = 0;

	for (int i = 2; i < SHARDS; i++)
		last = time_put_off(&runs[i], now);
	hosts_end(&hosts, &runs[0], now, false, 0);
	hosts_end(&hosts, &runs[1], now, false, 0);
	assert_begins(&runs[0], now);
	assert_begins(&runs[1], now);
	now += stall_time;
	assert_true(time_put_off(&runs[0 + SHARDS], now) > last - stall_time);
	hosts_end(&hosts, &runs[0], now, false, 0);
	hosts_end(&hosts, &runs[1], now, false, 0);
}

/* Ends the run with an answer that asks for a pause. */
static void end_with_pause(struct run *run, tw_duration now, tw_duration pause)
{
	run->put_off = 0;
	run->took = 0;
	hosts_end(&hosts, run, now, true, pause);
}

TEST(opened, nothing_begins_before_the_pause_is_over)
{
	tw_duration now = TW_SECOND;

	assert_begins(&runs[0], now);
	hosts_add(&hosts, &runs[1], now);
	end_with_pause(&runs[0], now, 10 * TW_SECOND);
	/* It is postponed, as are all that wait and come. */
	assert_in_range(runs[0].put_off, 10 * TW_SECOND, 11 * TW_SECOND);
	assert_ptr_equal(run_list_take(&hosts.put_off), &runs[1]);
	assert_in_range(runs[1].put_off, 10 * TW_SECOND, 11 * TW_SECOND);
	assert_in_range(time_put_off(&runs[2], now), 10 * TW_SECOND, 11 * TW_SECOND);
	/* Shortly before, one may be postponed here; another host's begins. */
	now += 10 * TW_SECOND - TW_MILLISECOND;
	hosts_add(&hosts, &runs[3], now);
	assert_null(hosts_take(&hosts, now));
	assert_true(hosts.check_at && hosts.check_at <= now + TW_MILLISECOND);
	runs[4].job = &jobs[SHARDS];
	assert_begins(&runs[4], now);
	now += TW_MILLISECOND;
	hosts_check(&hosts, now);
	assert_ptr_equal(hosts_take(&hosts, now), &runs[3]);
	hosts_end(&hosts, &runs[3], now, true, 0);
	hosts_end(&hosts, &runs[4], now, true, 0);
}

/* Counts how many begin and end, answered, within the time. */
static int begin_for(tw_duration *now, tw_duration time)
{
	tw_duration until = *now + time;
	int begun = 0;

	for (; *now < until; *now += TW_MILLISECOND) {
		hosts_add(&hosts, &runs[1], *now);
		hosts_check(&hosts, *now);
		while (run_list_take(&hosts.put_off))
			;
		for (struct run *run; (run = hosts_take(&hosts, *now)); begun++)
			hosts_end(&hosts, run, *now, true, 0);
		hosts_give_back(&hosts, *now);
		while (run_list_take(&hosts.put_off))
			;
	}
	return begun;
}

TEST(opened, pauses_halve_the_rate_and_answers_raise_it)
{
	tw_duration now = TW_SECOND;
	int first;
	int second;

	assert_begins(&runs[5], now);
	for (int i = 0; i < 20; i++, now += 10 * TW_MILLISECOND) {
		assert_begins(&runs[0], now);
		hosts_end(&hosts, &runs[0], now, true, 0);
	}
	assert_begins(&runs[0], now);
	end_with_pause(&runs[0], now, TW_SECOND);
	now += TW_SECOND;
	first = begin_for(&now, TW_SECOND);
	assert_in_range(first, 20, 90);
	hosts_add(&hosts, &runs[0], now + TW_SECOND);
	assert_ptr_equal(hosts_take(&hosts, now + TW_SECOND), &runs[0]);
	now += TW_SECOND;
	end_with_pause(&runs[0], now, TW_SECOND);
	now += TW_SECOND;
	second = begin_for(&now, TW_SECOND);
	assert_in_range(second, first / 3, first * 2 / 3);
	begin_for(&now, 10 * TW_SECOND);
	assert_true(begin_for(&now, TW_SECOND) > 3 * second / 2);
	hosts_end(&hosts, &runs[5], now, true, 0);
}

TEST(opened, attempts_count_when_a_host_has_asked_for_pauses_for_an_hour)
{
	tw_duration now = TW_SECOND;

	for (tw_duration end = now + TW_HOUR; now < end; now += 30 * TW_SECOND) {
		assert_begins(&runs[0], now);
		end_with_pause(&runs[0], now, 20 * TW_SECOND);
		assert_true(runs[0].put_off > 0);
	}
	assert_begins(&runs[0], now);
	end_with_pause(&runs[0], now, 20 * TW_SECOND);
	assert_int_equal(runs[0].put_off, 0);
	/* Another answer gives it an hour again. */
	now += 30 * TW_SECOND;
	assert_begins(&runs[0], now);
	hosts_end(&hosts, &runs[0], now, true, 0);
	now += TW_MINUTE;
	assert_begins(&runs[0], now);
	end_with_pause(&runs[0], now, 20 * TW_SECOND);
	assert_true(runs[0].put_off > 0);
}

TEST(opened, runs_that_wait_are_given_back_for_no_time)
{
	tw_duration now = TW_SECOND;

	assert_begins(&runs[0], now);
	assert_begins(&runs[1], now);
	runs[4].job = &jobs[SHARDS];
	for (int i = 2; i < 5; i++)
		hosts_add(&hosts, &runs[i], now);
	hosts_give_back(&hosts, now);
	assert_int_equal(hosts.put_off.count, 3);
	for (int i = 2; i < 5; i++)
		assert_int_equal(run_list_take(&hosts.put_off)->put_off, 0);
	/* Neither host has any left. */
	hosts_end(&hosts, &runs[0], now, true, 0);
	hosts_end(&hosts, &runs[1], now, true, 0);
	assert_null(hosts_take(&hosts, now));
	for (int i = 0; i < HOST_CHAINS; i++)
		assert_null(hosts.chains[i]);
}
