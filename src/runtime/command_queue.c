/* SPDX-License-Identifier: MIT */
/*
 * A ring of cells of one cache line with the command in the cell.
 *
 * A producer claims a position by moving the tail with compare-and-swap, never past head +
 * capacity, so that a full queue is known before anything is claimed and the call can fail. It
 * fills the cell and publishes it with the cell's turn. The consumer reads cells in order while
 * their turns are right, a batch at a time, and gives the batch back by one store to the head.
 * Producers look at the head only when the last one they saw leaves no room.
 *
 * Invariants: head ≤ tail ≤ head + capacity. A cell belongs to the producer from its claim to
 * its publication, then to the consumer until the pop. A cell's turn is position + 1 of its last
 * publication, or 0 as the kernel gave it: it can't be taken for another round's, for positions
 * are never reused. So the ring is touched only as far as commands have come. What has been touched
 * stays: it is at most what a queue that is full needs.
 *
 * May run together: claim, publish, wait, close, tail, head, count, memory by any number of
 * threads, with peek, at and pop by one consumer.
 * Linearization: claim at the exchange of the tail; a command becomes visible to the consumer at
 * publish; pop at the store to the head; "full" at the load of the head.
 * Progress: claim is lock-free. A producer descheduled between claim and publish holds up the
 * consumer at its cell, not the other producers, until the ring is full.
 *
 * A waiting producer announces itself and looks again before it sleeps; the consumer looks for
 * the announcement after each pop, and wakes all that wait once for each half of the ring, or 4096
 * commands, that it has popped: one wake for thousands of commands.
 *
 * Order among producers. A cell counts as taken for each producer that waits for one: a claim needs
 * room for itself and for all that wait, a waiting producer for itself and for those before it, by
 * their tickets. So a producer that has once had room keeps it, however long it takes to wake, and
 * none is overtaken for ever. A waiting producer that finds no room has a whole ring of commands
 * before it that are still to be popped, so another wake comes. The consumer itself claims before
 * them all: they wait for it, and may be as many as there are cells.
 *
 * Measured beside a ring with fetch-and-add, Vyukov's linked list with own nodes and with malloc,
 * and a mutex with swapped arrays, this one took 30, 30 and 35 ns a command for 1, 2 and 4
 * producers on two cores; the others 29 to 70. Fetch-and-add can't refuse: a claim beyond the
 * capacity is a claim, and must wait. A list makes the consumer wait for each node's line in turn;
 * a ring's next lines are known.
 *
 * After a failed exchange a producer pauses, and looks at the tail again: other producers get on
 * meanwhile without handing its line about. With 32 pauses a command takes 24 to 41 ns for 2 to 64
 * producers, without them 29 to 50; the slowest of 1000 calls of two producers take 0.9 us for
 * 0.25. A pause that grows with each failure does no better than its first one, and without the
 * second look a producer may fail on and on.
 */
#include "command_queue.h"

#include "base/counter.h"
#include "base/pages.h"
#include "base/thread.h"

enum { COMMANDS_A_WAKE = 4096 };
enum { CELLS_A_PAGE = 64 }; /* as memory is counted */
enum { PAUSES = 32 };       /* 0.8 us where the figures above come from */

/* An instruction that makes a loop wait and leaves the core to others meanwhile. */
#if defined(__x86_64__) || defined(__i386__)
#define PAUSE "pause"
#elif defined(__aarch64__)
#define PAUSE "isb"
#else
#define PAUSE ""
#endif

bool command_queue_init(struct command_queue *queue, size_t capacity)
{
	uint64_t rounded = 2;

	while (rounded < capacity)
		rounded *= 2;
	*queue = (struct command_queue){.capacity = rounded};
	if (rounded > SIZE_MAX / sizeof(*queue->cells))
		return false;
	queue->cells = pages_map_untouched(rounded * sizeof(*queue->cells));
	if (!queue->cells)
		return false;
	pages_use_huge(queue->cells, rounded * sizeof(*queue->cells), false);
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->room, NULL);
	return true;
}

void command_queue_destroy(struct command_queue *queue)
{
	pthread_cond_destroy(&queue->room);
	pthread_mutex_destroy(&queue->lock);
	pages_unmap_aligned(queue->cells, queue->capacity * sizeof(*queue->cells));
}

/*
 * Whether a command at position `tail` would find a free cell. A tail that others have long moved
 * may lie behind the head: the exchange will refuse it, so there it counts as room.
 */
static bool command_queue_fits(struct command_queue *queue, uint64_t tail, uint64_t head)
{
	return (int64_t)(tail - head) < (int64_t)queue->capacity;
}

static bool command_queue_has_room(struct command_queue *queue, uint64_t tail)
{
	uint64_t head;

	/* acquire: the consumer's reads of cells before the head that another thread saw come
	 * before our writes; pairs with the release in the store below. */
	head = atomic_load_explicit(&queue->head_seen, memory_order_acquire);
	if (command_queue_fits(queue, tail, head))
		return true;
	/* seq_cst: also the second look of a producer that announced that it waits; pairs with the
	 * store in command_queue_pop(). */
	head = atomic_load_explicit(&queue->head, memory_order_seq_cst);
	/* release: passes on what the load of the head acquired. */
	atomic_store_explicit(&queue->head_seen, head, memory_order_release);
	return command_queue_fits(queue, tail, head);
}

