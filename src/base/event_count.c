/* SPDX-License-Identifier: MIT */
/*
 * The state word is the whole protocol: the sleeper announces itself in it, and the notifier that
 * takes the announcement back (one of them: it is an exchange) does the waking. Futex, eventfd and
 * condition variable were measured alike here (1.4 to 1.7 µs for the notifier), so it is the
 * portable one; only a sleep that must end by CLOCK_BOOTTIME needs a descriptor, for a condition
 * variable stands still while the machine is suspended, and one in the program's own epoll.
 *
 * The descriptor is a timer's. It is armed before the announcement, so that a notifier, which sets
 * it to now, comes after that. One that took an earlier announcement back and was held up may set
 * it later still: then a sleep ends early, and its sleeper looks once more for nothing.
 *
 * Invariant: a notifier that comes after what the sleeper is to see either finds it announced and
 * wakes it, or came before the announcement, after which the sleeper looks once more.
 *
 * May run together: one sleeper (prepare, cancel, wait), any number of notifiers.
 * Linearization: prepare at its store, notify at its load, wake at its exchange.
 */
#include "event_count.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "thread.h"

#ifdef __linux__
#include <sys/timerfd.h>

static int timer_open(clockid_t clock)
{
	return timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* Also makes it unreadable until then. */
static void timer_set(int timer, tw_duration until)
{
	struct itimerspec end = {0};

	/* A timer at 0 is none, and one before that is refused; 1 ns is as past as they are. */
	if (until < 1)
		until = 1;
	if (until != TW_FOREVER) {
		end.it_value.tv_sec = (time_t)(until / TW_SECOND);
		end.it_value.tv_nsec = (long)(until % TW_SECOND);
	}
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &end, NULL);
}
#else
static int timer_open(clockid_t clock)
{
	(void)clock;
	errno = ENOTSUP;
	return -1;
}

static void timer_set(int timer, tw_duration until)
{
	(void)timer;
	(void)until;
}
#endif

bool event_count_init(struct event_count *event, bool boottime)
{
	atomic_init(&event->state, EVENT_COUNT_AWAKE);
	event->timer = -1;
	if (boottime && event_count_descriptor(event, CLOCK_BOOTTIME) < 0)
		return false;
	pthread_mutex_init(&event->lock, NULL);
	condition_init(&event->wake);
	return true;
}

void event_count_destroy(struct event_count *event)
{
	int error = errno;

	pthread_cond_destroy(&event->wake);
	pthread_mutex_destroy(&event->lock);
	if (event->timer >= 0)
		close(event->timer);
	errno = error;
}

int event_count_descriptor(struct event_count *event, clockid_t clock)
{
	if (event->timer < 0)
		event->timer = timer_open(clock);
	return event->timer;
}

void event_count_prepare(struct event_count *event, enum event_count_state state, tw_duration until)
{
	if (event->timer >= 0)
		timer_set(event->timer, until);
	/* seq_cst: before the sleeper's second look; pairs with the load in
	 * event_count_is_asleep(). */
	atomic_store_explicit(&event->state, (int)state, memory_order_seq_cst);
}

void event_count_cancel(struct event_count *event)
{
	/* relaxed: a notifier that still sees the announcement wakes no thread, and that is all. */
	atomic_store_explicit(&event->state, EVENT_COUNT_AWAKE, memory_order_relaxed);
}

static bool event_count_is_notified(struct event_count *event)
{
	/* acquire: sees what the notifier did before, without another announcement and look; pairs
	 * with event_count_wake(). */
	return atomic_load_explicit(&event->state, memory_order_acquire) == EVENT_COUNT_AWAKE;
}

static void event_count_wait_condition(struct event_count *event, tw_duration until)
{
	bool in_time = true;

	pthread_mutex_lock(&event->lock);
	while (!event_count_is_notified(event) && in_time)
		in_time = condition_wait(&event->wake, &event->lock, until);
	pthread_mutex_unlock(&event->lock);
}

static void event_count_wait_timer(struct event_count *event)
{
	struct pollfd timer = {.fd = event->timer, .events = POLLIN};

	while (!event_count_is_notified(event) && !(timer.revents & POLLIN))
		(void)poll(&timer, 1, -1);
}

void event_count_wait(struct event_count *event, tw_duration until)
{
	if (event->timer >= 0)
		event_count_wait_timer(event);
	else
		event_count_wait_condition(event, until);
	event_count_cancel(event);
}

void event_count_wake(struct event_count *event)
{
	/* acq_rel: one notifier wins and publishes; pairs with event_count_is_notified(). The timer
	 * is set after it was for the announcement; pairs with event_count_prepare(). */
	if (atomic_exchange_explicit(&event->state, EVENT_COUNT_AWAKE, memory_order_acq_rel) ==
	    EVENT_COUNT_AWAKE)
		return;
	if (event->timer >= 0) {
		timer_set(event->timer, 1);
		return;
	}
	pthread_mutex_lock(&event->lock);
	pthread_cond_signal(&event->wake);
	pthread_mutex_unlock(&event->lock);
}
