/* SPDX-License-Identifier: MIT */
/*
 * Timers by handle are compared with the model: the bytes are the random numbers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "model/trial.h"

#include "fuzz.h"

enum { STEPS_MOST = 300 };

static const struct trial_setting setting = {TW_LAYOUT_LEVELS, 10, 1, 300, 0, true, false};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct random random = random_from_bytes(data, size);
	static struct trial trial;

	trial_begin(&trial, &setting, random);
	trial_run(&trial, STEPS_MOST);
	trial_end(&trial);
	if (trial.wrong[0]) {
		fprintf(stderr, "%s\n", trial.wrong);
		abort();
	}
	return 0;
}
