/* SPDX-License-Identifier: MIT */
/*
 * Epochs know which threads read without a lock, and what they may be looking at. Time goes by
 * eras. A reader is inside from reader_enter to reader_leave, with the era that it found. It can't
 * be looking at what was made after that era, or was out of the tables before it (retire.h).
 */
#ifndef CACHE_EPOCH_H
#define CACHE_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/own_lock.h"

struct arena;
struct reader_block;

/* READER_BYTES are a reader and what follows it (retire.h): an odd multiple of 128, so that the
 * first lines of many readers lie in many sets of a processor's cache. */
#ifndef READER_BYTES
#define READER_BYTES 1152
#define BLOCK_READERS 7
#endif

/* A thread has these counts, which tw_cache_get_stats() sums up. */
enum reader_count {
	COUNT_HITS,
	COUNT_MISSES,
	COUNT_ABSENT,
	COUNT_LOADS,
	COUNT_REFRESHES,
	COUNT_LOAD_ERRORS,
	COUNT_LOAD_WAITS,
	COUNT_WAIT_TIMEOUTS,
	COUNT_STALE,
	READER_COUNTS
};

/* A reader is a thread's part of one cache, alone on its lines. More may follow it (retire.h). */
struct reader {
	/* Written by its thread, read before what was unlinked is freed; 0 while it is outside. */
	_Alignas(128) _Atomic uint64_t era;
	/* Written by its thread. */
	_Atomic uint64_t counts[READER_COUNTS];
	uint64_t random;      /* 0 if not begun (change.c) */
	unsigned callbacks;   /* listeners and loaders of this cache that the thread is inside of */
	struct own_lock lock; /* held by its thread during a look; see retire.h */
	/* Constant (epoch.c). */
	struct reader_block *block;
	uint64_t bit; /* in the block's `taken` */
};

struct epochs {
	uint64_t id;   /* never used again in this process; constant */
	size_t number; /* unique among those that live; constant */
	_Atomic uint64_t era;
	_Atomic(struct reader_block *) blocks;
	atomic_uint reader_count; /* readers of live threads */
	struct arena *arena;      /* constant */
	/* Held by a walk of the readers, and by what frees some of them. */
	pthread_mutex_t walks_lock;
	/* Called under the lock of the threads when a thread with a reader has ended. */
	void (*on_thread_end)(struct epochs *epochs);
};

/* A reader memo has a thread's reader of the epochs with an id; reader_memo has those used last. */
struct reader_memo {
	uint64_t id;
	struct reader *reader;
};

extern _Thread_local struct reader_memo reader_memo __attribute__((tls_model("initial-exec")));

/* Opens epochs. Their readers are zeroed memory of the arena. Returns false if the system has no
 * thread-specific data left, or no memory. */
bool epochs_init(struct epochs *epochs, struct arena *arena);
/* Sets what is called when a thread with a reader has ended. After the return no thread calls what
 * was set before. With NULL nothing is called. */
void epochs_watch_threads(struct epochs *epochs, void (*on_thread_end)(struct epochs *epochs));
/* Frees the readers. No thread may be inside or come again. */
void epochs_destroy(struct epochs *epochs);
struct reader *epochs_find_reader(struct epochs *epochs);
/* Returns a reader of no thread, for use under a lock of its user's, or NULL if out of memory. */
struct reader *epochs_add_reader(struct epochs *epochs);
/* Frees the blocks of readers whose threads have all ended and left nothing but counts, which go to
 * the heir. If there is one, waits for each thread that has the lock of its reader. */
void epochs_free_ended(struct epochs *epochs, bool (*is_empty)(struct reader *reader),
		       struct reader *heir);

/* `struct eras` has the eras of readers that are inside. */
enum { ERAS_MOST = 64 };

struct eras {
	unsigned count;
	uint64_t eras[ERAS_MOST];
	/* What did not fit lies from first to last. */
	uint64_t first;
	uint64_t last;
};

/* Gathers the eras of readers inside, up to `last`. What was unlinked before an epochs_stamp()
 * before this call is hidden from all other readers. */
