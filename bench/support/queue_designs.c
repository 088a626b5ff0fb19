/* SPDX-License-Identifier: MIT */
/*
 * Ring: src/runtime/command_queue.c, with its retries counted (counted_queue.h). The variant with
 * fetch-and-add differs from it in the claim and in how a producer waits, and shares its cells and
 * its consumer.
 *
 * Linked list, after Dmitry Vyukov: a producer exchanges the tail for its node, then links the node
 * before to it. Nodes come from malloc, or from an array of the producer's own, used in turn. That
 * is the cheapest recycling, as the commands of one producer are consumed in its order.
 *
 * Locked array: producers append to one array under a mutex, the consumer reads another one without
 * it, and swaps the two when it has read all.
 *
 * May run together: push by any number of threads, each with its own producer's number, with peek
 * and pop by one consumer. Linearization: push at the exchange or addition that moves the tail, of
 * the array under the lock.
 */
#include "queue_designs.h"

#include "counted_queue.h"
#include "process.h"

#include <stdlib.h>
#include <string.h>

/* Allocates resident memory, as the ring's cells are. */
static void *allocate_lines(size_t size)
{
	void *memory = aligned_alloc(CACHE_LINE, size);

	if (!memory)
		process_fail("out of memory: %zu bytes", size);
	return memset(memory, 0, size);
}

/* --- Ring: compare-and-swap ------------------------------------------------------------------- */

static void *ring_create(size_t capacity, size_t producers)
{
	struct command_queue *queue = allocate_lines(sizeof(*queue));

	(void)producers;
	if (!command_queue_init(queue, capacity))
		process_fail("out of memory: a ring of %zu commands", capacity);
	return queue;
}

static void ring_destroy(void *ring)
{
	command_queue_destroy(ring);
	free(ring);
}

static void ring_fill(struct command_queue *queue, uint64_t position, const struct command *command)
{
	struct command_cell *cell = command_queue_cell(queue, position);

	cell->command = *command;
	command_queue_publish(cell, position);
}

static void ring_push(void *ring, const struct command *command)
{
	struct command_queue *queue = ring;
	uint64_t position;

	if (!counted_queue_claim(queue, &position))
		(void)counted_queue_wait(queue, &position);
	ring_fill(queue, position, command);
}

static size_t ring_peek(void *ring, const struct command **commands)
{
	size_t count = command_queue_peek(ring, QUEUE_BATCH);

	for (size_t i = 0; i < count; i++)
		commands[i] = command_queue_at(ring, i);
	return count;
}

static void ring_pop(void *ring, size_t count)
{
	command_queue_pop(ring, count);
}

/* --- Gate ------------------------------------------------------------------------------------- */

/* At a gate producers sleep until a number, which only grows, has reached what they await. */
struct gate {
	_Alignas(CACHE_LINE) _Atomic uint64_t awaited; /* the least, UINT64_MAX if none */
	pthread_mutex_t lock;
	pthread_cond_t opened;
};

static void gate_init(struct gate *gate)
{
	atomic_init(&gate->awaited, UINT64_MAX);
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->opened, NULL);
}

static void gate_destroy(struct gate *gate)
{
	pthread_cond_destroy(&gate->opened);
	pthread_mutex_destroy(&gate->lock);
}

static void gate_wait(struct gate *gate, _Atomic uint64_t *number, uint64_t awaited)
{
	pthread_mutex_lock(&gate->lock);
	for (;;) {
		/* relaxed: written under the lock, which is held here */
		if (awaited < atomic_load_explicit(&gate->awaited, memory_order_relaxed)) {
			/* seq_cst: announces, then checks again; pairs with gate_pass() */
			atomic_store_explicit(&gate->awaited, awaited, memory_order_seq_cst);
		}
		/* seq_cst: the second check; pairs with the store in gate_pass() */
		if (atomic_load_explicit(number, memory_order_seq_cst) >= awaited)
			break;
		pthread_cond_wait(&gate->opened, &gate->lock);
	}
	pthread_mutex_unlock(&gate->lock);
}

