/* SPDX-License-Identifier: MIT */
/*
 * The sort is a natural merge sort. The timers of a tick come nearly sorted, because slots are
 * filled in the order of commands. Only timers that came down from a coarser slot, or were set
 * again for the same tick, begin another run. With r runs each timer is merged about log2 r times.
 *
 * Runs are merged as a binary counter counts: runs[i] has 2^i runs merged into one, or none. Runs
 * are linked forward only, and end with NULL.
 */
#include "wheel_sort.h"

#include <stddef.h>

enum { RUNS = 48 }; /* for 2^48 runs, more than the timers that fit into memory */

/* Returns the last link of the run that begins with `link`. */
static struct list *run_end(struct list *link)
{
	while (link->next && !wheel_sort_is_before(link->next, link))
		link = link->next;
	return link;
}

/* Merges two runs; one may be empty. Of equals those of `a` come first. */
static struct list *run_merge(struct list *a, struct list *b)
{
	struct list *first;
	struct list **end = &first;

	while (a && b) {
		struct list **lesser = wheel_sort_is_before(b, a) ? &b : &a;

		*end = *lesser;
		end = &(*end)->next;
		*lesser = *end;
	}
	*end = a ? a : b;
	return first;
}

/* Makes a run the list. */
static void list_take_run(struct list *list, struct list *run)
{
	struct list *last = list;

	for (; run; run = run->next) {
		last->next = run;
		run->previous = last;
		last = run;
	}
	last->next = list;
	list->previous = last;
}

void wheel_sort(struct list *list)
{
	struct list *runs[RUNS] = {NULL};
	struct list *rest = list->next;
	struct list *all = NULL;

	if (list_is_empty(list))
		return;
	list->previous->next = NULL;
	while (rest) {
		struct list *run = rest;
		struct list *last = run_end(run);
		int level = 0;

		rest = last->next;
		last->next = NULL;
		for (; runs[level]; level++) {
			run = run_merge(runs[level], run);
			runs[level] = NULL;
		}
		runs[level] = run;
	}
	for (int level = 0; level < RUNS; level++)
		if (runs[level])
			all = run_merge(runs[level], all);
	list_take_run(list, all);
}
