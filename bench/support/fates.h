/* SPDX-License-Identifier: MIT */
/*
 * How many timers came back, and how. Counted by any thread, read by any; for the whole process,
 * for a trial has one of its own.
 */
#ifndef BENCH_SUPPORT_FATES_H
#define BENCH_SUPPORT_FATES_H

#include <stdint.h>

enum fate { FATE_RAN, FATE_DRAINED, FATE_STOPPED, FATE_COUNT };

void fates_add(enum fate fate);

/* Whoever sees a count sees what its threads had done before. */
int64_t fates_counted(enum fate fate);

#endif
