/* SPDX-License-Identifier: MIT */
/*
 * This uses one wheel a core, for more commands than one owner takes: each key's wheel is chosen by
 * the key's hash.
 *
 * Order: the commands of one thread for one key take effect in their order, as with one wheel; so
 * do those for keys of the same wheel. Between keys of two wheels there is no order: of two timers
 * that one thread sets one after the other the second may be armed first, and tasks of one tick run
 * in any order. A drain, a stop or a flush goes wheel by wheel, so timers that are set meanwhile
 * may meet one wheel before it and another after it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <timingwheel/timingwheel.h>
#include <unistd.h>

enum { WHEELS_MOST = 64, THREADS = 4, TIMERS = 100000 };

struct wheels {
	size_t count;
	struct tw_wheel *wheel[WHEELS_MOST];
};

/* The hash is FNV-1a. Strangers' keys need one with a secret seed instead (SipHash). */
static struct tw_wheel *wheel_of(const struct wheels *wheels, const void *key, size_t size)
{
	const unsigned char *bytes = key;
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 1099511628211u;
	/* The upper half is mixed better; this maps it to 0 … count - 1. */
	return wheels->wheel[(hash >> 32) * wheels->count >> 32];
}

static enum tw_status wheels_set(const struct wheels *wheels, const void *key, size_t size,
				 void *value, tw_duration delay)
{
	return tw_set_timer(wheel_of(wheels, key, size), key, size, value, delay);
}

static enum tw_status wheels_remove(const struct wheels *wheels, const void *key, size_t size)
{
	return tw_remove_timer(wheel_of(wheels, key, size), key, size);
}

static void wheels_destroy(struct wheels *wheels)
{
	while (wheels->count > 0)
		tw_destroy(wheels->wheel[--wheels->count]);
}

static enum tw_status wheels_create(struct wheels *wheels, size_t count, tw_execute_fn *execute,
				    const struct tw_options *options)
{
	enum tw_status status = TW_OK;

	for (wheels->count = 0; wheels->count < count && status == TW_OK;) {
		status = tw_create(&wheels->wheel[wheels->count], TW_MILLISECOND, 512, execute,
				   options);
		wheels->count += status == TW_OK;
	}
	if (status != TW_OK)
		wheels_destroy(wheels);
	return status;
}

static void count_run(void *context, const struct tw_task *task)
{
	(void)task;
	atomic_fetch_add((atomic_size_t *)context, 1);
}

static struct wheels wheels;

/* Sets timers of its own, and removes every other one again. */
static void *work(void *number)
{
	for (uint64_t i = 0; i < TIMERS; i++) {
		uint64_t key = (uint64_t)(uintptr_t)number * TIMERS + i;

		if (wheels_set(&wheels, &key, sizeof(key), NULL, TW_MINUTE) != TW_OK ||
		    (i % 2 && wheels_remove(&wheels, &key, sizeof(key)) != TW_OK))
			return number;
	}
	return NULL;
}

int main(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	atomic_size_t runs = 0;
	const struct tw_options options = {
		.context = &runs, .clock = TW_CLOCK_MANUAL, .workers = 1};
	size_t count = cores < 2 ? 2 : cores > WHEELS_MOST ? WHEELS_MOST : (size_t)cores;
	pthread_t threads[THREADS];

	if (wheels_create(&wheels, count, count_run, &options) != TW_OK)
		return 1;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < wheels.count; i++) {
		tw_advance(wheels.wheel[i], TW_MINUTE);
		tw_wait_idle(wheels.wheel[i]);
	}
	printf("%zu of %d timers ran\n", (size_t)runs, THREADS * TIMERS / 2);
	wheels_destroy(&wheels);
	return runs == THREADS * TIMERS / 2 ? 0 : 1;
}
