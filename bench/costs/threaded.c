/* SPDX-License-Identifier: MIT */
/*
 * What does a command cost its caller and the owner's thread, a task its worker, and a wake the
 * caller?
 *
 * The threads take turns, so that each is counted separately and the counts are the same in each
 * run. The worker and the owner stop at a gate when a wait on a condition variable ends, and the
 * program opens one gate at a time. The linker puts the functions here in place of pthread_create()
 * and of the waits. A timed wait ends at once, as the clock stands still: the owner's naps take no
 * time.
 */
#include "costs.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <valgrind/callgrind.h>

/* A gate is where a thread of the wheel stops until the program opens it. */
struct gate {
	void *(*run)(void *);
	void *argument;
	sem_t is_open;
	sem_t is_asleep;
	pthread_mutex_t lock; /* held until the thread waits and can be signalled */
};

/* tw_create() starts its threads in this order. */
static struct gate gates[2];
static struct gate *const worker = &gates[0];
static struct gate *const owner = &gates[1];
static size_t gates_used;
/* After this is set no thread stops at a gate. */
static atomic_bool is_over;
static _Thread_local struct gate *gate_here;

static tw_duration least_delay;
static struct tw_timer *timers;

/* ---- Gates ---- */

static void *run_counted(void *argument)
{
	gate_here = argument;
	CALLGRIND_TOGGLE_COLLECT;
	return gate_here->run(gate_here->argument);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument)
{
	struct gate *gate;

	if (!timers) /* costs_init() */
		return __real_pthread_create(thread, attributes, run, argument);
	expect(gates_used < 2, "a wheel of two threads");
	gate = &gates[gates_used++];
	gate->run = run;
	gate->argument = argument;
	sem_init(&gate->is_open, 0, 0);
	sem_init(&gate->is_asleep, 0, 0);
	pthread_mutex_init(&gate->lock, NULL);
	return __real_pthread_create(thread, attributes, run_counted, gate);
}

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	int error;

	if (!gate_here)
		return __real_pthread_cond_wait(condition, lock);
	CALLGRIND_TOGGLE_COLLECT;
	/* With `lock` itself the thread would contend with the signaller. */
	pthread_mutex_lock(&gate_here->lock);
	sem_post(&gate_here->is_asleep);
	pthread_mutex_unlock(lock);
	error = __real_pthread_cond_wait(condition, &gate_here->lock);
	pthread_mutex_unlock(&gate_here->lock);
	/* relaxed: set before the thread that is to end is woken */
	if (!atomic_load_explicit(&is_over, memory_order_relaxed))
		sem_wait(&gate_here->is_open);
	pthread_mutex_lock(lock);
	CALLGRIND_TOGGLE_COLLECT;
	return error;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *end);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
				  const struct timespec *end)
{
	(void)condition;
	(void)lock;
	(void)end;
	return ETIMEDOUT;
}

static void await_sleep(struct gate *gate)
{
	sem_wait(&gate->is_asleep);
	pthread_mutex_lock(&gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

/* Lets the gate's woken thread run until it sleeps, as the cost of `count` operations. */
static void let_go(struct gate *gate, const char *name, unsigned count)
{
	CALLGRIND_ZERO_STATS;
	sem_post(&gate->is_open);
	await_sleep(gate);
	phase_write(name, count);
}

/* ---- Operations ---- */

static const void *key_of(unsigned i)
{
	return keys[shuffled(i)];
}

static void set_one(unsigned i)
{
	MUST(tw_set_timer(wheel, key_of(i), KEY_SIZE, NULL, draw_delay(least_delay)));
}

static void move_one(unsigned i)
{
	MUST(tw_move_timer(wheel, key_of(i), KEY_SIZE, draw_delay(least_delay)));
}

static void remove_one(unsigned i)
{
	MUST(tw_remove_timer(wheel, key_of(i), KEY_SIZE));
}

static void start_one(unsigned i)
{
	MUST(tw_after_func(wheel, draw_delay(least_delay), count_run, NULL, &timers[i]));
}

static void reset_one(unsigned i)
{
	MUST(tw_timer_reset(wheel, timers[shuffled(i)], draw_delay(least_delay)));
}

/* Counts the callers' part and then the owner's part of COMMANDS calls, alternately. Each time the
 * first call wakes the owner. */
static void measure_both(const char *caller_name, const char *owner_name,
			 void (*operation)(unsigned i))
{
	for (unsigned first = 0; first < costs_n; first += COMMANDS) {
		phase_begin();
		for (unsigned i = 0; i < COMMANDS; i++)
			operation(first + i);
		phase_end(caller_name, COMMANDS);
		let_go(owner, owner_name, COMMANDS);
	}
}

static void measure_wakes(void)
{
	for (unsigned i = 0; i < 64; i++) {
		phase_begin();
		move_one(i);
		phase_end("threaded.wake.caller", 1);
		let_go(owner, "threaded.wake.owner", 1);
	}
}

/* Counts the owner's part and the worker's part of expired timers. */
static void measure_expiry(void)
{
	CALLGRIND_ZERO_STATS;
	sem_post(&owner->is_open);
	MUST(tw_advance(wheel, least_delay + 21 * TW_SECOND));
	await_sleep(owner);
	phase_write("threaded.expire.owner", costs_n);
	let_go(worker, "threaded.expire.worker", costs_n);
	expect(tasks_ran == costs_n, "all have run");
}

int main(void)
{
	const struct tw_options options = {
		.clock = TW_CLOCK_MANUAL, .workers = 1, .max_workers = 1};

	costs_init();
	timers = malloc(costs_n * sizeof(*timers));
	expect(timers != NULL, "malloc");
	MUST(tw_create(&wheel, TW_MILLISECOND, 512, count_task, &options));
	await_sleep(worker);
	await_sleep(owner);

	least_delay = 40 * TW_SECOND;
	measure_both("threaded.set_new.caller", "threaded.set_new.owner", set_one);
	measure_both("threaded.set_existing.caller", "threaded.set_existing.owner", set_one);
	least_delay = 90 * TW_SECOND;
	measure_both("threaded.move_later.caller", "threaded.move_later.owner", move_one);
	measure_wakes();
	measure_both("threaded.remove.caller", "threaded.remove.owner", remove_one);
	measure_both("threaded.start.caller", "threaded.start.owner", start_one);
	measure_both("threaded.reset.caller", "threaded.reset.owner", reset_one);
	measure_expiry();

	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	tw_destroy(wheel);
	free(timers);
	return 0;
}
