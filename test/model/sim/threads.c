/* SPDX-License-Identifier: MIT */
/*
 * A lock is a word in the first bytes of the system's own structure, so that zeroed memory and the
 * system's static initializers make an open one. Waits are for an address. Each call has a point
 * before it acts, for another thread may come first; a release has one behind it, too.
 *
 * Wrong use is a failure: a lock released by another thread than its holder, or destroyed while
 * held or waited for.
 */
#include "threads.h"

#include <errno.h>
#include <string.h>

#include "memory.h"

static const int64_t second = 1000000000;
static const int64_t coarse_step = 4000000;

/* ---- Threads ---- */

enum { KEYS_FIRST = 1 };

static void (*key_destructors[SIM_KEYS_MOST])(void *);
static unsigned keys_used;

static struct sim_thread_part *part_here(void)
{
	return sim_thread_part(sim_current());
}

/* Does what the system does when a thread is cancelled or ends: it calls the destructors of
 * keys. */
static _Noreturn void thread_end(void *result)
{
	struct sim_thread_part *part = part_here();

	part->is_ending = true;
	for (unsigned i = 0; i < keys_used; i++) {
		void *value = part->specific[i];

		part->specific[i] = NULL;
		if (value && key_destructors[i])
			key_destructors[i](value);
	}
	sim_thread_end(result);
}

static void *thread_run(void *argument)
{
	struct sim_thread_part *part = part_here();

	thread_end(part->run(part->argument));
}

int sim_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
		       void *argument)
{
	struct thread *started = NULL;

	sim_point();
	if (!sim_happens(sim_plan_here()->thread_failures))
		started = sim_thread_start(thread_run, NULL);
	if (!started)
		return EAGAIN;
	sim_thread_part(started)->run = run;
	sim_thread_part(started)->argument = argument;
	*thread = (pthread_t)sim_thread_number(started);
	/* The new thread may run before its maker knows its name. */
	sim_point();
	return 0;
}

int sim_pthread_join(pthread_t number, void **result)
{
	struct thread *thread = sim_thread_find((uint64_t)number);
	void *answer;

	if (!thread)
		sim_fail("join of thread %llu, which is none", (unsigned long long)number);
	sim_point();
	sim_pthread_testcancel();
	answer = sim_thread_join(thread);
	if (result)
		*result = answer;
	return 0;
}

_Noreturn void sim_pthread_exit(void *result)
{
	thread_end(result);
}

pthread_t sim_pthread_self(void)
{
	return (pthread_t)sim_thread_number(sim_current());
}

int sim_pthread_cancel(pthread_t number)
{
	struct thread *thread = sim_thread_find((uint64_t)number);

	sim_point();
	if (!thread)
		return ESRCH;
	sim_thread_part(thread)->cancel_asked = true;
	/* A wait that is a cancellation point checks. */
	return 0;
}

void sim_pthread_testcancel(void)
{
	struct sim_thread_part *part = part_here();

	if (part->is_ending || part->cancel_disabled)
		return;
	if (part->depth > 0)
		sim_fail("a public call comes to a cancellation point with cancellation enabled");
	if (part->cancel_asked)
		thread_end(PTHREAD_CANCELED);
}

void sim_call_begin(void)
{
	part_here()->depth++;
}

void sim_call_end(void)
{
	part_here()->depth--;
}

int sim_pthread_setcancelstate(int state, int *before)
{
	struct sim_thread_part *part = part_here();
	int was = part->cancel_disabled ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;

	part->cancel_disabled = state == PTHREAD_CANCEL_DISABLE;
	if (before)
		*before = was;
	return 0;
}

int sim_pthread_setname_np(pthread_t number, const char *name)
{
	struct thread *thread = sim_thread_find((uint64_t)number);

	if (thread)
		sim_thread_name(thread, name);
	return 0;
}

int sim_pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	return 0;
}

/* The states are 0, not run; 1, running; 2, done. */
int sim_pthread_once(pthread_once_t *once, void (*run)(void))
{
	sim_point();
	while (*once == 1)
		(void)sim_wait(once, INT64_MAX, "once");
	if (*once == 2)
		return 0;
	*once = 1;
	run();
	*once = 2;
	sim_wake_all(once);
	return 0;
}

int sim_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	return 0;
}

int sim_pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	if (keys_used == SIM_KEYS_MOST)
		return EAGAIN;
	key_destructors[keys_used] = destructor;
	*key = keys_used++ + KEYS_FIRST;
	return 0;
}

int sim_pthread_setspecific(pthread_key_t key, const void *value)
{
	if (sim_memory_refuses())
		return ENOMEM;
	part_here()->specific[key - KEYS_FIRST] = (void *)(uintptr_t)value;
	return 0;
}

int sim_sched_yield(void)
{
	sim_yield();
	return 0;
}

/* ---- Locks ---- */

/* It is stored in the first bytes of a pthread_mutex_t. */
struct __attribute__((may_alias)) mutex {
	uint32_t holder;  /* number of its thread, or 0 */
	uint32_t waiters; /* including those that are about to look again */
};

static uint32_t number_here(void)
{
	return (uint32_t)sim_thread_number(sim_current());
}

int sim_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	memset(mutex, 0, sizeof(*mutex));
	return 0;
}

int sim_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	struct mutex *lock = (struct mutex *)mutex;

	if (lock->holder != 0 || lock->waiters != 0)
		sim_fail("a lock is destroyed that thread %u holds and %u wait for", lock->holder,
			 lock->waiters);
	memset(mutex, 0xdb, sizeof(*mutex));
	return 0;
}

static void mutex_take(struct mutex *lock)
{
	while (lock->holder != 0) {
		if (lock->holder == number_here())
			sim_fail("a thread locks what it holds");
		lock->waiters++;
		(void)sim_wait(lock, INT64_MAX, "a lock");
		lock->waiters--;
	}
	lock->holder = number_here();
}

