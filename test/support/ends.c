/* SPDX-License-Identifier: MIT */
#include "support/ends.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { ENDS_MAX = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool has_begun;
static size_t count;
static struct {
	void (*end)(void *what);
	void *what;
} ends[ENDS_MAX];

void at_end(void (*end)(void *what), void *what)
{
	pthread_mutex_lock(&lock);
	if (has_begun) {
		assert(count < ENDS_MAX);
		ends[count].end = end;
		ends[count++].what = what;
	}
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void end_remove(size_t i)
{
	count--;
	for (; i < count; i++)
		ends[i] = ends[i + 1];
}

void at_end_not(void *what)
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = count; i > 0 && ends[i - 1].what != what; i--)
		continue;
	if (i > 0)
		end_remove(i - 1);
	pthread_mutex_unlock(&lock);
}

void ends_begin(void)
{
	pthread_mutex_lock(&lock);
	has_begun = true;
	pthread_mutex_unlock(&lock);
}

void ends_run(void)
{
	has_begun = false;
	while (count > 0) {
		count--;
		ends[count].end(ends[count].what);
	}
}
