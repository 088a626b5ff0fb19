/* SPDX-License-Identifier: MIT */
/*
 * In this harness ADDERS threads add EACH links each for one owner, which takes them meanwhile.
 *
 * Each link arrives once, and its earlier writes are visible. OLDEST: links that are there together
 * come in the order of their adding. SLEEP: the owner sleeps over the inbox until it has them all,
 * by the second look of inbox_has_some(). NAP: it naps, and only what hurries it ends that.
 */
#include <assert.h>
#include <stddef.h>

#include "base/thread.c"
#include "base/event_count.c"
#include "base/inbox.h"

#include "proof_sleep.h"

#ifndef ADDERS
#define ADDERS 2
#endif
#ifndef EACH
#define EACH 2
#endif
#ifndef LOOKS
#define LOOKS 2
#endif
#ifndef NAP
#define NAP 0
#endif

struct item {
	struct inbox_link link;
	int adder;
	int index;
	int taken;
};

static struct item items[ADDERS][EACH];
static struct inbox inbox;
static int next_of[ADDERS]; /* the owner's */
static int taken;

static void *adder_run(void *argument)
{
	struct item *own = argument;

	for (int i = 0; i < EACH; i++) {
		own[i].index = i;
		inbox_add(&inbox, &own[i].link);
#ifdef SLEEP
		if (NAP)
			event_count_hurry(&event);
		else
			event_count_notify(&event, EVENT_COUNT_SLEEPING);
#endif
	}
	return NULL;
}

/* Takes a link as the owner. Returns whether there was one. */
static bool owner_take(void)
{
#ifdef OLDEST
	struct inbox_link *link = inbox_take_oldest(&inbox);
#else
	struct inbox_link *link = inbox_take(&inbox);
#endif
	struct item *item = (struct item *)link;

	if (!link)
		return false;
	assert(item->taken == 0);
	item->taken = 1;
#ifdef OLDEST
	assert(item->index == next_of[item->adder]);
#endif
	next_of[item->adder]++;
	taken++;
	return true;
}

#ifdef SLEEP
static void owner_sleep(void)
{
	event_count_prepare(&event, NAP ? EVENT_COUNT_NAPPING : EVENT_COUNT_SLEEPING, TW_FOREVER);
	if (NAP ? event_count_is_hurried(&event) : inbox_has_some(&inbox))
		event_count_cancel(&event);
	else
		event_count_wait(&event, TW_FOREVER);
}
#endif

int main(void)
{
	pthread_t threads[ADDERS];

	event_open();
	for (int i = 0; i < ADDERS; i++) {
		for (int k = 0; k < EACH; k++)
			items[i][k].adder = i;
		pthread_create(&threads[i], NULL, adder_run, items[i]);
	}
#ifdef SLEEP
	while (taken < ADDERS * EACH) {
		event_count_calm(&event);
		if (!owner_take())
			owner_sleep();
	}
#else
	for (int look = 0; look < LOOKS; look++)
		(void)owner_take();
#endif
	for (int i = 0; i < ADDERS; i++)
		pthread_join(threads[i], NULL);
	while (owner_take() || inbox_is_turning(&inbox))
		continue;
	assert(taken == ADDERS * EACH);
	return 0;
}