static void mutex_give(struct mutex *lock)
{
	if (lock->holder != number_here())
		sim_fail("a thread unlocks what thread %u holds", lock->holder);
	lock->holder = 0;
	if (lock->waiters > 0)
		sim_wake_all(lock);
}

int sim_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	sim_point();
	mutex_take((struct mutex *)mutex);
	return 0;
}

int sim_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	struct mutex *lock = (struct mutex *)mutex;

	sim_point();
	if (lock->holder != 0)
		return EBUSY;
	lock->holder = number_here();
	return 0;
}

int sim_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	mutex_give((struct mutex *)mutex);
	sim_point();
	return 0;
}

int sim_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
	memset(condition, 0, sizeof(*condition));
	return 0;
}

int sim_pthread_cond_destroy(pthread_cond_t *condition)
{
	/* Threads that have been woken do not need it any more. */
	if (sim_is_waited_for(condition))
		sim_fail("a condition is destroyed that a thread waits for");
	memset(condition, 0xdb, sizeof(*condition));
	return 0;
}

static int condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until)
{
	bool in_time;

	sim_point();
	sim_pthread_testcancel();
	mutex_give((struct mutex *)mutex);
	in_time = sim_wait(condition, until, "a condition");
	mutex_take((struct mutex *)mutex);
	sim_pthread_testcancel();
	return in_time ? 0 : ETIMEDOUT;
}

int sim_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	return condition_wait_until(condition, mutex, INT64_MAX);
}

int sim_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
			       const struct timespec *until)
{
	if (until->tv_nsec < 0 || until->tv_nsec >= second)
		sim_fail("a wait until %ld ns of a second", until->tv_nsec);
	return condition_wait_until(condition, mutex, until->tv_sec * second + until->tv_nsec);
}

int sim_pthread_cond_signal(pthread_cond_t *condition)
{
	sim_point();
	sim_wake_one(condition);
	return 0;
}

int sim_pthread_cond_broadcast(pthread_cond_t *condition)
{
	sim_point();
	sim_wake_all(condition);
	return 0;
}

/* ---- Time ---- */

int sim_clock_gettime(clockid_t clock, struct timespec *time)
{
	int64_t now = sim_read_clock();

	if (clock == CLOCK_MONOTONIC_COARSE)
		now -= now % coarse_step;
	time->tv_sec = now / second;
	time->tv_nsec = now % second;
	return 0;
}

int sim_clock_getres(clockid_t clock, struct timespec *resolution)
{
	*resolution = (struct timespec){0, clock == CLOCK_MONOTONIC_COARSE ? coarse_step : 1};
	return 0;
}

int sim_nanosleep(const struct timespec *time, struct timespec *rest)
{
	static const char nothing;
	int64_t until = sim_now() + time->tv_sec * second + time->tv_nsec;

	sim_pthread_testcancel();
	while (sim_wait(&nothing, until, "a time"))
		continue;
	sim_pthread_testcancel();
	return 0;
}

/* ---- Descriptors, for timers alone ---- */

enum { TIMERS_MOST = 64, FIRST_DESCRIPTOR = 1000 };

static struct timer_descriptor {
	bool is_open;
	int64_t end; /* INT64_MAX if it is not set */
} timers[TIMERS_MOST];

static struct timer_descriptor *timer_find(int descriptor)
{
	int place = descriptor - FIRST_DESCRIPTOR;

	if (place < 0 || place >= TIMERS_MOST || !timers[place].is_open)
		sim_fail("descriptor %d is not open", descriptor);
	return &timers[place];
}

int sim_timerfd_create(int clock, int flags)
{
	for (int i = 0; i < TIMERS_MOST; i++) {
		if (timers[i].is_open)
			continue;
		if (sim_happens(sim_plan_here()->thread_failures))
			break;
		timers[i] = (struct timer_descriptor){true, INT64_MAX};
		return FIRST_DESCRIPTOR + i;
	}
	errno = EMFILE;
	return -1;
}

int sim_timerfd_settime(int descriptor, int flags, const struct itimerspec *time,
			struct itimerspec *before)
{
	struct timer_descriptor *timer = timer_find(descriptor);
	int64_t end = time->it_value.tv_sec * second + time->it_value.tv_nsec;

	sim_point();
	if (flags != TFD_TIMER_ABSTIME)
		sim_fail("a timer that is set by a length is not simulated");
	timer->end = end == 0 ? INT64_MAX : end;
	sim_wake_all(timers);
	return 0;
}

int sim_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
	int64_t until = timeout_ms < 0 ? INT64_MAX : sim_now() + timeout_ms * (second / 1000);
	int ready = 0;

	sim_point();
	for (;;) {
		int64_t end = until;

		for (nfds_t i = 0; i < count; i++) {
			struct timer_descriptor *timer = timer_find(polled[i].fd);

			polled[i].revents = timer->end <= sim_now() ? POLLIN : 0;
			ready += polled[i].revents != 0;
			end = timer->end < end ? timer->end : end;
		}
		if (ready > 0 || until <= sim_now())
			return ready;
		(void)sim_wait(timers, end, "a descriptor");
	}
}

int sim_close(int descriptor)
{
	timer_find(descriptor)->is_open = false;
	return 0;
}

/* ---- Cases ---- */

void sim_threads_begin(void)
{
	keys_used = 0;
	memset(timers, 0, sizeof(timers));
}

void sim_threads_end(void)
{
	for (int i = 0; i < TIMERS_MOST; i++)
		if (timers[i].is_open)
			sim_fail("descriptor %d is left open", FIRST_DESCRIPTOR + i);
}
