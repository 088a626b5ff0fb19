/* SPDX-License-Identifier: MIT */
/* This pins threads to the cores that the process may use. */
#ifndef BENCH_SUPPORT_CORES_H
#define BENCH_SUPPORT_CORES_H

#include <sched.h>
#include <stddef.h>

/* Returns the cores, before anything is pinned. Ends the program if they are unknown. */
cpu_set_t cores_all(void);

/* Pins the calling thread, and those it starts, to core number modulo n of n. */
void cores_stay_on(const cpu_set_t *cores, size_t number);

#endif
