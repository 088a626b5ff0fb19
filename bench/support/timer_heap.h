/* SPDX-License-Identifier: MIT */
/*
 * The heap is the baseline for timers of connections: a binary heap of deadlines under one lock,
 * with the place of each timer, as in many event loops. Ends the program when memory is out. Any
 * thread may call it.
 */
#ifndef BENCH_SUPPORT_TIMER_HEAP_H
#define BENCH_SUPPORT_TIMER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer_heap;

/* Creates a heap for timers 0 to count - 1. */
struct timer_heap *timer_heap_create(size_t count);
void timer_heap_destroy(struct timer_heap *heap);
/* Arms the timer, or moves it. Returns whether it is now the earliest. */
bool timer_heap_set(struct timer_heap *heap, size_t timer, int64_t deadline);
void timer_heap_stop(struct timer_heap *heap, size_t timer);
/* Takes the earliest timer out if its deadline is at or before `now`. Returns false otherwise. */
bool timer_heap_take(struct timer_heap *heap, int64_t now, size_t *timer);
/* Returns the earliest deadline, or INT64_MAX. */
int64_t timer_heap_next(struct timer_heap *heap);

#endif
