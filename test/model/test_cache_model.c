/* SPDX-License-Identifier: MIT */
/* The cache is compared with a model: random calls, with every answer and every removal. */
#include "support/test.h"

#include "model/cache_trial.h"

enum { TRIALS = TEST_SHARE_OF(300), STEPS = 400 };

TEST(once, every_answer_and_removal_is_as_the_model_says)
{
	static struct cache_trial trial;

	for (uint64_t stream = 0; stream < TRIALS; stream++) {
		cache_trial_begin(&trial, random_from(seed_choose(), stream));
		for (int step = 0; step < STEPS; step++)
			cache_trial_step(&trial);
		cache_trial_end(&trial);
	}
}
