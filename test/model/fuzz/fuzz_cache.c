/* SPDX-License-Identifier: MIT */
/* The cache's calls are compared with the model: the bytes are its random numbers, and choose the
 * options. */
#include "model/cache_trial.h"

#include "fuzz.h"

enum { STEPS_MOST = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cache_trial trial;

	cache_trial_begin(&trial, random_from_bytes(data, size));
	for (int step = 0; step < STEPS_MOST && !random_is_spent(&trial.random); step++)
		cache_trial_step(&trial);
	cache_trial_end(&trial);
	return 0;
}
