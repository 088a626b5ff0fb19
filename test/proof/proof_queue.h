/* SPDX-License-Identifier: MIT */
/*
 * This is the queue of a harness, with its producers' marks in the commands, and its one consumer.
 * It is included after runtime/command_queue.c.
 */
#ifndef PROOF_QUEUE_H
#define PROOF_QUEUE_H

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef EACH
#define EACH 2
#endif
#ifndef EXTRA
#define EXTRA 0 /* further commands of producer 0 */
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif

#ifndef LOOKS
#define LOOKS 2 /* while the producers run */
#endif
#ifndef MOST
#define MOST CAPACITY /* taken at once */
#endif

enum { ALL_GIVEN = PRODUCERS * EACH + EXTRA };
enum { GIVEN_MOST = 8 };

struct producer {
	int number;
	int given; /* the producer's */
	int taken; /* the consumer's */
	/* Its commands point at these: written before the publication, read by the consumer. */
	long pointed[GIVEN_MOST];
	/* These are its commands' positions, for harnesses that ask. */
	uint64_t positions[GIVEN_MOST];
};

static struct producer producers[PRODUCERS + 1];
static pthread_t threads[PRODUCERS];
static struct command_queue queue;
static struct command_cell cells[CAPACITY];

/* Does what command_queue_init() does, whose assignment of a whole struct is a memcpy, which GenMC
 * refuses. */
static inline void queue_open(uint64_t capacity)
{
	queue.cells = cells;
	queue.capacity = capacity;
	pthread_mutex_init(&queue.lock, NULL);
	pthread_cond_init(&queue.room, NULL);
}

static inline int producer_gives(const struct producer *producer)
{
	return EACH + (producer->number == 0 ? EXTRA : 0);
}

static inline void producer_fill(struct producer *producer, struct command_cell *cell)
{
	producer->pointed[producer->given] = 100 + producer->given;
	cell->command.time = (tw_duration)(producer->number * GIVEN_MOST + producer->given);
	cell->command.timer = (struct keyed_timer *)&producer->pointed[producer->given];
	producer->given++;
}

/* Fills the ring with one more producer, before any thread begins. */
static inline void queue_fill(void)
{
	producers[PRODUCERS].number = PRODUCERS;
	for (int i = 0; i < CAPACITY; i++) {
		uint64_t position;
		struct command_cell *cell = command_queue_claim(&queue, &position);

		producer_fill(&producers[PRODUCERS], cell);
		command_queue_publish(cell, position);
	}
}

/* Waits, as the consumer, for the next command. This orders nothing: consumer_take() looks
 * itself. */
static inline void consumer_await(void)
{
	uint64_t head = command_queue_head(&queue);

	/* relaxed: see above. */
	while (atomic_load_explicit(&command_queue_cell(&queue, head)->turn,
				    memory_order_relaxed) != head + 1)
		continue;
}

/* Takes up to `most` commands as the consumer; returns their number. */
static inline size_t consumer_take(size_t most)
{
	size_t count = command_queue_peek(&queue, most);

	for (size_t i = 0; i < count; i++) {
		const struct command *command = command_queue_at(&queue, i);
		int number = (int)(command->time / GIVEN_MOST);
		int index = (int)(command->time % GIVEN_MOST);
		struct producer *producer = &producers[number];

		assert(producer->taken == index);
		assert(*(const long *)command->timer == 100 + index);
		producer->taken++;
	}
	if (count > 0)
		command_queue_pop(&queue, count);
	return count;
}

/* Checks that all given commands were taken. The producers have ended. */
static inline void consumer_check_all(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		assert(producers[i].taken == producers[i].given);
}

static inline void producers_start(void *(*run)(void *))
{
	for (int i = 0; i < PRODUCERS; i++) {
		producers[i].number = i;
		pthread_create(&threads[i], NULL, run, &producers[i]);
	}
}

static inline void producers_join(void)
{
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
}

#endif
