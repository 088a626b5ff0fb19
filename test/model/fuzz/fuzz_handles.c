/* SPDX-License-Identifier: MIT */
/*
 * Timers by handle against what is foretold of them: the bytes are the random numbers. The first of
 * them chooses the layout.
 */
#include "support/forecast.h"

#include "fuzz.h"

enum { STEPS_MOST = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct random random = random_from_bytes(data, size);
	const struct variant *variant = random_below(&random, 2) ? &rounds_inline : &levels_inline;
	static struct forecast forecast;

	forecast_begin(&forecast, variant, random);
	for (int step = 0; step < STEPS_MOST && !random_is_spent(&forecast.random); step++)
		forecast_step(&forecast);
	forecast_end(&forecast);
	return 0;
}
