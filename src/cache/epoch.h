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

struct pool;

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
	/* The next in the list, beside the era for looks; written under the lock of the threads. */
	_Atomic(struct reader *) next;
	/* Written by its thread. */
	_Atomic uint64_t counts[READER_COUNTS];
	uint64_t random;    /* 0 if not begun (change.c) */
	unsigned callbacks; /* listeners and loaders of this cache that the thread is inside of */
	bool is_taken;      /* its thread lives; under the lock of the threads (epoch.c) */
	struct reader *next_ended; /* once it is out of the list */
};

struct epochs {
	uint64_t id;   /* never used again in this process; constant */
	size_t number; /* unique among those that live; constant */
	_Atomic uint64_t era;
	_Atomic(struct reader *) readers; /* all, also those of ended threads */
	atomic_uint reader_count;         /* readers of live threads */
	atomic_uint ended_count;          /* readers of ended threads */
	struct pool *pool;                /* constant */
	/* Held by a walk of the readers, and by what takes some out of the list and frees them. */
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

/* Opens epochs. Their readers are the first part of POOL_READER bytes of the pool, zeroed. Returns
 * false if the system has no thread-specific data left, or no memory. */
bool epochs_init(struct epochs *epochs, struct pool *pool);
/* Sets what is called when a thread with a reader has ended. After the return no thread calls what
 * was set before. With NULL nothing is called. */
void epochs_watch_threads(struct epochs *epochs, void (*on_thread_end)(struct epochs *epochs));
/* Frees the readers. No thread may be inside or come again. */
void epochs_destroy(struct epochs *epochs);
struct reader *epochs_find_reader(struct epochs *epochs);
/* Returns a reader of no thread, for use under a lock of its user's, or NULL if out of memory. */
struct reader *epochs_add_reader(struct epochs *epochs);
/* Takes the readers of ended threads out of the list and links them by next_ended. The caller holds
 * walks_lock. It frees them when no look that began before can meet them. */
struct reader *epochs_take_ended(struct epochs *epochs);
/* Puts back a reader that epochs_take_ended() took. */
void epochs_put_back(struct epochs *epochs, struct reader *reader);

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

/* Returns how many readers one look at all of them meets, beside those of ended threads. */
static inline unsigned epochs_readers(struct epochs *epochs)
{
	/* relaxed: the cost of a look need not be exact. */
	return atomic_load_explicit(&epochs->reader_count, memory_order_relaxed);
}

/* Returns how many readers epochs_take_ended() may find. */
static inline unsigned epochs_ended(struct epochs *epochs)
{
	/* relaxed: a thread that ends later has the list looked at again. */
	return atomic_load_explicit(&epochs->ended_count, memory_order_relaxed);
}

/* Returns the first of the readers so far, whole: for a look, a walk, or while none is freed. */
static inline struct reader *epochs_first_reader(struct epochs *epochs)
{
	/* seq_cst: pairs with epochs_link(); see also cache_maintain(). */
	return atomic_load_explicit(&epochs->readers, memory_order_seq_cst);
}

static inline struct reader *reader_next(const struct reader *reader)
{
	/* acquire: what it misses is done; pairs with epochs_take_ended(). */
	return atomic_load_explicit(&((struct reader *)reader)->next, memory_order_acquire);
}

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
