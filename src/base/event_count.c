/* SPDX-License-Identifier: MIT */
/*
 * The event count is one state word and a condition variable, or a timer's descriptor in its place.
 *
 * Invariants:
 *   a notifier that publishes work wakes the sleeper, or the sleeper's second look sees the work
 *   one notifier at most takes back an announcement, by an exchange, and only that one wakes the
 *     sleeper
 *
 * The header has the table of calls that may run together.
 * Linearization: prepare at its store, notify at its load, wake at its exchange.
 *
 * Futex, eventfd and condition variable cost the notifier the same, 1.4 to 1.7 µs, so the portable
 * one is used. Two kinds of sleep need a descriptor: one that ends by CLOCK_BOOTTIME, because a
 * condition variable's clock stops while the machine is suspended, and one in the program's own
 * epoll.
 *
 * The timer is armed before the announcement. A notifier sets it to the past, after the
 * announcement. A notifier that took back an earlier announcement and was delayed may set it during
 * a later sleep: that sleep ends early, and its sleeper finds no work. The sleeper makes no system
 * call where the timer is set to the right time already, and no notifier has set it since.
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

/* Arms the timer, which becomes readable at `until` and is not readable before. */
static void timer_set(int timer, tw_duration until)
{
	struct itimerspec end = {0};

	/* The system takes 0 as "disarm" and refuses negative times; 1 ns is in the past as
	 * well. */
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

/* The sleeper sets the timer, unless it is set to that time. */
static void event_count_arm(struct event_count *event, tw_duration until)
{
	if (until == event->armed && !event_count_is_rung(event))
		return;
	event->armed = until;
	/* acquire: what a notifier has set is set again; pairs with event_count_wake(). */
	(void)atomic_exchange_explicit(&event->is_rung, false, memory_order_acquire);
	timer_set(event->timer, until);
}

bool event_count_init(struct event_count *event, bool boottime)
{
	atomic_init(&event->state, EVENT_COUNT_AWAKE);
	atomic_init(&event->is_rung, false);
	atomic_init(&event->is_hurried, false);
	event->timer = -1;
	event->armed = TW_FOREVER;
	if (boottime && event_count_descriptor(event, CLOCK_BOOTTIME) < 0)
		return false;
	pthread_mutex_init(&event->lock, NULL);
	condition_init(&event->wake);
	return true;
}

void event_count_destroy(struct event_count *event)
{
	int error = errno;
	int state;

	pthread_cond_destroy(&event->wake);
	pthread_mutex_destroy(&event->lock);
	/* A close is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (event->timer >= 0)
		close(event->timer);
	pthread_setcancelstate(state, &state);
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
		event_count_arm(event, until);
	/* seq_cst: before the sleeper's second look; pairs with the load in
	 * event_count_is_asleep(). */
	atomic_store_explicit(&event->state, (int)state, memory_order_seq_cst);
}

void event_count_cancel(struct event_count *event)
{
	/* relaxed: a notifier that still sees the announcement does no harm: it wakes no thread, or
	 * ends a later sleep early. */
	atomic_store_explicit(&event->state, EVENT_COUNT_AWAKE, memory_order_relaxed);
}

void event_count_hush(struct event_count *event)
{
	if (event->timer >= 0)
		event_count_arm(event, TW_FOREVER);
}

static bool event_count_is_notified(struct event_count *event)
{
	/* acquire: sees what the notifier did before, without another look; pairs with
	 * event_count_wake(). */
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
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (!event_count_is_notified(event) && !(timer.revents & POLLIN))
		(void)poll(&timer, 1, -1);
	pthread_setcancelstate(state, &state);
	/* The next sleep sets it again, also if the notifier that has set it did not yet say so. */
	event->armed = INT64_MIN;
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
	/* acq_rel: one notifier wins. It publishes what it did; pairs with
	 * event_count_is_notified(). It sets the timer after the sleeper has armed it; pairs with
	 * event_count_prepare(). */
	if (atomic_exchange_explicit(&event->state, EVENT_COUNT_AWAKE, memory_order_acq_rel) ==
	    EVENT_COUNT_AWAKE)
		return;
	if (event->timer >= 0) {
		timer_set(event->timer, 1);
		/* release: after that; pairs with event_count_arm(). */
		atomic_store_explicit(&event->is_rung, true, memory_order_release);
		return;
	}
	pthread_mutex_lock(&event->lock);
	pthread_cond_signal(&event->wake);
	pthread_mutex_unlock(&event->lock);
}

/* ---- Waiting ---- */

void waiting_init(struct waiting *waiting)
{
	atomic_init(&waiting->waiters, 0);
	pthread_mutex_init(&waiting->lock, NULL);
	condition_init(&waiting->done);
}

void waiting_destroy(struct waiting *waiting)
{
	pthread_cond_destroy(&waiting->done);
	pthread_mutex_destroy(&waiting->lock);
}

void waiting_begin(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->lock);
	/* seq_cst: announces, before the look; pairs with the load in waiting_tell(). */
	atomic_fetch_add_explicit(&waiting->waiters, 1, memory_order_seq_cst);
}

bool waiting_pause(struct waiting *waiting, const struct clock *clock, tw_duration deadline)
{
	return clock_wait(clock, &waiting->done, &waiting->lock, deadline);
}

void waiting_end(struct waiting *waiting)
{
	/* relaxed: a wake too many does no harm. */
	atomic_fetch_sub_explicit(&waiting->waiters, 1, memory_order_relaxed);
	pthread_mutex_unlock(&waiting->lock);
}

void waiting_wake(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->lock);
	pthread_cond_broadcast(&waiting->done);
	pthread_mutex_unlock(&waiting->lock);
}
