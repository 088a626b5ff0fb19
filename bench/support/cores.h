/* SPDX-License-Identifier: MIT */
/*
 * The cores that the process may use, threads that stay on one of them, and how far apart two cores
 * are: how long a cache line takes from the first to the second and back.
 */
#ifndef BENCH_SUPPORT_CORES_H
#define BENCH_SUPPORT_CORES_H

#include <sched.h>
#include <stddef.h>

/* Ask before anything stays on a core. Ends the program when the system doesn't tell. */
cpu_set_t cores_all(void);

/* Puts the calling thread, and those it starts, on one core: of n, the number modulo n. */
void cores_stay_on(const cpu_set_t *cores, size_t number);

/* Nanoseconds. The calling thread must stay on the first core. */
double cores_measure_trip(const cpu_set_t *cores);

#endif
