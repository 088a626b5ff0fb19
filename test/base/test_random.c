/* SPDX-License-Identifier: MIT */
/* This tests the random numbers of the tests: each seed and each stream has its own. */
#include "support/test.h"

#include "support/random.h"

enum { SEEDS = 8, STREAMS = 4, NUMBERS = 64, ALL = SEEDS * STREAMS * NUMBERS };

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a;
	uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

TEST(once, neighbouring_seeds_and_streams_have_no_number_in_common)
{
	static uint64_t numbers[ALL];
	int count = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		for (uint64_t stream = 0; stream < STREAMS; stream++) {
			struct random random = random_from(seed, stream);

			for (int i = 0; i < NUMBERS; i++)
				numbers[count++] = random_next(&random);
		}
	}
	qsort(numbers, ALL, sizeof(numbers[0]), compare);
	for (int i = 1; i < ALL; i++)
		assert_true(numbers[i - 1] != numbers[i]);
}

TEST(once, seed_and_stream_repeat_their_numbers)
{
	struct random first = random_from(7, 3);
	struct random second = random_from(7, 3);

	for (int i = 0; i < NUMBERS; i++)
		assert_true(random_next(&first) == random_next(&second));
}
