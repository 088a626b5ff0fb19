/* SPDX-License-Identifier: MIT */
/* These functions start a thread of the library, and wait for another thread. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

/* A thread of the library. The struct must not move before the thread has ended. */
struct thread {
	pthread_t id;
	/* Constant while the thread runs. */
	void *(*run)(void *);
	void *argument;
	char name[16]; /* Linux keeps 15 bytes */
};

/*
 * Starts a thread named NAME-ROLE. `role` has at most 8 bytes; `name` is cut so that all has at
 * most 15. The thread blocks all signals: they are the program's. Returns 0, or an errno value,
 * which it also leaves in errno; then `thread` is as before.
 */
int thread_start(struct thread *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role);

/*
 * Lets the calling thread wake on time, if it works in short turns. Its timer slack becomes 1 us.
 * From Linux 6.12 on it gets its share of a busy processor in slices of 100 us, and so sooner; the
 * share stays the same. A thread with a real-time policy keeps it.
 */
void thread_be_prompt(void);

/*
 * Waits a moment in a loop that waits for a few instructions of another thread. *tries is 0 before
 * the first call. It yields 16 times, then naps for 50 us, because a yield gives no processor to a
 * thread of lower priority.
 */
void thread_back_off(unsigned *tries);

/* Sets the cancel state that pthread_setcancelstate() has left in the variable: its cleanup. */
void thread_restore_cancel(const int *state);

/* Initializes a condition variable whose waits end by CLOCK_MONOTONIC. */
void condition_init(pthread_cond_t *condition);
/*
 * Waits until signalled, or until `until`, which may be TW_FOREVER. Returns false on timeout. It is
 * no cancellation point: a thread cancelled in a public call continues to the end of the call.
 */
bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until);

#endif
