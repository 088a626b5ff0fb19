/* SPDX-License-Identifier: MIT */
/* Calls of the library that may not fail in a bench. Any thread. */
#ifndef BENCH_SUPPORT_EXPECT_H
#define BENCH_SUPPORT_EXPECT_H

#include <timingwheel/timingwheel.h>

/* Ends the program if the call answered anything but TW_OK. */
void expect_ok(enum tw_status status, const char *call);

struct tw_stats expect_stats(struct tw_wheel *wheel);

#endif
