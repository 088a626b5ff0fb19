/* SPDX-License-Identifier: MIT */
/* These calls of the library may not fail in a bench. Any thread may use them. */
#ifndef BENCH_SUPPORT_EXPECT_H
#define BENCH_SUPPORT_EXPECT_H

#include <timingwheel/timingwheel.h>

/* Ends the program unless the call returned TW_OK. */
void expect_ok(enum tw_status status, const char *call);

struct tw_stats expect_stats(struct tw_wheel *wheel);

#endif
