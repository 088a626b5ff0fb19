/* SPDX-License-Identifier: MIT */
/*
 * In this harness there is one sleeper, and notifiers that each leave EACH pieces of work and
 * notify after each.
 *
 * The sleeper gets all the work: no wake-up is lost. TIMER: it sleeps on the timer's descriptor,
 * else on the condition variable. NAPS: it announces a nap. The last notifier, whose work is
 * urgent, ends the nap and waits for that; the others do not, and it ends by itself when all have
 * ended. NUDGES: a sleep may end spuriously. ONCE: for one notifier and one piece of work, which a
 * sleeper that it wakes sees at once, without another announcement and look.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/thread.c"
#include "base/event_count.c"

#include "proof_sleep.h"

#ifndef NOTIFIERS
#define NOTIFIERS 2
#endif
#ifndef EACH
#define EACH 1
#endif
static atomic_int work;
static atomic_int handled; /* work that the sleeper has seen */

enum { ORDINARY = 1, URGENT = 16, ALL = (NOTIFIERS - 1) * EACH * ORDINARY + EACH * URGENT };

static void *notifier_run(void *argument)
{
	bool is_last = argument != NULL;

	for (int i = 0; i < EACH; i++) {
		/* seq_cst: the publication before the notification; pairs with sleeper_look(). */
		atomic_fetch_add_explicit(&work, is_last ? URGENT : ORDINARY, memory_order_seq_cst);
		event_count_notify(&event, is_last ? EVENT_COUNT_NAPPING : EVENT_COUNT_SLEEPING);
	}
#ifdef NAPS
	/* relaxed: a flag alone. */
	while (is_last && atomic_load_explicit(&handled, memory_order_relaxed) < EACH * URGENT)
		continue;
#endif
	return NULL;
}

/* The second look. */
static int sleeper_look(void)
{
	/* seq_cst: after the announcement; pairs with notifier_run(). */
	return atomic_load_explicit(&work, memory_order_seq_cst);
}

static bool sleeper_must_wake(int seen, int now)
{
	return STATE == EVENT_COUNT_SLEEPING ? now != seen : now / URGENT != seen / URGENT;
}

static void *sleeper_run(void *argument)
{
	int seen = 0;

	(void)argument;
	while (seen != ALL) {
		int now;

		/* relaxed: a flag alone. */
		atomic_store_explicit(&handled, seen, memory_order_relaxed);
		event_count_prepare(&event, STATE, UNTIL);
		now = sleeper_look();
		if (sleeper_must_wake(seen, now)) {
			event_count_cancel(&event);
			seen = now;
			continue;
		}
		event_count_wait(&event, UNTIL);
		/* relaxed: the next second look decides. */
		seen = atomic_load_explicit(&work, memory_order_relaxed);
#ifdef ONCE
		assert(seen == ALL);
#endif
	}
	/* relaxed: a flag alone. */
	atomic_store_explicit(&handled, seen, memory_order_relaxed);
	return NULL;
}

int main(void)
{
	pthread_t notifiers[NOTIFIERS];
	pthread_t sleeper;

	event_open();
	pthread_create(&sleeper, NULL, sleeper_run, NULL);
	for (int i = 0; i < NOTIFIERS; i++)
		pthread_create(&notifiers[i], NULL, notifier_run,
			       i == NOTIFIERS - 1 ? &work : NULL);
	proof_start_nudger();
	for (int i = 0; i < NOTIFIERS; i++)
		pthread_join(notifiers[i], NULL);
#ifdef NAPS
	proof_pass_time(UNTIL);
#endif
	pthread_join(sleeper, NULL);
	return 0;
}
