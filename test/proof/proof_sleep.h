/* SPDX-License-Identifier: MIT */
/* This is the event count of a harness, and its sleeper's sleep. It is included after
 * base/event_count.c. */
#ifndef PROOF_SLEEP_H
#define PROOF_SLEEP_H

#ifdef NAPS
#define STATE EVENT_COUNT_NAPPING
#define UNTIL 100
#else
#define STATE EVENT_COUNT_SLEEPING
#define UNTIL TW_FOREVER
#endif

#ifdef TIMER
#define ON_TIMER true
#else
#define ON_TIMER false
#endif

static struct event_count event;

static inline void event_open(void)
{
	(void)event_count_init(&event, ON_TIMER);
}

#endif