void epochs_gather(struct epochs *epochs, uint64_t last, struct eras *eras);
/* Returns an era from `birth` to `stamp`, or 0 if there is none. */
uint64_t eras_find(const struct eras *eras, uint64_t birth, uint64_t stamp);

/* Returns how many readers one look at all of them meets. */
static inline unsigned epochs_readers(struct epochs *epochs)
{
	/* relaxed: the cost of a look need not be exact. */
	return atomic_load_explicit(&epochs->reader_count, memory_order_relaxed);
}

/* Returns the reader after that one, or the first one after NULL, or NULL. All readers so far are
 * met, those of ended threads too. The caller holds walks_lock, or none is freed. */
struct reader *epochs_next_reader(struct epochs *epochs, struct reader *reader);

/* Returns the calling thread's reader, or NULL if out of memory. */
static inline struct reader *epochs_reader(struct epochs *epochs)
{
	return __builtin_expect(reader_memo.id == epochs->id, 1) ? reader_memo.reader
								 : epochs_find_reader(epochs);
}

/* Enters the current era and returns it. A reader that was inside must forget what it loaded. */
static inline uint64_t reader_enter(struct reader *reader, struct epochs *epochs)
{
	/* seq_cst: before the slots, so that what was stamped before this era began is not met,
	 * whichever thread began it; pairs with the fence in retire.c. An older era only delays the
	 * freeing. */
	uint64_t era = atomic_load_explicit(&epochs->era, memory_order_seq_cst);

	/* seq_cst: before this reader loads a table or a slot; pairs with epochs_gather(), which
	 * comes after the slot was cleared. */
	atomic_store_explicit(&reader->era, era, memory_order_seq_cst);
	return era;
}

static inline void reader_leave(struct reader *reader)
{
	/* release: all its reads are done; pairs with epochs_gather(). */
	atomic_store_explicit(&reader->era, 0, memory_order_release);
}

/* Returns whether what was loaded before this call, inside `era`, was made in it or before, so that
 * it may be looked at. */
static inline bool epochs_is_in(const struct epochs *epochs, uint64_t era)
{
	/* relaxed: what was loaded was loaded by acquire, and its maker had read the era before it
	 * was published, with epochs_era(): so this reads no older one. */
	return __builtin_expect(
		atomic_load_explicit(&((struct epochs *)epochs)->era, memory_order_relaxed) == era,
		1);
}

/* The guard of one lookup shows whether the era that the lookup entered has gone on. */
struct era_guard {
	const struct epochs *epochs;
	uint64_t era;
	bool is_lost; /* the lookup must enter again */
};

/* Returns whether the lookup may read what it has loaded. If not, it must enter again. */
static inline bool era_guard_holds(struct era_guard *guard)
{
	guard->is_lost = !epochs_is_in(guard->epochs, guard->era);
	return !guard->is_lost;
}

/* Returns the era for what is made now. */
static inline uint64_t epochs_era(struct epochs *epochs)
{
	/* relaxed: published with what is made; see epochs_is_in(). */
	return atomic_load_explicit(&epochs->era, memory_order_relaxed);
}

/* Returns the stamp of entries that were unlinked before the caller's last fence: readers of later
 * eras do not find them. */
static inline uint64_t epochs_stamp(struct epochs *epochs)
{
	/* seq_cst: not before the fence; pairs with reader_enter(). */
	return atomic_load_explicit(&epochs->era, memory_order_seq_cst);
}

/* Goes on from `era`, unless another thread has. */
static inline void epochs_advance(struct epochs *epochs, uint64_t era)
{
	/* seq_cst: after the stamps; pairs with reader_enter(). relaxed: else it has gone on. */
	atomic_compare_exchange_strong_explicit(&epochs->era, &era, era + 1, memory_order_seq_cst,
						memory_order_relaxed);
}

static inline void reader_count(struct reader *reader, enum reader_count count, uint64_t more)
{
	counter_add(&reader->counts[count], more);
}

#endif
