/* SPDX-License-Identifier: MIT */
/*
 * Door 1: commands from any thread to the owner. Bounded, lock-free, many producers, one consumer.
 *
 * Producer: command_queue_claim(), fill the cell's command, command_queue_publish().
 * Consumer: command_queue_peek(), command_queue_at() for each, command_queue_pop().
 */
#ifndef COMMAND_QUEUE_H
#define COMMAND_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "base/clock.h"
#include "base/event_count.h"
#include "base/slab.h"

struct alarm;
struct drain;
struct keyed_timer;
struct question;
struct walk;

enum command_kind {
	COMMAND_SET,
	COMMAND_MOVE,
	COMMAND_MOVE_NOW, /* the delay was under one interval */
	COMMAND_REMOVE,
	COMMAND_SET_HANDLE,
	/* Those from here on are applied one by one, after all changes that came before. */
	COMMAND_ASK,
	COMMAND_DRAIN,
	COMMAND_IDLE /* its maker waits until what is due is done */
};

enum { COMMAND_KEY_INLINE = 24 };

/* 56 bytes. */
struct command {
	uint32_t hash; /* the key's; 0 if there is no key */
	uint16_t key_size;
	uint8_t kind;     /* enum command_kind */
	tw_duration time; /* set and move by key: the deadline */
	void *value;      /* set */
	/*
	 * A key too long for the cell travels in a timer. With a shorter one a set brings memory
	 * for its timer that no thread has touched yet.
	 */
	union {
		struct keyed_timer *timer; /* move and remove: or NULL */
		struct alarm *alarm;       /* set handle */
		struct question *question; /* ask */
		struct drain *drain;       /* drain */
	};
	unsigned char key[COMMAND_KEY_INLINE];
};

struct command_cell {
	/* The position it was published at, plus one. Alone decides whether the command may be
	 * read. */
	_Alignas(CACHE_LINE) _Atomic uint64_t turn;
	struct command command;
};

struct command_queue {
	/* Constant after init. */
	struct command_cell *cells;
	uint64_t capacity; /* a power of two */
	/* Any producer. */
	_Alignas(CACHE_LINE) _Atomic uint64_t tail; /* next position to claim */
	_Atomic uint64_t head_seen;                 /* a recent head; on the producers' line */
	/* Consumer writes, producers read the head now and then. */
	_Alignas(CACHE_LINE) _Atomic uint64_t head; /* next position to consume */
	uint64_t woken_at;                          /* the head when waiting producers were woken */
	/* Producers that wait for room; written under the lock, `waiting` read by any thread. */
	_Alignas(CACHE_LINE) _Atomic uint64_t waiting;
	uint64_t served; /* all that have ended their wait */
	bool closed;
	pthread_mutex_t lock;
	pthread_cond_t room;
};

/* Rounds capacity up to a power of two, at least 2. Returns false if there is no memory. */
bool command_queue_init(struct command_queue *queue, size_t capacity);
void command_queue_destroy(struct command_queue *queue);

/* Producer: claims a cell and its position. Returns NULL if the queue is full. */
struct command_cell *command_queue_claim(struct command_queue *queue, uint64_t *position);
/* Claims a cell before all producers that wait, for a thread that they wait for. */
struct command_cell *command_queue_claim_first(struct command_queue *queue, uint64_t *position);
/* The cell of a position. */
static inline struct command_cell *command_queue_cell(struct command_queue *queue,
						      uint64_t position)
{
	return &queue->cells[position & (queue->capacity - 1)];
}
/* Producer: after it has filled the cell's command. */
void command_queue_publish(struct command_cell *cell, uint64_t position);
/*
 * Producer: claims a cell once there is room for it and for all that have waited longer, and sleeps
 * until then. Returns NULL if the queue has been closed.
 */
struct command_cell *command_queue_wait(struct command_queue *queue, uint64_t *position);
/* Any thread: from now on no thread waits for room. */
void command_queue_close(struct command_queue *queue);

/* Any thread: the position that the next command will get. */
static inline uint64_t command_queue_tail(const struct command_queue *queue)
{
	/* seq_cst: the second look of an owner that goes to sleep; pairs with the exchange in
	 * command_queue_claim_behind(). */
	return atomic_load_explicit(&queue->tail, memory_order_seq_cst);
}
/* Any thread; exact for the consumer. */
uint64_t command_queue_head(struct command_queue *queue);
/* Any thread: commands claimed and not yet consumed. */
size_t command_queue_count(struct command_queue *queue);

/* Consumer: how many commands, up to `most`, can be read from the head on. */
size_t command_queue_peek(struct command_queue *queue, size_t most);
/* Consumer: the command `offset` behind the head; offset < what peek returned. */
static inline struct command *command_queue_at(struct command_queue *queue, size_t offset)
{
	/* relaxed: only the consumer writes it. */
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

	return &command_queue_cell(queue, head + offset)->command;
}
/* Consumer: the cell at the head, behind which up to *row cells lie side by side. */
static inline struct command_cell *command_queue_first(struct command_queue *queue, size_t *row)
{
	/* relaxed: only the consumer writes it. */
	uint64_t first =
		atomic_load_explicit(&queue->head, memory_order_relaxed) & (queue->capacity - 1);

	*row = (size_t)(queue->capacity - first);
	return &queue->cells[first];
}
/* Consumer: gives the first `count` cells back to the producers. */
void command_queue_pop(struct command_queue *queue, size_t count);
/* Any thread: bytes of memory that commands have touched. They stay until the end. */
size_t command_queue_memory(struct command_queue *queue);

/* ---- Questions ---- */

enum question_kind {
	/* The first two are answered after a stop, too. */
	QUESTION_FLUSH,    /* whether all before it is applied */
	QUESTION_TAKE_OUT, /* an alarm that is being destroyed */
	QUESTION_CONTAINS,
	QUESTION_TAKE,
	QUESTION_WALK,
	QUESTION_ADD,
	QUESTION_ADVANCE /* answered when it has ended */
};

/*
 * A question is a command whose maker waits for the answer: it lies on the maker's stack, and is
 * the owner's from its publication, or its service in the maker's own thread, until the answer.
 */
struct question {
	enum question_kind kind;
	union {
		struct {
			const void *bytes;
			size_t size;
			uint32_t hash;
		} key;                     /* contains, take */
		struct keyed_timer *timer; /* add: becomes the owner's on TW_OK */
		struct walk *walk;         /* walk: the owner's for a step */
		struct alarm *alarm;       /* take out */
		tw_duration time;          /* advance: by how much; once it is applied, its end */
	};
	/* The answer. */
	union {
		tw_duration deadline; /* contains */
		void *value;          /* take */
	};
	enum tw_status status;
	_Atomic uint64_t answers; /* 1 once it is answered */
};

/* Owner: from here on the question is its maker's. */
static inline void question_answer(struct question *question, enum tw_status status,
				   struct waiting *waiting)
{
	question->status = status;
	/* seq_cst: publishes the answer, before waiting_tell(); pairs with moment_has_come(). */
	atomic_store_explicit(&question->answers, 1, memory_order_seq_cst);
	waiting_tell(waiting);
}

/* What a caller waits for has come once the count, which only rises, is above the number. */
struct moment {
	const _Atomic uint64_t *count;
	uint64_t number;
};

static inline bool moment_has_come(const struct moment *moment)
{
	/* seq_cst: after waiting_begin(); sees what came before; pairs with the stores in
	 * question_answer() and owner_end_idle(). */
	return atomic_load_explicit(moment->count, memory_order_seq_cst) > moment->number;
}

#endif
