/* SPDX-License-Identifier: MIT */
/* These functions start a thread of the library, and wait for another thread. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/timingwheel.h>

/* The program's wishes for the threads of one wheel, cache or worker. Constant once initialized. */
struct thread_setup {
	/* Threads that run the program's functions have this mask. */
	sigset_t mask;
	/* The size of all threads' stacks, in bytes. 0 means the system's default. */
	size_t stack_size;
	/* Threads that run the program's functions call these; they may be NULL. */
	void (*on_start)(void *context, const char *name);
	void (*on_end)(void *context, const char *name);
	void *context;
};

/* Takes the calling thread's signal mask, and what `options` says of threads; it may be NULL. */
void thread_setup_init(struct thread_setup *setup, const struct tw_options *options);

/* A thread of the library. The struct must not move before the thread has ended. */
struct thread {
	pthread_t id;
	/* Constant while the thread runs. */
	void *(*run)(void *);
	void *argument;
	char name[16]; /* Linux keeps 15 bytes */
	/* The system's number, set by the thread; -1 before, 0 if none was started. */
	atomic_int number;
};

/*
 * Starts a thread named NAME-ROLE. `role` has at most 8 bytes; `name` is cut so that all has at
 * most 15. The thread blocks all signals, for they are the program's, except those that a thread
 * raises by its own faults, and SIGPROF. `setup` may be NULL: the stack has the default size.
 * Returns 0, or an errno value, which it also leaves in errno; then `thread` is as before.
 */
int thread_start(struct thread *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role, const struct thread_setup *setup);

/* Returns whether the thread, which was not joined, computes or waits for a processor: the system
 * does not show it as blocked. Returns false where the system cannot show it. */
bool thread_is_running(const struct thread *thread);

/* Waits until the thread has ended. It is no cancellation point. */
void thread_join(const struct thread *thread);

/* Prepares the calling thread, named `name`, for the program's functions: takes the setup's signal
 * mask and calls on_start. */
void thread_begin_calls(const struct thread_setup *setup, const char *name);
/* Calls on_end: the thread calls no other function of the program. */
void thread_end_calls(const struct thread_setup *setup, const char *name);

/*
 * Lets the calling thread wake on time, if it works in short turns. Its timer slack becomes 1 us.
 * From Linux 6.12 on it gets its share of a busy processor in slices of 100 us, and so sooner; the
 * share stays the same. A thread with a real-time policy keeps it.
 */
void thread_be_prompt(void);

/*
 * Waits a moment in a loop that waits for a few instructions of another thread. *tries is 0 before
 * the first call. It yields 16 times, then naps for 50 us, because a yield gives no processor to a
 * thread of lower priority. It is no cancellation point.
 */
void thread_back_off(unsigned *tries);

/* Initializes a condition variable whose waits end by CLOCK_MONOTONIC. */
void condition_init(pthread_cond_t *condition);
/*
 * Waits until signalled, or until `until`, which may be TW_FOREVER. Returns false on timeout. It is
 * no cancellation point: a thread cancelled in a public call continues to the end of the call.
 */
bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until);

#endif
