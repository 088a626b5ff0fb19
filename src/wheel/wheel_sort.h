/* SPDX-License-Identifier: MIT */
/*
 * Puts timers in the order of their sequence numbers, a bounded step at a time. Used by the wheel
 * alone. A timer in it may be taken out with list_remove() at any time, but its sequence number may
 * not change.
 *
 * Use: as long as wheel_sort_is_merging(), wheel_sort_merge(); else wheel_sort_add() the next
 * timer, or wheel_sort_end() after the last one, and merge again; at last wheel_sort_take().
 */
#ifndef WHEEL_SORT_H
#define WHEEL_SORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "timer.h"

enum { WHEEL_SORT_LEVELS = 48 }; /* for 2^48 runs, more timers than there is memory for */

struct wheel_sort {
	bool is_active;                      /* timers have been added since the last take */
	bool is_ending;                      /* the last one was added */
	int level;                           /* of the merge under way */
	int height;                          /* levels that may have a run */
	struct list run;                     /* rising, and still growing */
	struct list carry;                   /* being merged with runs[level] … */
	struct list merged;                  /* … into this */
	struct list runs[WHEEL_SORT_LEVELS]; /* runs[i]: 2^i runs in one, or empty */
};

void wheel_sort_init(struct wheel_sort *sort);
bool wheel_sort_is_merging(const struct wheel_sort *sort);
/* Moves one timer, or a whole run. */
void wheel_sort_merge(struct wheel_sort *sort);
void wheel_sort_add(struct wheel_sort *sort, struct timer *timer);
void wheel_sort_end(struct wheel_sort *sort);
/* Moves all to the front of `to`: in order if ended and not merging, else in any. */
void wheel_sort_take(struct wheel_sort *sort, struct list *to);

/* Asserts that each run rises; how many timers there are. */
size_t wheel_sort_check(const struct wheel_sort *sort);

#endif
