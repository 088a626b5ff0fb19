/* SPDX-License-Identifier: MIT */
#include "timer_heap.h"

#include "process.h"

#include <pthread.h>
#include <stdlib.h>

struct node {
	int64_t deadline;
	size_t timer;
};

struct timer_heap {
	pthread_mutex_t lock;
	size_t count;
	struct node *nodes;
	size_t *places; /* from 1; a timer that is not armed has 0 */
};

struct timer_heap *timer_heap_create(size_t count)
{
	struct timer_heap *heap = process_allocate(sizeof(*heap));

	pthread_mutex_init(&heap->lock, NULL);
	heap->nodes = process_allocate(count * sizeof(*heap->nodes));
	heap->places = process_allocate(count * sizeof(*heap->places));
	return heap;
}

void timer_heap_destroy(struct timer_heap *heap)
{
	pthread_mutex_destroy(&heap->lock);
	free(heap->nodes);
	free(heap->places);
	free(heap);
}

static void heap_put(struct timer_heap *heap, size_t place, struct node node)
{
	heap->nodes[place] = node;
	heap->places[node.timer] = place + 1;
}

/* Moves a node from its place up or down to where it belongs. */
static void heap_sift(struct timer_heap *heap, size_t place, struct node node)
{
	while (place > 0 && node.deadline < heap->nodes[(place - 1) / 2].deadline) {
		heap_put(heap, place, heap->nodes[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	for (;;) {
		size_t child = 2 * place + 1;

		if (child + 1 < heap->count &&
		    heap->nodes[child + 1].deadline < heap->nodes[child].deadline)
			child++;
		if (child >= heap->count || node.deadline <= heap->nodes[child].deadline)
			break;
		heap_put(heap, place, heap->nodes[child]);
		place = child;
	}
	heap_put(heap, place, node);
}

bool timer_heap_set(struct timer_heap *heap, size_t timer, int64_t deadline)
{
	size_t place;
	bool is_earliest;

	pthread_mutex_lock(&heap->lock);
	place = heap->places[timer] > 0 ? heap->places[timer] - 1 : heap->count++;
	heap_sift(heap, place, (struct node){deadline, timer});
	is_earliest = heap->nodes[0].timer == timer;
	pthread_mutex_unlock(&heap->lock);
	return is_earliest;
}

static void heap_remove(struct timer_heap *heap, size_t place)
{
	struct node last = heap->nodes[--heap->count];

	heap->places[heap->nodes[place].timer] = 0;
	if (place < heap->count)
		heap_sift(heap, place, last);
}

void timer_heap_stop(struct timer_heap *heap, size_t timer)
{
	pthread_mutex_lock(&heap->lock);
	if (heap->places[timer] > 0)
		heap_remove(heap, heap->places[timer] - 1);
	pthread_mutex_unlock(&heap->lock);
}

bool timer_heap_take(struct timer_heap *heap, int64_t now, size_t *timer)
{
	bool is_due;

	pthread_mutex_lock(&heap->lock);
	is_due = heap->count > 0 && heap->nodes[0].deadline <= now;
	if (is_due) {
		*timer = heap->nodes[0].timer;
		heap_remove(heap, 0);
	}
	pthread_mutex_unlock(&heap->lock);
	return is_due;
}

int64_t timer_heap_next(struct timer_heap *heap)
{
	int64_t next;

	pthread_mutex_lock(&heap->lock);
	next = heap->count > 0 ? heap->nodes[0].deadline : INT64_MAX;
	pthread_mutex_unlock(&heap->lock);
	return next;
}