/* Sets the number to `reached`. Only the consumer calls it. */
static void gate_pass(struct gate *gate, _Atomic uint64_t *number, uint64_t reached)
{
	/* seq_cst: publishes the number, then checks for the announcement; pairs with the loads of
	 * the number by producers, and with the announcement in gate_wait() */
	atomic_store_explicit(number, reached, memory_order_seq_cst);
	if (atomic_load_explicit(&gate->awaited, memory_order_seq_cst) > reached)
		return;
	pthread_mutex_lock(&gate->lock);
	/* relaxed: read under the lock, or by this thread */
	atomic_store_explicit(&gate->awaited, UINT64_MAX, memory_order_relaxed);
	pthread_cond_broadcast(&gate->opened);
	pthread_mutex_unlock(&gate->lock);
}

/* --- Ring: fetch-and-add ---------------------------------------------------------------------- */

/*
 * A producer claims before it knows of room, so it can't give up, and must be woken for its own
 * position: others may pass it until the ring is full, and the consumer can't.
 */
struct adding_ring {
	struct command_queue queue;
	struct gate room;
};

static void *adding_ring_create(size_t capacity, size_t producers)
{
	struct adding_ring *ring = allocate_lines(sizeof(*ring));

	(void)producers;
	if (!command_queue_init(&ring->queue, capacity))
		process_fail("out of memory: a ring of %zu commands", capacity);
	gate_init(&ring->room);
	return ring;
}

static void adding_ring_destroy(void *ring)
{
	struct adding_ring *adding = ring;

	gate_destroy(&adding->room);
	command_queue_destroy(&adding->queue);
	free(adding);
}

/* Returns whether the cell of `position` is free, as command_queue_has_room() does. */
static bool adding_ring_has_room(struct command_queue *queue, uint64_t position)
{
	uint64_t head;

	/* acquire: the consumer has read the cell; pairs with the release below */
	head = atomic_load_explicit(&queue->head_seen, memory_order_acquire);
	if (position - head < queue->capacity)
		return true;
	/* acquire: pairs with the store in gate_pass() */
	head = atomic_load_explicit(&queue->head, memory_order_acquire);
	/* release: passes on what the load of the head acquired; pairs with the acquire above */
	atomic_store_explicit(&queue->head_seen, head, memory_order_release);
	return position - head < queue->capacity;
}

static void adding_ring_push(void *ring, const struct command *command)
{
	struct adding_ring *adding = ring;
	struct command_queue *queue = &adding->queue;
	/* seq_cst: see the exchange in command_queue_claim(); pairs with the load in
	 * command_queue_tail() */
	uint64_t position = atomic_fetch_add_explicit(&queue->tail, 1, memory_order_seq_cst);

	/* It is woken when half of the ring before it is free. */
	while (!adding_ring_has_room(queue, position))
		gate_wait(&adding->room, &queue->head, position - queue->capacity / 2);
	ring_fill(queue, position, command);
}

static void adding_ring_pop(void *ring, size_t count)
{
	struct adding_ring *adding = ring;
	uint64_t head = command_queue_head(&adding->queue) + count;

	gate_pass(&adding->room, &adding->queue.head, head);
}

/* --- Linked list ------------------------------------------------------------------------------ */

struct linked_node {
	_Atomic(struct linked_node *) next;
	struct command command;
};

/* A lane has a producer's nodes. */
struct linked_lane {
	/* These are constant. */
	struct linked_node *nodes; /* NULL if every node is from malloc */
	uint64_t capacity;         /* a power of two */
	/* The producer writes these. */
	uint64_t taken;
	uint64_t given_seen;
	/* The consumer writes this, the producer reads it when it needs a node. */
	_Alignas(CACHE_LINE) _Atomic uint64_t given; /* returned nodes */
	struct gate room;
};

struct linked {
	/* Any producer may write this. */
	_Alignas(CACHE_LINE) _Atomic(struct linked_node *) tail;
	/* The consumer writes these. */
	_Alignas(CACHE_LINE) struct linked_node *head; /* consumed; the next command follows it */
	uint64_t given[QUEUE_PRODUCERS];
	struct linked_node first;
	/* These are constant. */
	size_t producers;
	struct linked_lane lanes[QUEUE_PRODUCERS];
};

static struct linked *linked_create(size_t capacity, size_t producers)
{
	struct linked *queue = allocate_lines(sizeof(*queue));

