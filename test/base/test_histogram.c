/* SPDX-License-Identifier: MIT */
/* The percentiles of a histogram are compared with those of the sorted times. */
#include "support/test.h"

#include "base/histogram.h"

enum { HISTOGRAMS = 3, TIMES_MAX = 20000 };

static const tw_duration limit = (tw_duration)1 << HISTOGRAM_LIMIT_LOG2;

/* Each histogram and the array hold the same times. */
struct fixture {
	struct histogram histograms[HISTOGRAMS];
	tw_duration times[TIMES_MAX];
	size_t count;
};

static struct fixture *fixture_create(void)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	return fixture;
}

static void record(struct fixture *fixture, tw_duration time)
{
	assert_true(fixture->count < TIMES_MAX);
	histogram_record(&fixture->histograms[fixture->count % HISTOGRAMS], time);
	fixture->times[fixture->count++] = time < 0 ? 0 : time;
}

static struct tw_percentiles percentiles_of(const struct histogram *histograms, size_t count)
{
	static struct histogram_sum sum;

	memset(&sum, 0, sizeof(sum));
	for (size_t i = 0; i < count; i++)
		histogram_add(&sum, &histograms[i]);
	return histogram_percentiles(&sum);
}

static int compare_times(const void *left, const void *right)
{
	tw_duration a = *(const tw_duration *)left;
	tw_duration b = *(const tw_duration *)right;

	return (a > b) - (a < b);
}

/* Returns the least time such that `percent` % of the times are at most as long. */
static tw_duration true_percentile(const struct fixture *fixture, unsigned percent)
{
	size_t rank = (fixture->count * percent + 99) / 100;

	return fixture->times[rank - 1];
}

static void assert_near(tw_duration reported, tw_duration time, tw_duration longest)
{
	bool good = reported <= longest && llabs(reported - time) <= time / 32;

	/* At or above the limit, the histogram reports its longest time. */
	if (time >= limit)
		good = reported == longest;
	if (!good)
		fail_msg("%lld was reported as %lld, the longest being %lld", (long long)time,
			 (long long)reported, (long long)longest);
}

static void assert_as_sorted(struct fixture *fixture)
{
	struct tw_percentiles reported = percentiles_of(fixture->histograms, HISTOGRAMS);
	tw_duration longest;

	qsort(fixture->times, fixture->count, sizeof(fixture->times[0]), compare_times);
	longest = fixture->times[fixture->count - 1];
	assert_int_equal(reported.count, fixture->count);
	assert_int_equal(reported.max, longest);
	assert_near(reported.p50, true_percentile(fixture, 50), longest);
	assert_near(reported.p90, true_percentile(fixture, 90), longest);
	assert_near(reported.p99, true_percentile(fixture, 99), longest);
}

static void assert_alone_is(tw_duration time, tw_duration expected)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram));
	struct tw_percentiles reported;

	assert_non_null(histogram);
	histogram_record(histogram, time);
	reported = percentiles_of(histogram, 1);
	assert_int_equal(reported.count, 1);
	assert_int_equal(reported.max, expected);
	assert_near(reported.p50, expected, expected);
	assert_near(reported.p90, expected, expected);
	assert_near(reported.p99, expected, expected);
	free(histogram);
}

TEST(once, single_time_is_reported_at_every_power_of_two)
{
	assert_alone_is(0, 0);
	for (int shift = 0; shift < 63; shift++)
		for (tw_duration step = -1; step <= 1; step++)
			assert_alone_is(((tw_duration)1 << shift) + step,
					((tw_duration)1 << shift) + step);
}

TEST(once, extreme_times_are_reported)
{
	assert_alone_is(TW_FOREVER, TW_FOREVER);
	assert_alone_is(TW_FOREVER - 1, TW_FOREVER - 1);
	assert_alone_is(-1, 0);
	assert_alone_is(INT64_MIN, 0);
}

TEST(once, times_under_32_are_exact)
{
	struct fixture *fixture = fixture_create();
	struct tw_percentiles reported;

	for (tw_duration time = 0; time < 32; time++)
		record(fixture, time);
	reported = percentiles_of(fixture->histograms, HISTOGRAMS);
	assert_int_equal(reported.p50, 15);
	assert_int_equal(reported.p90, 28);
	assert_int_equal(reported.p99, 31);
	assert_int_equal(reported.max, 31);
	free(fixture);
}

/* Times have every size up to 2^bits. */
TEST(once, random_times_are_reported_as_sorted)
{
	uint64_t seed = seed_choose();

	for (uint64_t round = 0; round < TEST_SHARE_OF(600); round++) {
		struct random random = random_from(seed, round);
		struct fixture *fixture = fixture_create();
		size_t count = 1 + random_below(&random, round % 10 ? 300 : TIMES_MAX);
		uint64_t bits = 1 + random_below(&random, 63);

		for (size_t i = 0; i < count; i++) {
			uint64_t bound = (uint64_t)1 << random_below(&random, bits);

			record(fixture, (tw_duration)random_below(&random, bound));
		}
		assert_as_sorted(fixture);
		free(fixture);
	}
}

struct reading {
	struct histogram histogram;
	atomic_bool ended;
};

static void *record_many(void *argument)
{
	struct reading *reading = argument;

	for (tw_duration i = 0; i < TEST_SHARE_OF(3000000); i++)
		histogram_record(&reading->histogram, i * 50);
	atomic_store(&reading->ended, true);
	return NULL;
}

TEST(once, what_is_read_meanwhile_makes_sense)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct tw_percentiles last = {0};
	pthread_t writer;
	bool ended;

	assert_non_null(reading);
	assert_int_equal(pthread_create(&writer, NULL, record_many, reading), 0);
	do {
		struct tw_percentiles reported;

		ended = atomic_load(&reading->ended);
		reported = percentiles_of(&reading->histogram, 1);
		assert_true(reported.p50 <= reported.p90 && reported.p90 <= reported.p99 &&
			    reported.p99 <= reported.max);
		assert_true(reported.count >= last.count && reported.max >= last.max);
		last = reported;
	} while (!ended);
	pthread_join(writer, NULL);
	assert_int_equal(last.count, TEST_SHARE_OF(3000000));
	assert_int_equal(last.max, (TEST_SHARE_OF(3000000) - 1) * 50);
	free(reading);
}
