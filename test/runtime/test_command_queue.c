/* SPDX-License-Identifier: MIT */
/*
 * The command queue is tested alone: its memory comes with the commands, and a full one makes its
 * producers sleep, and wakes them in turn. That each command comes out once, whole and in order is
 * for the models and the proofs.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/memory.h"

#include "runtime/command_queue.h"

enum { PRODUCERS = 4 };

static void open_queue(struct command_queue *queue, size_t capacity)
{
	assert_true(command_queue_init(queue, capacity));
}

static void fill(struct command *command, uint32_t producer, uint64_t number)
{
	*command = (struct command){.hash = producer, .time = (tw_duration)number};
}

/* Waits for room if necessary. Returns false if the queue has been closed. */
static bool push_in_turn(struct command_queue *queue, uint32_t producer, uint64_t number)
{
	uint64_t position;
	struct command_cell *cell = command_queue_wait(queue, &position);

	if (!cell)
		return false;
	fill(&cell->command, producer, number);
	command_queue_publish(cell, position);
	return true;
}

static bool push(struct command_queue *queue, uint32_t producer, uint64_t number)
{
	uint64_t position;
	struct command_cell *cell = command_queue_claim(queue, &position);

	if (!cell)
		return false;
	fill(&cell->command, producer, number);
	command_queue_publish(cell, position);
	return true;
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t ring_size(const struct command_queue *queue)
{
	return queue->capacity * sizeof(*queue->cells);
}

static size_t queue_resident_pages(struct command_queue *queue)
{
	return resident_pages(queue->cells, ring_size(queue));
}

TEST(once, ring_is_touched_as_far_as_commands_have_come)
{
	const size_t cells_a_page = page_size() / sizeof(struct command_cell);
	struct command_queue queue;

	open_queue(&queue, 8192);
	assert_int_equal(queue_resident_pages(&queue), 0);
	for (uint64_t number = 0; number < 8192; number++) {
		assert_true(push(&queue, 0, number));
		if (number % 1000 == 0)
			assert_int_equal(queue_resident_pages(&queue), number / cells_a_page + 1);
	}
	command_queue_destroy(&queue);
}

TEST(once, ring_has_as_much_memory_as_it_says)
{
	struct random random = random_from(seed_choose(), 1);
	struct command_queue queue;

	open_queue(&queue, 8192);
	for (uint64_t number = 0; number < 20000;) {
		assert_int_equal(command_queue_memory(&queue),
				 queue_resident_pages(&queue) * page_size());
		for (uint64_t end = number + random_below(&random, 500); number < end; number++) {
			assert_true(push(&queue, 3, number));
			command_queue_pop(&queue, 1);
		}
	}
	assert_int_equal(command_queue_memory(&queue), ring_size(&queue));
	command_queue_destroy(&queue);
}

struct waiter {
	struct command_queue *queue;
	struct blocked_call call;
	bool answer;
};

static void wait_for_room(void *argument)
{
	struct waiter *waiter = argument;

	waiter->answer = push_in_turn(waiter->queue, 0, 0);
}

/* The waiter has announced itself before it sleeps. */
static void waiter_start(struct waiter *waiter, struct command_queue *queue)
{
	unsigned waiting = atomic_load(&queue->waiting);

	waiter->queue = queue;
	blocked_call_start(&waiter->call, wait_for_room, waiter);
	WAIT_UNTIL(atomic_load(&queue->waiting) == waiting + 1);
	blocked_call_falls_asleep(&waiter->call);
}

static bool waiter_end(struct waiter *waiter)
{
	blocked_call_end(&waiter->call);
	return waiter->answer;
}

static void fill_up(struct command_queue *queue)
{
	while (push(queue, 0, 0))
		continue;
}

static void open_full(struct command_queue *queue, size_t capacity)
{
	open_queue(queue, capacity);
	fill_up(queue);
}

/* Opens a full queue with one producer that waits for room. */
static void open_with_waiter(struct command_queue *queue, size_t capacity, struct waiter *waiter)
{
	open_full(queue, capacity);
	waiter_start(waiter, queue);
}

/* The pops need not reach half of the ring. */
TEST(once, waiting_producer_of_a_large_ring_is_woken_by_4096_pops)
{
	enum { POPS = 4096 };
	struct command_queue queue;
	struct waiter waiter;

	open_with_waiter(&queue, 4 * POPS, &waiter);
	command_queue_pop(&queue, POPS - 1);
	assert_int_equal(atomic_load(&queue.waiting), 1);
	command_queue_pop(&queue, 1);
	assert_true(waiter_end(&waiter));
	assert_int_equal(command_queue_count(&queue), 3 * POPS + 1);
	command_queue_destroy(&queue);
}

TEST(once, producers_that_wait_go_in_the_order_in_which_they_came)
{
	struct waiter waiters[PRODUCERS];
	struct command_queue queue;

	open_full(&queue, 2);
	for (int i = 0; i < PRODUCERS; i++)
		waiter_start(&waiters[i], &queue);
	for (int i = 0; i < PRODUCERS; i++) {
		command_queue_pop(&queue, 1);
		assert_true(waiter_end(&waiters[i]));
		for (int later = i + 1; later < PRODUCERS; later++)
			assert_false(blocked_call_has_returned(&waiters[later].call));
		assert_int_equal(command_queue_count(&queue), 2);
	}
	command_queue_destroy(&queue);
}

TEST(once, room_is_kept_for_a_producer_that_waits)
{
	struct command_queue queue;
	struct waiter waiter;

	open_with_waiter(&queue, 8, &waiter);
	command_queue_pop(&queue, 1);
	assert_false(push(&queue, 0, 0));
	command_queue_pop(&queue, 1);
	assert_true(push(&queue, 0, 0));
	assert_false(push(&queue, 0, 0));
	command_queue_pop(&queue, 2);
	assert_true(waiter_end(&waiter));
	assert_true(push(&queue, 0, 0));
	assert_true(push(&queue, 0, 0));
	command_queue_destroy(&queue);
}

TEST(once, waiting_producer_is_woken_though_others_keep_the_queue_full)
{
	struct command_queue queue;
	struct waiter waiter;

	open_with_waiter(&queue, 64, &waiter);
	for (int i = 0; i < 64; i++) {
		command_queue_pop(&queue, 1);
		fill_up(&queue);
	}
	assert_true(waiter_end(&waiter));
	command_queue_destroy(&queue);
}

TEST(once, closed_queue_is_not_opened_by_a_wake)
{
	struct command_queue queue;

	open_full(&queue, 4);
	command_queue_close(&queue);
	/* A producer seems about to wait: the pop wakes it. */
	atomic_fetch_add(&queue.waiting, 1);
	command_queue_pop(&queue, 4);
	atomic_fetch_sub(&queue.waiting, 1);
	assert_false(push_in_turn(&queue, 0, 0));
	command_queue_destroy(&queue);
}