	*queue = (struct linked){.head = &queue->first, .producers = producers};
	atomic_init(&queue->tail, &queue->first);
	for (size_t i = 0; i < producers; i++) {
		struct linked_lane *lane = &queue->lanes[i];

		for (lane->capacity = capacity; lane->capacity * producers > capacity;)
			lane->capacity /= 2;
		gate_init(&lane->room);
	}
	return queue;
}

static void *linked_create_allocating(size_t capacity, size_t producers)
{
	return linked_create(capacity, producers);
}

static void *linked_create_recycling(size_t capacity, size_t producers)
{
	struct linked *queue = linked_create(capacity, producers);

	for (size_t i = 0; i < producers; i++) {
		struct linked_lane *lane = &queue->lanes[i];

		lane->nodes = allocate_lines(lane->capacity * sizeof(*lane->nodes));
	}
	return queue;
}

static void linked_destroy(void *list)
{
	struct linked *queue = list;

	/* This is the last node consumed; earlier ones have been returned. */
	if (!queue->lanes[0].nodes && queue->head != &queue->first)
		free(queue->head);
	for (size_t i = 0; i < queue->producers; i++) {
		gate_destroy(&queue->lanes[i].room);
		free(queue->lanes[i].nodes);
	}
	free(queue);
}

static bool linked_lane_is_empty(const struct linked_lane *lane)
{
	return lane->taken - lane->given_seen == lane->capacity;
}

static void linked_lane_look(struct linked_lane *lane)
{
	/* acquire: the consumer has read the nodes; pairs with the store in gate_pass() */
	lane->given_seen = atomic_load_explicit(&lane->given, memory_order_acquire);
}

/* Waits until half of the nodes are returned. */
static void linked_lane_wait(struct linked_lane *lane)
{
	linked_lane_look(lane);
	if (!linked_lane_is_empty(lane))
		return;
	gate_wait(&lane->room, &lane->given, lane->taken - lane->capacity / 2);
	linked_lane_look(lane);
}

static struct linked_node *linked_lane_take(struct linked_lane *lane)
{
	struct linked_node *node;

	if (linked_lane_is_empty(lane))
		linked_lane_wait(lane);
	if (lane->nodes)
		node = &lane->nodes[lane->taken & (lane->capacity - 1)];
	else
		node = malloc(sizeof(*node));
	if (!node)
		process_fail("out of memory: a node");
	lane->taken++;
	return node;
}

static void linked_push(void *list, const struct command *command)
{
	struct linked *queue = list;
	struct linked_node *node = linked_lane_take(&queue->lanes[command->hash]);
	struct linked_node *before;

	node->command = *command;
	/* relaxed: published by the store below */
	atomic_store_explicit(&node->next, NULL, memory_order_relaxed);
	/* acq_rel: the next producer links to a whole node, and this one to the node before; pairs
	 * with this exchange in other producers */
	before = atomic_exchange_explicit(&queue->tail, node, memory_order_acq_rel);
	/* release: publishes the command; pairs with the acquire in linked_peek() */
	atomic_store_explicit(&before->next, node, memory_order_release);
}

static size_t linked_peek(void *list, const struct command **commands)
{
	struct linked *queue = list;
	struct linked_node *node = queue->head;
	size_t count;

	for (count = 0; count < QUEUE_BATCH; count++) {
		/* acquire: sees the command; pairs with the release in linked_push() */
		node = atomic_load_explicit(&node->next, memory_order_acquire);
		if (!node)
			break;
		commands[count] = &node->command;
	}
	return count;
}

/* Returns a node whose successor has been consumed too: no producer has a pointer to it. */
static void linked_give(struct linked *queue, struct linked_node *node)
{
	uint32_t producer = node->command.hash;

	if (node == &queue->first)
		return;
	queue->given[producer]++;
	if (!queue->lanes[producer].nodes)
		free(node);
}

static void linked_pop(void *list, size_t count)
{
	struct linked *queue = list;

	for (size_t i = 0; i < count; i++) {
		struct linked_node *node = queue->head;

		/* relaxed: linked_peek() has acquired it */
		queue->head = atomic_load_explicit(&node->next, memory_order_relaxed);
		linked_give(queue, node);
	}
	for (size_t i = 0; i < queue->producers; i++) {
		struct linked_lane *lane = &queue->lanes[i];

		gate_pass(&lane->room, &lane->given, queue->given[i]);
	}
}

