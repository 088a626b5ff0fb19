/* SPDX-License-Identifier: MIT */
/*
 * Many simulated threads run on one thread of the system. A thread runs until it comes to a point
 * (an atomic operation, a call that may wait) where the schedule switches to another. All random
 * choices come from the seed: the same seed gives the same run.
 */
#ifndef SIM_SCHEDULER_H
#define SIM_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_THREADS_MOST = 64 };

/* A schedule chooses the next thread. */
enum sim_schedule {
	SIM_RANDOM,   /* all with equal probability, after a random number of points */
	SIM_PRIORITY, /* the one of highest priority; at a few points it becomes the lowest */
	SIM_SLOW      /* random, while one or two threads don't run for long */
};

/* A plan has a case's parameters, drawn by the case's maker. */
struct sim_plan {
	enum sim_schedule schedule;
	uint64_t seed;
	unsigned run_length; /* average points between two choices, ≥ 1 */
	unsigned priority_changes;
	unsigned length;          /* expected points of a case of this kind */
	unsigned time_passes;     /* one choice in N moves the clock; 0 for none */
	int64_t time_step;        /* maximum, in nanoseconds */
	unsigned weak_failures;   /* one weak exchange in N fails spuriously; 0 for none */
	unsigned spurious_wakes;  /* one wait in N ends spuriously; 0 for none */
	unsigned memory_failures; /* one allocation in N fails; 0 for none */
	unsigned thread_failures; /* one thread in N can't be started; 0 for none */
	unsigned branches;        /* one choice in N branches the run; 0 for none */
	uint64_t points_most;     /* a case that takes more does not end */
};

struct thread;
typedef void sim_body(void *argument);
/* All threads wait for time to pass: it is about to go on from `now` to `next`. */
typedef void sim_idle(void *argument, int64_t now, int64_t next);

/* This counts the points up to the next choice. */
extern int64_t sim_countdown;

/* This is the slow part of sim_point(). */
void sim_choose(void);

static inline void sim_point(void)
{
	if (__builtin_expect(--sim_countdown < 0, 0))
		sim_choose();
}

/* Returns whether a weak exchange is to fail spuriously. */
bool sim_weak_fails(void);

/* Runs the body, and all threads it starts, to the end of all. */
void sim_run(const struct sim_plan *plan, sim_body *body, void *argument, sim_idle *idle);
/* Returns the points passed since the program began. */
uint64_t sim_points(void);

/* ---- For the simulated calls ---- */

struct thread *sim_current(void);
/* Returns the thread's number, from 1 on; never used twice in a case. */
uint64_t sim_thread_number(const struct thread *thread);
/* Returns NULL if there are too many. */
struct thread *sim_thread_start(void *(*run)(void *), void *argument);
/* Waits for its end, and frees its place. */
void *sim_thread_join(struct thread *thread);
/* The thread will not be joined. */
struct thread *sim_thread_find(uint64_t number);
_Noreturn void sim_thread_end(void *result);
void sim_thread_name(struct thread *thread, const char *name);

/*
 * Waits until sim_wake_all() or sim_wake_one() of this address, or until the clock is at `until`
 * (INT64_MAX means no end). Returns false on timeout. `what` is for the reports.
 */
bool sim_wait(const void *address, int64_t until, const char *what);
void sim_wake_all(const void *address);
bool sim_is_waited_for(const void *address);
/* Wakes a random waiter. */
void sim_wake_one(const void *address);
/* Switches to another thread, if one can run. */
void sim_yield(void);

int64_t sim_now(void);
/* Returns the time; reading the clock takes time, too. */
int64_t sim_read_clock(void);
/* Limits the clock's steps at choices to `most` in this case. */
void sim_limit_time_step(int64_t most);
/* Returns a random number below `limit`, for schedules and faults. */
uint64_t sim_draw(uint64_t limit);
/* Returns true once in `once_in` calls on average, and never if that is 0. */
bool sim_happens(unsigned once_in);
const struct sim_plan *sim_plan_here(void);

/* Reports that this seed's run is wrong and how to run it again, and ends the program. */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line about the run if SIM_TRACE is set in the environment. */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* sim_fail() calls `report` last, which prints how to run the case again. */
void sim_set_report(void (*report)(void));
/* Returns whether this process is a branch of the run, which ends with its case. */
bool sim_is_branch(void);
/* Makes signals failures: faults, assertions, a loop without points. */
void sim_catch_signals(void);

/* ---- The library's thread data ---- */

enum { SIM_KEYS_MOST = 16 };

/* The calls in threads.c keep this for each thread. */
struct sim_thread_part {
	void *(*run)(void *);
	void *argument;
	bool cancel_disabled;
	bool cancel_asked;
	bool is_ending;
	int depth; /* nested calls in which it may not be cancelled */
	void *specific[SIM_KEYS_MOST];
};

struct sim_thread_part *sim_thread_part(struct thread *thread);

#endif
