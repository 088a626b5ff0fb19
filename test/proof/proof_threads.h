/* SPDX-License-Identifier: MIT */
/* These are the threads of a harness. */
#ifndef PROOF_THREADS_H
#define PROOF_THREADS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { PROOF_THREADS_MOST = 8 };

/* Runs `count` threads to their ends, at once. Each gets its place as its argument; NULL is no
 * thread. */
static inline void proof_run(void *(*const *runs)(void *), int count)
{
	pthread_t threads[PROOF_THREADS_MOST];

	for (intptr_t i = 0; i < count; i++)
		if (runs[i])
			pthread_create(&threads[i], NULL, runs[i], (void *)i);
	for (int i = 0; i < count; i++)
		if (runs[i])
			pthread_join(threads[i], NULL);
}

#endif
