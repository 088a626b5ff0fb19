/* SPDX-License-Identifier: MIT */
/*
 * The calls by key, from outside and from inside tasks, are compared with the model: the bytes are
 * its random numbers. The first of them chooses the wheel.
 */
#include "model/trial.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum { OPERATIONS_MOST = 400 };

static const struct trial_setting settings[] = {
	{TW_LAYOUT_LEVELS, 1, 8, 500, 0, false, false},
	{TW_LAYOUT_LEVELS, 3, 20, 2000, 0, false, false},
	{TW_LAYOUT_LEVELS, 10, 100, 2000, 0, false, false},
	{TW_LAYOUT_LEVELS, 512, 20, 5000, 0, false, false},
	{TW_LAYOUT_ROUNDS, 512, 20, 5000, 0, false, false},
	{TW_LAYOUT_LEVELS, 10, 100, 1000, 16, false, false},
	{TW_LAYOUT_LEVELS, 64, 100, 100000, 64, false, false},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct random random = random_from_bytes(data, size);
	const struct trial_setting *setting =
		&settings[random_below(&random, sizeof(settings) / sizeof(settings[0]))];
	static struct trial trial;

	trial_begin(&trial, setting, random);
	trial_run(&trial, OPERATIONS_MOST);
	trial_end(&trial);
	if (trial.wrong[0]) {
		fprintf(stderr, "%s\n", trial.wrong);
		abort();
	}
	return 0;
}
