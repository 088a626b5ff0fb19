/* SPDX-License-Identifier: MIT */
/*
 * Timers by handle, given random commands, and what must come of them: every run, release and drain
 * call is compared with it, and every answer. For variants in which tasks run in order. The main
 * thread's alone.
 */
#ifndef SUPPORT_FORECAST_H
#define SUPPORT_FORECAST_H

#include <stdbool.h>

#include "probe.h"
#include "seed.h"

enum { FORECAST_TIMERS = 60 };

/* What a timer must do, reckoned by hand. */
struct expectation {
	bool armed;
	bool told;    /* by tw_each */
	bool at_once; /* when the wheel is next driven */
	tw_duration deadline;
	tw_duration period; /* 0: once */
	uint64_t order;     /* of its last command */
};

struct forecast {
	struct recorder *recorder;
	struct random random;
	struct probe probes[FORECAST_TIMERS];
	struct expectation timers[FORECAST_TIMERS];
	uint64_t orders;
	tw_duration now;
	size_t events; /* of the recorder, checked so far */
};

/* Makes the wheel. */
void forecast_begin(struct forecast *forecast, const struct variant *variant, struct random random);
/* A random command, what it causes at once, and sometimes some time. */
void forecast_step(struct forecast *forecast);
/* Stops the wheel, and destroys it: what is armed is released. */
void forecast_end(struct forecast *forecast);

#endif
