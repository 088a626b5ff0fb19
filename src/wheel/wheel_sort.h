/* SPDX-License-Identifier: MIT */
/*
 * A wheel sort puts timers in the order of their sequence numbers, in bounded steps. Only the wheel
 * uses it. A timer in it may be taken out with list_remove() at any time; its sequence number must
 * not change.
 *
 * Use: while wheel_sort_is_merging(), call wheel_sort_merge(). Then call wheel_sort_add() with the
 * next timer, or wheel_sort_end() after the last one, and merge again. In the end call
 * wheel_sort_take().
 */
#ifndef WHEEL_SORT_H
#define WHEEL_SORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "timer.h"

enum { WHEEL_SORT_LEVELS = 48 }; /* for 2^48 runs, more than the timers that fit into memory */

struct wheel_sort {
	bool is_active;                      /* timers were added since the last take */
	bool is_ending;                      /* the last timer was added */
	int level;                           /* the level of the present merge */
	int height;                          /* number of levels that may have a run */
	struct list run;                     /* the run that still grows */
	struct list carry;                   /* merged with runs[level] … */
	struct list merged;                  /* … into this list */
	struct list runs[WHEEL_SORT_LEVELS]; /* runs[i] has 2^i runs merged into one, or none */
};

void wheel_sort_init(struct wheel_sort *sort);
bool wheel_sort_is_merging(const struct wheel_sort *sort);
/* Does one step of a merge: moves one timer, or a whole run. */
void wheel_sort_merge(struct wheel_sort *sort);
void wheel_sort_add(struct wheel_sort *sort, struct timer *timer);
void wheel_sort_end(struct wheel_sort *sort);
/* Moves all timers to the front of `to`. They are in order if wheel_sort_end() was called and no
 * merge is left. */
void wheel_sort_take(struct wheel_sort *sort, struct list *to);

/* Asserts that each run rises. Returns the number of timers. */
size_t wheel_sort_check(const struct wheel_sort *sort);

#endif
