/* SPDX-License-Identifier: MIT */
#ifndef WHEEL_SORT_H
#define WHEEL_SORT_H

#include <stdbool.h>

#include "base/list.h"
#include "timer.h"

/* Returns whether the timer with link `a` comes before that with link `b`. */
static inline bool wheel_sort_is_before(struct list *a, struct list *b)
{
	return timer_of_link(a)->sequence < timer_of_link(b)->sequence;
}

/* Puts a list of timers in the order of their sequence numbers. */
void wheel_sort(struct list *list);

#endif
