/* SPDX-License-Identifier: MIT */
/*
 * Which threads read without a lock, and when what was unlinked may be freed. A reader is inside an
 * epoch from reader_enter to reader_leave; what was unlinked and stamped in an epoch is out of
 * every reader's sight two epochs later.
 */
#ifndef CACHE_EPOCH_H
#define CACHE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"

struct flight;

/* The counts of one thread; summed by tw_cache_get_stats(). */
enum reader_count {
	COUNT_HITS,
	COUNT_MISSES,
	COUNT_ABSENT,
	COUNT_LOADS,
	COUNT_LOAD_ERRORS,
	COUNT_LOAD_WAITS,
	COUNT_WAIT_TIMEOUTS,
	READER_COUNTS
};

/* A thread's part of one cache; alone on its cache lines. More may follow it (stash.h). */
struct reader {
	/* Written by its thread, read before what was unlinked is freed. 0: outside. */
	_Alignas(128) _Atomic uint64_t epoch;
	/* Written by its thread. */
	_Atomic uint64_t counts[READER_COUNTS];
	uint64_t random;    /* 0: not begun (change.c) */
	unsigned callbacks; /* listeners and loaders of this cache that the thread is inside of */
	/* Under the lock of the waits (flight.c). */
	const struct flight *waits_for;
	/* Constant once it is in the list. */
	struct reader *next;
	/* Under the lock of the threads (epoch.c). */
	bool is_taken;
};

struct epochs {
	uint64_t id; /* of no other in this process; constant */
	_Atomic uint64_t current;
	_Atomic(struct reader *) readers; /* grows only */
	atomic_uint reader_count;         /* likewise */
	size_t reader_size;               /* constant */
	struct epochs *next;              /* under the lock of the threads */
};

/* The epochs that this thread used last. */
struct reader_memo {
	uint64_t id;
	struct reader *reader;
};

extern _Thread_local struct reader_memo reader_memo __attribute__((tls_model("initial-exec")));

/* Its readers are the first part of so many bytes, zeroed. False: the system has no thread-specific
 * data left, or no memory for a handler of forks. */
bool epochs_init(struct epochs *epochs, size_t reader_size);
/* No thread is inside or comes again. */
void epochs_destroy(struct epochs *epochs);
struct reader *epochs_find_reader(struct epochs *epochs);
/* Goes on to the next epoch; false: a reader is behind. */
bool epochs_advance(struct epochs *epochs);

/* How many readers one look at all of them meets. */
static inline unsigned epochs_readers(struct epochs *epochs)
{
	/* relaxed: what a look costs is no matter of exactness. */
	return atomic_load_explicit(&epochs->reader_count, memory_order_relaxed);
}

/* The readers so far, whole, linked by next. */
static inline struct reader *epochs_first_reader(struct epochs *epochs)
{
	/* seq_cst: pairs with epochs_take_reader(); see also cache_run_upkeep(). */
	return atomic_load_explicit(&epochs->readers, memory_order_seq_cst);
}

/* The calling thread's; NULL: out of memory. */
static inline struct reader *epochs_reader(struct epochs *epochs)
{
	return __builtin_expect(reader_memo.id == epochs->id, 1) ? reader_memo.reader
								 : epochs_find_reader(epochs);
}

static inline void reader_enter(struct reader *reader, struct epochs *epochs)
{
	/* seq_cst: before the slots, so that what was stamped before this epoch began is not met,
	 * whichever thread began it (an acquire would not order that one's look at the readers);
	 * pairs with the exchange in epochs_advance(). An older epoch only delays the freeing. */
	uint64_t current = atomic_load_explicit(&epochs->current, memory_order_seq_cst);

	/* seq_cst: before this reader loads a table or a slot; pairs with the scan in
	 * epochs_advance(), which comes after the slot was cleared. */
	atomic_store_explicit(&reader->epoch, current, memory_order_seq_cst);
}

static inline void reader_leave(struct reader *reader)
{
	/* release: all that it read, it has read; pairs with the scan in epochs_advance(). */
	atomic_store_explicit(&reader->epoch, 0, memory_order_release);
}

/* After limbo_fence(): what was unlinked before may be freed when stamp_is_over(). */
static inline uint64_t epochs_stamp(struct epochs *epochs)
{
	/* seq_cst: not before the unlinking, or the fence after it; pairs with reader_enter(). */
	return atomic_load_explicit(&epochs->current, memory_order_seq_cst);
}

static inline uint64_t epochs_current(struct epochs *epochs)
{
	/* acquire: the readers of two epochs ago are done; pairs with the exchange in
	 * epochs_advance(). */
	return atomic_load_explicit(&epochs->current, memory_order_acquire);
}

static inline bool stamp_is_over(uint64_t stamp, uint64_t current)
{
	return current >= stamp + 2;
}

static inline void reader_count(struct reader *reader, enum reader_count count, uint64_t more)
{
	counter_add(&reader->counts[count], more);
}

#endif
