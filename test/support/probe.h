/* SPDX-License-Identifier: MIT */
/*
 * Probes are timers by handle, once or repeated, whose runs a recorder records as VALUE(number)
 * executed. Released and drained ones are recorded, too.
 */
#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include "recorder.h"

enum { PROBE_ANSWERS = 4 };

/* A handle's argument points to its probe. */
struct probe {
	struct recorder *recorder;
	uintptr_t number;
	struct tw_timer timer;
	void (*in_run)(struct probe *); /* called in the run, after recording */
	struct probe *others;
	enum tw_status answers[PROBE_ANSWERS]; /* statuses of calls in the run */
	int runs;
};

/* Opens a wheel whose handles are probes. */
struct recorder *probes_open(const struct variant *variant);

/* PROBED(kind, name, options...) { ... } is a RECORDED case whose handles are probes. */
#define PROBED(kind, name, ...) RECORDED(kind, name, .release = probe_release, __VA_ARGS__)
void probe_release(void *recorder, const struct tw_task *task, enum tw_reason reason);

/* This is for tw_after_func and tw_every, and for tw_drain with the recorder as context. */
void probe_run(void *probe);
void run_nothing(void *argument);
void probe_drain(void *recorder, const struct tw_task *task);

/* These calls must succeed. Only the main thread may make them. */
void probe_start(struct recorder *recorder, struct probe *probe, uintptr_t number,
		 tw_duration delay);
/* Repeats a probe with TW_MISSED_BURST. */
void probe_repeat(struct recorder *recorder, struct probe *probe, uintptr_t number,
		  tw_duration first, tw_duration period);

/* These are calls for the probe's timer. Any thread may make them. */
enum tw_status probe_stop(const struct probe *probe);
enum tw_status probe_stop_wait(const struct probe *probe);
enum tw_status probe_reset(const struct probe *probe, tw_duration delay);

/* Checks that it has run at exactly these times in milliseconds, which are ticks. */
#define assert_runs_ms(recorder, number, ...)                         \
	assert_runs_ms_(recorder, number, (const int[]){__VA_ARGS__}, \
			sizeof((const int[]){__VA_ARGS__}) / sizeof(int), __FILE__, __LINE__)
void assert_runs_ms_(struct recorder *recorder, uintptr_t number, const int *times, size_t count,
		     const char *file, int line);

#endif
