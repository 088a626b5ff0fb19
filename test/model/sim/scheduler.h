/* SPDX-License-Identifier: MIT */
/*
 * Many simulated threads on one thread of the system. A thread runs until it comes to a point
 * (an atomic operation, a call that may wait) where the schedule says to go on with another. All
 * that is drawn comes from the seed: the same seed, the same run.
 */
#ifndef SIM_SCHEDULER_H
#define SIM_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_THREADS_MOST = 64 };

/* How the next thread is chosen. */
enum sim_schedule {
	SIM_RANDOM,   /* each as likely as the other, after a random number of points */
	SIM_PRIORITY, /* the one of highest priority; at a few points it becomes the lowest */
	SIM_SLOW      /* at random, but one or two of them don't run for long */
};

/* What a case is run with; drawn by the case's maker. */
struct sim_plan {
	enum sim_schedule schedule;
	uint64_t seed;
	unsigned run_length; /* points from one choice to the next, on average, ≥ 1 */
	unsigned priority_changes;
	unsigned length;          /* points that a case of this kind is thought to have */
	unsigned time_passes;     /* one choice in so many moves the clock; 0: none */
	int64_t time_step;        /* nanoseconds, by as much at most */
	unsigned weak_failures;   /* one weak exchange in so many fails for no reason; 0: none */
	unsigned spurious_wakes;  /* one wait in so many ends for no reason; 0: none */
	unsigned memory_failures; /* one allocation in so many fails; 0: none */
	unsigned thread_failures; /* one thread in so many can't be started; 0: none */
	unsigned branches;        /* one choice in so many, the run is branched; 0: never */
	uint64_t points_most;     /* a case that takes more does not end */
};

struct thread;
typedef void sim_body(void *argument);
/* All threads wait for time to pass: it is about to go on from `now` to `next`. */
typedef void sim_idle(void *argument, int64_t now, int64_t next);

/* Points to go, until the next choice. */
extern int64_t sim_countdown;

/* The slow part of sim_point(). */
void sim_choose(void);

static inline void sim_point(void)
{
	if (__builtin_expect(--sim_countdown < 0, 0))
		sim_choose();
}

/* Whether a weak exchange is to fail for no reason. */
bool sim_weak_fails(void);

/* Runs the body, and all threads it starts, to the end of all. */
void sim_run(const struct sim_plan *plan, sim_body *body, void *argument, sim_idle *idle);
/* Points passed since the program began. */
uint64_t sim_points(void);

/* ---- For the simulated calls ---- */

struct thread *sim_current(void);
/* The thread's number, from 1 on; never used twice in a case. */
uint64_t sim_thread_number(const struct thread *thread);
/* NULL: there are too many. */
struct thread *sim_thread_start(void *(*run)(void *), void *argument);
/* Waits for its end, and forgets it. */
void *sim_thread_join(struct thread *thread);
/* Nobody will join it. */
void sim_thread_detach(struct thread *thread);
struct thread *sim_thread_find(uint64_t number);
_Noreturn void sim_thread_end(void *result);
void sim_thread_name(struct thread *thread, const char *name);

/*
 * Waits until sim_wake_all() or sim_wake_one() of the same address, or until the clock is at
 * `until` (INT64_MAX: no end); false: it was that. `what` is for the reports.
 */
bool sim_wait(const void *address, int64_t until, const char *what);
void sim_wake_all(const void *address);
bool sim_is_waited_for(const void *address);
/* One of them, at random. */
void sim_wake_one(const void *address);
/* Goes on with another thread, if there is one that can run. */
void sim_yield(void);

int64_t sim_now(void);
/* A reading of the clock takes its time, too. */
int64_t sim_read_clock(void);
/* For this case: choices move the clock by no more. */
void sim_limit_time_step(int64_t most);
/* A random number below `limit`; of the schedule, of the faults. */
uint64_t sim_draw(uint64_t limit);
/* True once in so many; never if 0. */
bool sim_happens(unsigned once_in);
const struct sim_plan *sim_plan_here(void);

/* The run of this seed is wrong: tells how, and how to run it again, and ends the program. */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line on what happens, where SIM_TRACE is set in the environment. */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Called as the last part of sim_fail(): tells how to run it again. */
void sim_set_report(void (*report)(void));
/* Whether this process is a branch of the run, which ends with its case. */
bool sim_is_branch(void);
/* After signals that are failures: faults, assertions, a loop without points. */
void sim_catch_signals(void);

/* ---- Threads as the library's own data ---- */

enum { SIM_KEYS_MOST = 16 };

struct sim_cleanup {
	void (*routine)(void *argument);
	void *argument;
	struct sim_cleanup *outer;
};

/* What the calls in threads.c keep for each thread. */
struct sim_thread_part {
	void *(*run)(void *);
	void *argument;
	bool cancel_disabled;
	bool cancel_asked;
	bool is_ending;
	int depth; /* of calls in which it may not be cancelled */
	struct sim_cleanup *cleanups;
	void *specific[SIM_KEYS_MOST];
};

struct sim_thread_part *sim_thread_part(struct thread *thread);

#endif
