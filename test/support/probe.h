/* SPDX-License-Identifier: MIT */
/*
 * Probes are timers by handle, once or repeated, whose runs a recorder records as VALUE(number)
 * executed. Released and drained ones are recorded, too.
 */
#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include <stdatomic.h>

#include "gate.h"
#include "recorder.h"

enum { PROBE_ANSWERS = 4, PROBE_ASKED = 16 };

/* A handle's argument points to its probe. */
struct probe {
	struct recorder *recorder;
	uintptr_t number;
	struct tw_timer timer;
	void (*in_run)(struct probe *); /* called in the run, after recording */
	struct probe *others;
	enum tw_status answers[PROBE_ANSWERS]; /* statuses of calls in the run */
	int runs;
	/* A held probe stops at this gate. */
	struct gate gate;
	tw_duration linger; /* in the run, after that */
	atomic_int ended;
	/* In a schedule, these are the results and the arguments of next. */
	const tw_duration *deadlines;
	size_t asked;
	tw_duration previous[PROBE_ASKED];
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
/* Starts probes[0], probes[1], … as first, first + 1, …; delays are ms, which are ticks. */
#define probes_start_ms(recorder, probes, first, ...)                         \
	probes_start_ms_(recorder, probes, first, (const int[]){__VA_ARGS__}, \
			 sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
void probes_start_ms_(struct recorder *recorder, struct probe *probes, uintptr_t first,
		      const int *delays, size_t count);
/* Repeats a probe, by default with TW_MISSED_BURST. */
void probe_repeat(struct recorder *recorder, struct probe *probe, uintptr_t number,
		  tw_duration first, tw_duration period);
void probe_repeat_with(struct recorder *recorder, struct probe *probe, uintptr_t number,
		       tw_duration first, tw_duration period, enum tw_missed missed);
/* Schedules a probe by its `deadlines`; it ends with the last, 0. */
enum tw_status probe_schedule(struct recorder *recorder, struct probe *probe, uintptr_t number,
			      const tw_duration *deadlines);
tw_duration probe_next(void *probe, tw_duration previous);

/* These are calls for the probe's timer. Any thread may make them. */
enum tw_status probe_stop(const struct probe *probe);
enum tw_status probe_stop_wait(const struct probe *probe);
enum tw_status probe_reset(const struct probe *probe, tw_duration delay);

/* Makes its first run stop at its gate. */
void probe_hold(struct probe *probe);
/* Starts one whose run begins now and lasts until the gate is opened, and 20 ms longer. */
void probe_start_held(struct recorder *recorder, struct probe *probe, uintptr_t number);
/* Starts number 1, whose first run begins and lasts until the gate is opened. */
void probe_repeat_held(struct recorder *recorder, struct probe *probe, tw_duration period,
		       enum tw_missed missed);
/* Stops both workers in 1001 and 1002, so that due tasks stay in the pool. */
void hold_workers(struct recorder *recorder, struct probe held[2]);
/* Stops the workers, and has `count` probes, from 0 on, wait in the pool. */
void probes_wait(struct recorder *recorder, struct probe held[2], struct probe *probes,
		 size_t count);
void let_workers_go(struct recorder *recorder, struct probe held[2]);

/* Waits until `runs` events have come, and checks that no more do. */
void wait_for_runs(struct recorder *recorder, size_t runs);
/* Checks that it has run at exactly these times in milliseconds, which are ticks. */
#define assert_runs_ms(recorder, number, ...)                         \
	assert_runs_ms_(recorder, number, (const int[]){__VA_ARGS__}, \
			sizeof((const int[]){__VA_ARGS__}) / sizeof(int), __FILE__, __LINE__)
void assert_runs_ms_(struct recorder *recorder, uintptr_t number, const int *times, size_t count,
		     const char *file, int line);

#endif
