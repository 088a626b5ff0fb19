/* SPDX-License-Identifier: MIT */
/* Starting a thread of the library, and waiting for another thread. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

/* A thread of the library. It stays where it is until the thread has ended. */
struct thread {
	pthread_t id;
	/* What it begins with. */
	void *(*run)(void *);
	void *argument;
	char name[16]; /* Linux keeps 15 bytes */
};

/*
 * Starts a thread called NAME-ROLE. NAME is cut so that both have 15 bytes; a role has 8 at most.
 * The thread takes no signals: those are the program's. Returns 0 or an errno value, which is also
 * left in errno; `thread` is as before then.
 */
int thread_start(struct thread *thread, void *(*run)(void *), void *argument, const char *name,
		 const char *role);

/*
 * For a thread that works in short turns and must be on time: its sleeps end a microsecond after
 * their deadline at most, and where the system can do that (Linux 6.12), it gets its share of a
 * busy processor in short slices, soon, rather than in long ones, late. Its share stays the same.
 */
void thread_be_prompt(void);

/*
 * For a loop that waits for a few instructions of another thread, *tries from 0 on: yields a few
 * times, then naps, for a thread that this one outranks gets no processor from a yield.
 */
void thread_back_off(unsigned *tries);

/* A condition variable whose waits end by CLOCK_MONOTONIC. */
void condition_init(pthread_cond_t *condition);
/*
 * Waits, but no longer than `until` (TW_FOREVER: without an end); false: it was so long. No
 * cancellation point: a thread that is cancelled in a public call goes on to the call's end.
 */
bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until);

#endif