/* --- Locked array ----------------------------------------------------------------------------- */

struct locked {
	size_t capacity; /* constant, the capacity of each array */
	/* These are under the lock. */
	_Alignas(CACHE_LINE) pthread_mutex_t lock;
	pthread_cond_t room;
	struct command *arriving;
	_Atomic size_t arrived; /* the consumer also reads it without the lock */
	unsigned waiting;
	/* The consumer writes these. */
	_Alignas(CACHE_LINE) struct command *leaving;
	size_t left;
	size_t end;
};

static void *locked_create(size_t capacity, size_t producers)
{
	struct locked *queue = allocate_lines(sizeof(*queue));

	(void)producers;
	*queue = (struct locked){.capacity = capacity / 2};
	queue->arriving = allocate_lines(queue->capacity * sizeof(struct command));
	queue->leaving = allocate_lines(queue->capacity * sizeof(struct command));
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->room, NULL);
	return queue;
}

static void locked_destroy(void *array)
{
	struct locked *queue = array;

	pthread_cond_destroy(&queue->room);
	pthread_mutex_destroy(&queue->lock);
	free(queue->arriving);
	free(queue->leaving);
	free(queue);
}

static size_t locked_arrived(struct locked *queue)
{
	/* relaxed: the lock orders it; without the lock it is only a hint */
	return atomic_load_explicit(&queue->arrived, memory_order_relaxed);
}

static void locked_set_arrived(struct locked *queue, size_t arrived)
{
	/* relaxed: written under the lock; locked_peek() reads it as a hint, and then locks */
	atomic_store_explicit(&queue->arrived, arrived, memory_order_relaxed);
}

static void locked_append(struct locked *queue, const struct command *command)
{
	while (locked_arrived(queue) == queue->capacity) {
		queue->waiting++;
		pthread_cond_wait(&queue->room, &queue->lock);
		queue->waiting--;
	}
	queue->arriving[locked_arrived(queue)] = *command;
	locked_set_arrived(queue, locked_arrived(queue) + 1);
}

static void locked_push(void *array, const struct command *command)
{
	struct locked *queue = array;

	pthread_mutex_lock(&queue->lock);
	locked_append(queue, command);
	pthread_mutex_unlock(&queue->lock);
}

static void locked_exchange(struct locked *queue)
{
	struct command *empty = queue->leaving;

	pthread_mutex_lock(&queue->lock);
	queue->leaving = queue->arriving;
	queue->left = 0;
	queue->end = locked_arrived(queue);
	queue->arriving = empty;
	locked_set_arrived(queue, 0);
	if (queue->waiting > 0)
		pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->lock);
}

static size_t locked_peek(void *array, const struct command **commands)
{
	struct locked *queue = array;
	size_t count = 0;

	if (queue->left == queue->end && locked_arrived(queue) > 0)
		locked_exchange(queue);
	for (size_t i = queue->left; i < queue->end && count < QUEUE_BATCH; i++)
		commands[count++] = &queue->leaving[i];
	return count;
}

static void locked_pop(void *array, size_t count)
{
	struct locked *queue = array;

	queue->left += count;
}

/* --- All of them ------------------------------------------------------------------------------ */

#define RING ring_create, ring_destroy, ring_push, ring_peek, ring_pop, counted_queue_retries
#define ADDING_RING \
	adding_ring_create, adding_ring_destroy, adding_ring_push, ring_peek, adding_ring_pop, NULL
#define LINKED(create) create, linked_destroy, linked_push, linked_peek, linked_pop, NULL
#define LOCKED locked_create, locked_destroy, locked_push, locked_peek, locked_pop, NULL

enum { BASELINE = 4 };

const struct queue_design queue_designs[] = {
	{"ring_cas", "ring, CAS (ours)", RING},
	{"ring_add", "ring, fetch-and-add", ADDING_RING},
	{"linked", "linked list, own nodes", LINKED(linked_create_recycling)},
	{"linked_malloc", "linked list, malloc", LINKED(linked_create_allocating)},
	[BASELINE] = {"locked", "mutex, swapped arrays", LOCKED},
	{.name = NULL},
};

const struct queue_design *const queue_baseline = &queue_designs[BASELINE];