/* While other producers have the tail's line. */
static void command_queue_back_off(void)
{
	for (int i = 0; i < PAUSES; i++)
		__asm__ volatile(PAUSE);
}

/* Claims a cell if there is room for it and for `ahead` others, or returns NULL. */
static struct command_cell *command_queue_claim_behind(struct command_queue *queue, uint64_t ahead,
						       uint64_t *position)
{
	for (;; command_queue_back_off()) {
		/* acquire: only a guess, the exchange decides; but with it comes the head that
		 * made room for it: an older one may look full. Pairs with the exchange below. */
		uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_acquire);

		if (!command_queue_has_room(queue, tail + ahead))
			return NULL;
		*position = tail;
		/* seq_cst: the publication that a notifier promises before it looks for a sleeper;
		 * pairs with the load in command_queue_tail() by an owner that goes to sleep. */
		if (atomic_compare_exchange_weak_explicit(&queue->tail, &tail, tail + 1,
							  memory_order_seq_cst,
							  memory_order_relaxed))
			return command_queue_cell(queue, *position);
	}
}

struct command_cell *command_queue_claim(struct command_queue *queue, uint64_t *position)
{
	/* relaxed: a producer that begins to wait just now may be overtaken once. */
	uint64_t waiting = atomic_load_explicit(&queue->waiting, memory_order_relaxed);

	return command_queue_claim_behind(queue, waiting, position);
}

struct command_cell *command_queue_claim_first(struct command_queue *queue, uint64_t *position)
{
	return command_queue_claim_behind(queue, 0, position);
}

void command_queue_publish(struct command_cell *cell, uint64_t position)
{
	/* release: publishes the command and *timer; pairs with the acquire in
	 * command_queue_peek(). */
	atomic_store_explicit(&cell->turn, position + 1, memory_order_release);
}

struct command_cell *command_queue_wait(struct command_queue *queue, uint64_t *position)
{
	uint64_t ticket;
	struct command_cell *cell = NULL;

	pthread_mutex_lock(&queue->lock);
	/* seq_cst: the announcement, before the second look; pairs with the load in
	 * command_queue_pop(). */
	ticket =
		queue->served + atomic_fetch_add_explicit(&queue->waiting, 1, memory_order_seq_cst);
	while (!queue->closed && !cell) {
		/* Where a later ticket was served before, `served` may be past this one. */
		uint64_t ahead = ticket > queue->served ? ticket - queue->served : 0;

		cell = command_queue_claim_behind(queue, ahead, position);
		if (!cell)
			condition_wait(&queue->room, &queue->lock, TW_FOREVER);
	}
	queue->served++;
	/* relaxed: a wake too many does no harm, nor a cell kept for a moment longer. */
	atomic_fetch_sub_explicit(&queue->waiting, 1, memory_order_relaxed);
	pthread_mutex_unlock(&queue->lock);
	return cell;
}

static void command_queue_wake_all(struct command_queue *queue, bool close)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed |= close;
	pthread_cond_broadcast(&queue->room);
	pthread_mutex_unlock(&queue->lock);
}

void command_queue_close(struct command_queue *queue)
{
	command_queue_wake_all(queue, true);
}

uint64_t command_queue_head(struct command_queue *queue)
{
	/* relaxed: the consumer's own; to others a statistic. */
	return atomic_load_explicit(&queue->head, memory_order_relaxed);
}

size_t command_queue_count(struct command_queue *queue)
{
	uint64_t head = command_queue_head(queue);

	return (size_t)(command_queue_tail(queue) - head);
}

size_t command_queue_peek(struct command_queue *queue, size_t most)
{
	uint64_t head = command_queue_head(queue);
	size_t count = 0;

	for (; count < most; count++) {
		uint64_t position = head + count;
		struct command_cell *cell = command_queue_cell(queue, position);

		/* acquire: sees the command and *timer; pairs with the release in
		 * command_queue_publish(). */
		if (atomic_load_explicit(&cell->turn, memory_order_acquire) != position + 1)
			break;
	}
	return count;
}

void command_queue_pop(struct command_queue *queue, size_t count)
{
	uint64_t head = command_queue_head(queue) + count;
	uint64_t popped = head - queue->woken_at;

	/* seq_cst: gives the cells back, then looks for the announcement; pairs with the loads in
	 * command_queue_has_room() and the announcement in command_queue_wait(). */
	atomic_store_explicit(&queue->head, head, memory_order_seq_cst);
	if (atomic_load_explicit(&queue->waiting, memory_order_seq_cst) == 0 ||
	    (popped < queue->capacity / 2 && popped < COMMANDS_A_WAKE))
		return;
	queue->woken_at = head;
	command_queue_wake_all(queue, false);
}

size_t command_queue_memory(struct command_queue *queue)
{
	uint64_t touched = command_queue_tail(queue);

	if (touched > queue->capacity)
		touched = queue->capacity;
	return (size_t)((touched + CELLS_A_PAGE - 1) / CELLS_A_PAGE * CELLS_A_PAGE) *
	       sizeof(*queue->cells);
}
