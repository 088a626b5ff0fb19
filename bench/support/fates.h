/* SPDX-License-Identifier: MIT */
/*
 * Fates are how many timers came back, and how. Any thread counts and reads them; they belong to
 * the whole process, as each trial has its own.
 */
#ifndef BENCH_SUPPORT_FATES_H
#define BENCH_SUPPORT_FATES_H

#include <stdint.h>

enum fate { FATE_RAN, FATE_DRAINED, FATE_STOPPED, FATE_COUNT };

void fates_add(enum fate fate);

/* Returns a count. The reader also sees the work that its threads did before counting. */
int64_t fates_counted(enum fate fate);

#endif
