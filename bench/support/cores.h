/* SPDX-License-Identifier: MIT */
/*
 * This is about the cores that the process may use: pinned threads, and the distance of two cores,
 * which is how long a cache line takes from the first to the second and back.
 */
#ifndef BENCH_SUPPORT_CORES_H
#define BENCH_SUPPORT_CORES_H

#include <sched.h>
#include <stddef.h>

/* Returns the cores, before anything is pinned. Ends the program if they are unknown. */
cpu_set_t cores_all(void);

/* Pins the calling thread, and those it starts, to core number modulo n of n. */
void cores_stay_on(const cpu_set_t *cores, size_t number);

/* Returns nanoseconds. The calling thread must be pinned to the first core. */
double cores_measure_trip(const cpu_set_t *cores);

#endif
