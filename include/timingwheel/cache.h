/* SPDX-License-Identifier: MIT */
/*
 * A bounded, expiring memory in front of a slow source, read by any thread at the speed of memory.
 *
 *     struct tw_cache *cache;
 *     const struct tw_cache_entry *entry;
 *     struct tw_cache_options options = {.name = "users", .max_entries = 100000};
 *     tw_cache_create(&cache, 10 * TW_MINUTE, &options);
 *     if (tw_cache_take(cache, id, id_size, load_user, database, TW_SECOND, &entry) == TW_OK) {
 *             show(tw_cache_entry_value(entry, &size), size);
 *             tw_cache_entry_release(entry);
 *     }
 *     tw_cache_destroy(cache);
 *
 * Every call may be made from any thread, also from a listener, a loader or a task of the wheel;
 * only tw_cache_flush is refused there, for it waits for others that may wait for that one, and
 * tw_cache_destroy must be the last one and none of those. TW_CLOSED is what a call returns that
 * began after tw_cache_stop; only tw_cache_get_stats, tw_cache_count and tw_cache_write_metrics
 * still tell. Keys are bytes, 1 to TW_KEY_SIZE_MAX long, copied. Times are on the wheel's clock
 * (tw_now), in nanoseconds.
 *
 * What the cache guarantees:
 *  - No call hands out a value at or past its deadline, however late its timer is, but for takes
 *    that say so by TW_STALE (stale_if_error); none is removed for its age before it. Lookups find
 *    out by a coarse clock, and read the precise one only near the deadline. What one call has
 *    found expired, no other finds there.
 *  - Every entry that came in leaves exactly once, with one cause, and on_remove is told of it.
 *  - Entries past their deadline, and stale_if_error, leave without any traffic, within two ticks
 *    of the wheel.
 *  - A lookup waits for nothing: not for other lookups, not for a thread that sleeps with a pinned
 *    entry, not for the removal of a million others.
 *  - A call that fails changes nothing, and leaves its values with the caller.
 *
 * A fork's child may not use a cache that it inherited; it may make its own.
 */
#ifndef TIMINGWHEEL_CACHE_H
#define TIMINGWHEEL_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_cache;
/* A key with its value; never changes once it is in a cache. */
struct tw_cache_entry;

/* Most shards of a cache. */
#define TW_CACHE_SHARDS_MAX 1024
/* Most threads for loads. */
#define TW_CACHE_LOADERS_MAX 1024
/* What an entry weighs at most: more counts as this. */
#define TW_CACHE_WEIGHT_MAX ((uint64_t)1 << 48)

/* Why an entry left the cache. One past its deadline has expired, whichever call but
 * tw_cache_destroy removes it. */
enum tw_cache_cause {
	TW_CAUSE_EXPLICIT, /* tw_cache_delete, tw_cache_clear; refresh_after: the source lost it */
	TW_CAUSE_REPLACED, /* another value was set under its key */
	TW_CAUSE_SIZE,     /* it had to make room: max_entries, max_bytes */
	TW_CAUSE_EXPIRED,  /* its deadline has passed */
	TW_CAUSE_SHUTDOWN  /* tw_cache_destroy */
};

/* How many causes there are. */
#define TW_CACHE_CAUSES 5

/* Which entry makes room when a limit is reached. Without a limit nothing is kept of the order. */
enum tw_cache_policy {
	/* The entry that was not used for the longest time. Exact in each shard, for one thread at
	 * a time; of what several threads read at once, some uses may count for nothing. */
	TW_POLICY_LRU,
	/* S3-FIFO: new keys pass through a small queue (a tenth of the entries), and only those
	 * used again there reach the main one. Better than LRU on skewed keys and against scans; a
	 * use costs two bits. */
	TW_POLICY_S3FIFO
};

/*
 * Weighs an entry for max_bytes.
 *
 * Called by the setting thread, maybe more than once and under a lock of the cache: it must be
 * quick, must not call the cache, and must return the same for the same entry.
 *
 * Returns: the weight.
 */
typedef uint64_t tw_cache_weigh_fn(void *context, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/*
 * Told of every entry that leaves, in no promised order.
 *
 * Called by a worker of the wheel's pool (where the wheel is driven, with TW_WORKERS_INLINE), one
 * call at a time for each cache, with no lock held: it may sleep, and may call the cache, but not
 * tw_cache_destroy or tw_cache_flush. The entry may be read until the call returns, and longer if
 * it is pinned with tw_cache_entry_pin. Not told of absences (negative_expire), which are no
 * values.
 */
typedef void tw_cache_remove_fn(void *context, const struct tw_cache_entry *entry,
				enum tw_cache_cause cause);

/* A load that runs, for its loader: what it leaves its value in. */
struct tw_cache_loading;

/*
 * Fetches the key's value from the source, and gives it to `loading` by tw_cache_load_copy or
 * tw_cache_load_adopt.
 *
 * Called by tw_cache_take in the calling thread, or as tw_cache_options.load by a thread of the
 * cache, with no lock held; may sleep, and may call the cache, tw_cache_take of other keys too.
 * With its return the load has ended, and `loading` is gone, unless it was kept. A loader that ends
 * its thread (pthread_exit, cancellation) counts as TW_LOAD_FAILED.
 *
 * Returns:
 *   TW_OK         the value was given; without one this counts as TW_LOAD_FAILED
 *   TW_NOT_FOUND  the source has none, which is kept for negative_expire
 *
 * Anything else is an error, which all waiting callers are told and none after them; numbers that
 * are no status are passed on too. A value given is ignored then, and freed.
 */
typedef enum tw_status tw_cache_load(void *argument, const void *key, size_t key_size,
				     struct tw_cache_loading *loading);

/* Counts since tw_cache_create, exact when no other call runs; see tw_cache_get_stats. */
struct tw_cache_stats {
	/* Each key asked for by get, get_many, acquire or take counts as one of these three. */
	uint64_t hits;
	uint64_t misses;    /* not there, or past its deadline; a take that waits for a load too */
	uint64_t absent;    /* known to be absent (negative_expire) */
	uint64_t loads;     /* loaders called, once for each key */
	uint64_t refreshes; /* of those: of values that could still be read (refresh_after) */
	uint64_t load_errors;   /* of those: gave no value, absences included */
	uint64_t load_waits;    /* takes that waited for another's load, or to be told of it */
	uint64_t wait_timeouts; /* of those: gave up, TW_TIMED_OUT */
	/* How long loads took, of those that have ended, and the sum: real time, on a manual clock
	 * too. */
	struct tw_percentiles load_time;
	tw_duration load_time_total;
	uint64_t stale;   /* takes that were given TW_STALE */
	uint64_t inserts; /* entries that came in, replacements and absences included */
	/* Entries that left, by cause; their sum and `entries` make `inserts`. */
	uint64_t removed[TW_CACHE_CAUSES];
	uint64_t notified; /* calls of on_remove that returned */
	uint64_t refused;  /* sets, and values loaded, for max_queued_removals */
	/* State at the moment. */
	uint64_t entries; /* absences and entries past their deadline included, until they leave */
	uint64_t bytes;   /* the sum of their weights */
	uint64_t queued_removals; /* wait for on_remove, or its return */
	/* Bytes of memory, of adopted values not. */
	uint64_t memory;         /* that the cache has of the system for entries and tables */
	uint64_t memory_in_use;  /* of it, by entries that are there, the tables, what is filed */
	uint64_t memory_retired; /* by what has left, but a lookup may still be looking at */
	uint64_t memory_pinned;  /* by entries that have left, but are pinned */
};

/* What a cache is made with, beside the lifetime of its entries. All zero means all defaults. */
struct tw_cache_options {
	void *context;    /* given to weigh, on_remove and on_stats */
	const char *name; /* of the own wheel's threads, cut to 8 bytes; NULL: "proc" */
	/*
	 * The wheel that wakes the cache and whose pool runs its listeners; may serve many caches
	 * and other timers. It must live longer than the cache. While it is stopped, or no thread
	 * drives it, entries past their deadline are not handed out all the same, but stay in
	 * memory until they are met. The cache has an alarm there for each shard, and a few more,
	 * which nothing else on the wheel meets. NULL: a wheel of its own, of 1 s and 300 slots,
	 * with its threads.
	 */
	struct tw_wheel *wheel;
	/* Each lifetime given is multiplied by a random number between 1 - jitter and 1 + jitter,
	 * so that what was set together does not expire together. 0: 0.05; negative: none; < 1. */
	double jitter;
	uint64_t max_entries; /* 0: no limit */
	/*
	 * Counts weights; 0: no limit. Without `weigh` an entry weighs what it takes of memory: 48
	 * bytes, the key rounded up to 8, and the value, together rounded up to the next size of a
	 * cell (by 16 to 256, then by a sixth on average, from 16 KiB on by 4 KiB), and 40 for its
	 * share of the table; an adopted value beside that its size. The memory that the cache has
	 * of the system is then 1.25 times max_bytes and 4 MiB at most, whatever sizes come and go:
	 * beside what only pins and removals that on_remove is still to be told of hold, adopted
	 * values, and sets under way.
	 */
	uint64_t max_bytes;
	tw_cache_weigh_fn *weigh;    /* NULL: as above */
	enum tw_cache_policy policy; /* which entry makes room */
	/* Sliding lifetime: an entry that is not looked up for so long expires, before its own
	 * lifetime ends; each hit starts it anew. Counts from the coarse clock's next step, a few
	 * milliseconds late at most. Without jitter. ≥ 0; 0: none. */
	tw_duration idle;
	/* How long a loader's answer that a key is absent is kept, so that other takes are told
	 * without asking the source; `idle` ends it sooner, as it does an entry. With jitter. ≥ 0;
	 * 0: not kept. */
	tw_duration negative_expire;
	tw_cache_remove_fn *on_remove; /* NULL: no function is told */
	/*
	 * While so many removals wait for on_remove, or its return, sets return TW_FULL, and what
	 * was loaded is given out and not kept: so a listener that is slower than the sets, or
	 * stuck, piles up no memory. What leaves without a set is queued all the same, and the last
	 * set below the limit may go over it by what it evicts. 0: no limit.
	 */
	uint64_t max_queued_removals;
	/*
	 * The cache's own loader, and its argument, which must live as long as the cache: for
	 * tw_cache_take_async, and takes without a loader of theirs. It is called on threads made
	 * for that, NAME-load, so many as `loaders` says (0: 2; at most TW_CACHE_LOADERS_MAX),
	 * whatever drives the wheel. NULL: there is none, and no such threads.
	 */
	tw_cache_load *load;
	void *load_context;
	unsigned loaders;
	/*
	 * A value that was set so long ago is loaded anew by the cache's own loader when it is
	 * looked up (by get, get_many, acquire, or a take of any kind): once for all these calls,
	 * which are given the old value at once until the new one is there. With jitter, the same
	 * for a key each time. A reload that brings no value leaves the old one, until its
	 * deadline, and is tried again after a 16th of the time, an 8th, and so on up to a half,
	 * and then each half; but where the source has the key no more (TW_NOT_FOUND) it leaves,
	 * with TW_CAUSE_REPLACED if that is kept (negative_expire), else TW_CAUSE_EXPLICIT. What is
	 * set or deleted meanwhile stays so. Takes 16 bytes an entry. Shorter than lifetimes, or
	 * it does nothing. ≥ 0; 0: nothing is loaded anew; else `load` must be given.
	 */
	tw_duration refresh_after;
	/* While so many of these loads wait for a thread or run, the old value is given and that is
	 * all. 0: 64. */
	unsigned max_refreshing;
	/*
	 * So long a value stays in memory after its deadline, for takes whose load fails: these are
	 * given it with TW_STALE. No other call finds it; it counts for the limits, in
	 * tw_cache_count and in what there is, and may have to make room. Not where the source has
	 * the key no more (TW_NOT_FOUND), which removes it. ≥ 0; 0: nothing stays.
	 */
	tw_duration stale_if_error;
	/* Called on the wheel's pool every stats_interval (0: a minute) with the counts; NULL:
	 * not. */
	tw_duration stats_interval;
	void (*on_stats)(void *context, const struct tw_cache_stats *stats);
	/*
	 * The table's parts with a lock each for writers: a power of two, or rounded up to
	 * one; at most TW_CACHE_SHARDS_MAX. The limits hold for the cache as a whole, the order of
	 * eviction in each shard. 0: 64, but with max_entries only as many as leave each 512
	 * entries, so that a cache with a small limit is one shard and its order exact.
	 */
	unsigned shards;
};

/*
 * Makes a cache whose entries live for `expire` (> 0, or TW_FOREVER) where nothing else is said.
 *
 * `options` may be NULL; it is copied. Costs about 5 KiB a shard, and with a wheel of its own three
 * threads. Needs no room in the given wheel's queue. Except on TW_OK *cache is NULL.
 *
 * Returns:
 *   TW_OK         *cache is the caller's, until tw_cache_destroy
 *   TW_INVALID    no cache to fill, expire ≤ 0, or an option out of range
 *   TW_NO_MEMORY  nothing was made
 *   TW_SYSTEM     a thread could not be started
 *   TW_CLOSED     the given wheel was stopped
 */
TW_API enum tw_status tw_cache_create(struct tw_cache **cache, tw_duration expire,
				      const struct tw_cache_options *options);

/*
 * Has all threads stop using the cache, so that it can be destroyed: calls that begin later return
 * TW_CLOSED, and so do takes that wait for a load.
 *
 * Calls under way end as they would have; no set of theirs comes in after the return. A load that
 * runs goes on, and its own take is given what it brings; takes that were to be told by a call are
 * told TW_CLOSED before the return. What is in the cache stays until its deadline or
 * tw_cache_destroy, and on_remove is told as before. Any thread, also from a listener, a loader or
 * a task, any number of times, beside all calls but tw_cache_destroy. Waits for no call; costs a
 * lock for each shard.
 *
 * Returns:
 *   TW_OK         this call stopped it
 *   TW_CLOSED     it was stopped before
 *   TW_INVALID    no cache
 */
TW_API enum tw_status tw_cache_stop(struct tw_cache *cache);

/*
 * Ends the cache.
 *
 * Stops it; waits until takes that waited and the loaders that run have returned; ends the loads
 * that loaders have kept; removes every entry, waits until on_remove was told of all, and frees
 * everything but the entries that are still pinned, which stay readable until they are released.
 * The cause is TW_CAUSE_SHUTDOWN for each of them, also for one past its deadline that had not left
 * yet. NULL is fine.
 *
 * Beside those takes no call on the cache may be running or follow. Not from a listener, a loader
 * or any other task of the wheel, where it could not return; from a callback of this cache it does
 * nothing. While it runs, listeners may call the cache, which returns TW_CLOSED. With
 * TW_DRIVE_CALLER it drives the wheel, as tw_flush does. If the wheel has been stopped, on_remove
 * is called by this thread.
 */
TW_API void tw_cache_destroy(struct tw_cache *cache);

/*
 * Sets the key's value, for the cache's own lifetime.
 *
 * Key and value are copied before it returns. A value may be empty (then NULL is fine). Replaces
 * the value that the key has (TW_CAUSE_REPLACED); lookups beside it find the one or the other. With
 * any status but TW_OK nothing has changed. Any thread. Costs a hash, an allocation, a copy, a lock
 * that no thread holds for long, and the precise clock; no system call unless the new deadline is
 * the earliest of its shard or entries leave that on_remove is to be told of.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_INVALID    no cache, a key that is NULL, empty or over TW_KEY_SIZE_MAX, a NULL value that is
 *                 not empty, or a value over UINT32_MAX bytes
 *   TW_FULL       it weighs more than max_bytes by itself, or max_queued_removals wait
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_set(struct tw_cache *cache, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/*
 * Sets the key's value as tw_cache_set does, with its own lifetime.
 *
 * `expire` is > 0, or TW_FOREVER, as which counts what would end 146 years after the clock began,
 * or later.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_INVALID    no cache, a bad key or value as for tw_cache_set, or expire ≤ 0
 *   TW_FULL       it weighs more than max_bytes by itself, or max_queued_removals wait
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_set_with_expire(struct tw_cache *cache, const void *key,
					       size_t key_size, const void *value,
					       size_t value_size, tw_duration expire);

/*
 * Sets the key's value as tw_cache_set_with_expire does, if the key has no value that may still be
 * read.
 *
 * An absence that is remembered (negative_expire) is no value: it gives way.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_EXISTS     it has another one, which stays
 *   TW_INVALID    no cache, a bad key or value as for tw_cache_set, or expire ≤ 0
 *   TW_FULL       it weighs more than max_bytes by itself, or max_queued_removals wait
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_add(struct tw_cache *cache, const void *key, size_t key_size,
				   const void *value, size_t value_size, tw_duration expire);

/*
 * Sets the key's value as tw_cache_set_with_expire does, if the key has a value that may still be
 * read.
 *
 * Returns:
 *   TW_OK         the key has the new value
 *   TW_NOT_FOUND  it had none
 *   TW_INVALID    no cache, a bad key or value as for tw_cache_set, or expire ≤ 0
 *   TW_FULL       it weighs more than max_bytes by itself, or max_queued_removals wait
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_replace(struct tw_cache *cache, const void *key, size_t key_size,
				       const void *value, size_t value_size, tw_duration expire);

/*
 * Sets the key's value as tw_cache_set_with_expire does, but takes the value itself, uncopied.
 *
 * On TW_OK the cache owns it, and calls free_value(value, value_size, context) exactly once, after
 * the last reader, on whatever thread finds out; it must not call the cache. free_value may be
 * NULL: the value outlives the cache and all pins. `weight` is what max_bytes counts; 0: as for
 * tw_cache_set. Any value_size; any value, NULL too. With any other status the caller still owns
 * the value.
 *
 * Returns:
 *   TW_OK         the cache owns the value
 *   TW_INVALID    no cache, a bad key, or expire ≤ 0
 *   TW_FULL       it weighs more than max_bytes by itself, or max_queued_removals wait
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_adopt(struct tw_cache *cache, const void *key, size_t key_size,
				     void *value, size_t value_size, uint64_t weight,
				     void (*free_value)(void *value, size_t value_size,
							void *context),
				     void *context, tw_duration expire);

/*
 * Copies the key's value to `buffer`, at most `capacity` bytes of it.
 *
 * *value_size (may be NULL) is its full size, 0 where there is none. Counts as a use. Any thread;
 * waits for no other (the first call of a thread allocates). Costs a hash, three cache lines, the
 * copy, and a coarse clock.
 *
 * Returns:
 *   TW_OK         the value was copied
 *   TW_TRUNCATED  it does not fit, and what fits was copied
 *   TW_NOT_FOUND  the key has none
 *   TW_INVALID    no cache, a bad key, or no buffer with a capacity
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size,
				   void *buffer, size_t capacity, size_t *value_size);

/*
 * Pins the key's entry instead of copying: it stays readable, whatever becomes of the key or the
 * cache, until tw_cache_entry_release.
 *
 * Otherwise as tw_cache_get. Except on TW_OK *entry is NULL.
 *
 * Returns:
 *   TW_OK         *entry is pinned
 *   TW_NOT_FOUND  the key has none
 *   TW_INVALID    no cache, a bad key, or nothing to fill
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_acquire(struct tw_cache *cache, const void *key, size_t key_size,
				       const struct tw_cache_entry **entry);

/*
 * Pins the key's entry as tw_cache_acquire does, but only to look: neither a hit nor a miss nor a
 * use, and with `idle` the entry's lifetime does not begin anew.
 *
 * Except on TW_OK *entry is NULL.
 *
 * Returns:
 *   TW_OK         *entry is pinned
 *   TW_NOT_FOUND  the key has none
 *   TW_INVALID    no cache, a bad key, or nothing to fill
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_peek(struct tw_cache *cache, const void *key, size_t key_size,
				    const struct tw_cache_entry **entry);

/*
 * Tells how long the key's entry may still be read, in nanoseconds.
 *
 * *remaining is > 0; TW_FOREVER: it does not expire; except on TW_OK 0. Looks as tw_cache_peek
 * does; reads the precise clock. Any thread.
 *
 * Returns:
 *   TW_OK         *remaining is filled
 *   TW_NOT_FOUND  the key has no entry
 *   TW_INVALID    no cache, a bad key, or nothing to fill
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_remaining(struct tw_cache *cache, const void *key, size_t key_size,
					 tw_duration *remaining);

/*
 * Tell the value and the key of a pinned entry, or inside a callback of the entry that was given
 * to it.
 *
 * *size (may be NULL) is the size in bytes. Any thread.
 *
 * Returns: the bytes; an empty value that was copied is not NULL.
 */
TW_API const void *tw_cache_entry_value(const struct tw_cache_entry *entry, size_t *size);
TW_API const void *tw_cache_entry_key(const struct tw_cache_entry *entry, size_t *size);

/*
 * Tells when the entry expires. With `idle` each hit moves it.
 *
 * Returns: the deadline on the wheel's clock; TW_FOREVER: never.
 */
TW_API tw_duration tw_cache_entry_deadline(const struct tw_cache_entry *entry);

/*
 * Pins the entry once more; each pin has to be released for itself.
 *
 * Returns: the entry.
 */
TW_API const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry);

/* Gives back one pin, also after tw_cache_destroy. NULL is fine. */
TW_API void tw_cache_entry_release(const struct tw_cache_entry *entry);

/*
 * Removes the key's entry (TW_CAUSE_EXPLICIT).
 *
 * A load of the key that runs will not be kept. Any thread; costs as tw_cache_set.
 *
 * Returns:
 *   TW_OK         it is removed
 *   TW_NOT_FOUND  the key had none, or one past its deadline, or a remembered absence
 *                 (negative_expire), which are gone now
 *   TW_INVALID    no cache, or a bad key
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_delete(struct tw_cache *cache, const void *key, size_t key_size);

/*
 * Removes the key's entry as tw_cache_delete does, and gives it to the caller, pinned.
 *
 * Of several threads that pop a key one has it. Neither a hit nor a miss. Except on TW_OK *entry is
 * NULL.
 *
 * Returns:
 *   TW_OK         *entry is pinned
 *   TW_NOT_FOUND  the key had none, as for tw_cache_delete
 *   TW_INVALID    no cache, a bad key, or nothing to fill
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_pop(struct tw_cache *cache, const void *key, size_t key_size,
				   const struct tw_cache_entry **entry);

/* What is to become of a key. */
enum tw_cache_verdict {
	TW_CACHE_KEEP,    /* it stays as it is */
	TW_CACHE_REPLACE, /* it gets the value that was computed */
	TW_CACHE_DELETE   /* as by tw_cache_delete */
};

/* A value that was computed; may be read until tw_cache_compute returns. */
struct tw_cache_computed {
	const void *value; /* is copied */
	size_t value_size;
	tw_duration expire; /* > 0, or TW_FOREVER; 0: the cache's own */
};

/*
 * Judges the key by its entry, and for TW_CACHE_REPLACE fills in what it shall have.
 *
 * `entry` is NULL where the key has none that may be read; `computed` is all 0 before. Called under
 * the lock of the key's shard: it must be quick, must not call the cache nor end its thread, and
 * may be called again where the entry's deadline comes at that very moment. The entry may be pinned
 * by tw_cache_entry_pin.
 *
 * Returns: what is to become of the key.
 */
typedef enum tw_cache_verdict tw_cache_compute_fn(void *context, const struct tw_cache_entry *entry,
						  struct tw_cache_computed *computed);

/*
 * Reads and changes the key in one step, between which no other call for it comes.
 *
 * A replaced value leaves with TW_CAUSE_REPLACED, a deleted one with TW_CAUSE_EXPLICIT; a load of
 * the key that runs will not be kept then. Neither a hit nor a miss. Waits for no load. With any
 * status but TW_OK nothing has changed. Any thread; costs as tw_cache_set, and `compute`.
 *
 * Returns:
 *   TW_OK         it is as `compute` said, also where that was to delete nothing
 *   TW_INVALID    no cache, a bad key, no `compute`, no such verdict, or a value or a lifetime as
 *                 tw_cache_set_with_expire would not have it
 *   TW_FULL       it weighs more than max_bytes by itself, or max_queued_removals wait
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_compute(struct tw_cache *cache, const void *key, size_t key_size,
				       tw_cache_compute_fn *compute, void *context);

/*
 * Gives the key's entry a new lifetime from now on, shorter or longer.
 *
 * A later deadline commands the wheel nothing. Neither a hit nor a miss, but a use. Any thread;
 * costs a lock as tw_cache_set.
 *
 * Returns:
 *   TW_OK         the entry has its new lifetime
 *   TW_NOT_FOUND  the key has no entry
 *   TW_INVALID    no cache, a bad key, or expire ≤ 0
 *   TW_NO_MEMORY  nothing has changed: the thread's first call allocates, and so may a deadline
 *                 that comes sooner
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_touch(struct tw_cache *cache, const void *key, size_t key_size,
				     tw_duration expire);

/*
 * Give a load its value: a copy of it, or the value itself (as tw_cache_adopt), with its lifetime.
 *
 * For the loader, or the thread that has its loading. `expire` 0: the cache's own. Given twice, the
 * last counts. Except on TW_OK an adopted value is still the caller's.
 *
 * Returns:
 *   TW_OK         the load has the value
 *   TW_INVALID    no loading, expire < 0, or a value as tw_cache_set would not have it
 *   TW_NO_MEMORY  the loader should return that
 *   TW_CLOSED     the load has ended, by tw_cache_destroy or before
 */
TW_API enum tw_status tw_cache_load_copy(struct tw_cache_loading *loading, const void *value,
					 size_t value_size, tw_duration expire);
TW_API enum tw_status tw_cache_load_adopt(struct tw_cache_loading *loading, void *value,
					  size_t value_size, uint64_t weight,
					  void (*free_value)(void *value, size_t value_size,
							     void *context),
					  void *context, tw_duration expire);

/*
 * Keeps the load beyond its loader's return: it does not end with that, and what the loader returns
 * counts for nothing.
 *
 * For the loader, before it returns. `loading` stays, also beyond tw_cache_destroy, until
 * tw_cache_load_end, which some thread has to call, exactly once: so a loader may send a request
 * and go on. Meanwhile takes of the key wait.
 *
 * Returns:
 *   TW_OK         the load is kept
 *   TW_INVALID    no loading, kept already, or ended
 */
TW_API enum tw_status tw_cache_load_keep(struct tw_cache_loading *loading);

/*
 * Ends the load, as if its loader had returned `status`; to abandon it: TW_LOAD_FAILED.
 *
 * For the loader, or once for a loading that was kept, which is gone then. Any thread, with no
 * limit of time; costs as tw_cache_set, and calls the functions of tw_cache_take_async that wait.
 *
 * Returns:
 *   TW_OK         this call ended it
 *   TW_CLOSED     it had ended, by tw_cache_destroy or in the loader
 *   TW_INVALID    no loading
 */
TW_API enum tw_status tw_cache_load_end(struct tw_cache_loading *loading, enum tw_status status);

/*
 * Gives the key's entry, pinned; if it has none, `load` is called to fetch it.
 *
 * `load` is called in this thread, once at a time for each key, however many threads take it: the
 * others wait for its end, and are told the same. NULL: the cache's own loader
 * (tw_cache_options.load), with load_context. `wait` bounds the waiting for what others load, and
 * for a load that its loader keeps; not the loader's own call in this thread. It is real time, on a
 * manual clock too; ≤ 0: not at all; TW_FOREVER: as long as it takes.
 *
 * The entry is given out even if it can't be kept: when the key was set or deleted during the load
 * (the value set meanwhile stays), when a set of it would return TW_FULL, or its lifetime is over.
 * A take that begins after such a set or delete waits for the end of that load, and then looks
 * again, or loads itself. A load that waits for a thread of the cache is not waited for: the take
 * runs its own loader. Counts as a hit, a miss or an absence, by what it found first. Except on
 * TW_OK and TW_STALE *entry is NULL.
 *
 * Returns:
 *   TW_OK           *entry is pinned
 *   TW_STALE        the load failed, or gave nothing, and *entry, pinned, is past its deadline
 *                   (stale_if_error)
 *   TW_NOT_FOUND    absent, says the loader or what is kept of its answer
 *   TW_LOAD_FAILED  the loader gave no value, or ended its thread; where the loader returned
 *                   another error, that one
 *   TW_TIMED_OUT    `wait` is over
 *   TW_INVALID      no cache, a bad key, no loader, nothing to fill, or the wait would be for
 *                   itself: from inside a load of this key, or of one that waits for this thread's
 *                   load (a circle that leads through several caches and threads, or a load that is
 *                   kept, is not seen: there `wait` is the limit)
 *   TW_NO_MEMORY    out of memory
 *   TW_CLOSED       the cache was stopped
 */
TW_API enum tw_status tw_cache_take(struct tw_cache *cache, const void *key, size_t key_size,
				    tw_cache_load *load, void *argument, tw_duration wait,
				    const struct tw_cache_entry **entry);

/* One of many keys to take. */
struct tw_cache_taking {
	const void *key;
	size_t key_size;
	const struct tw_cache_entry *entry; /* filled in: pinned, or NULL */
	enum tw_status status;              /* filled in, as tw_cache_take returns */
};

/* One of many keys to load, with a loading of its own. */
struct tw_cache_missing {
	const void *key;
	size_t key_size;
	struct tw_cache_loading *loading;
};

/*
 * Loads all these keys at once, in the order in which they were asked for, as a tw_cache_load does
 * one.
 *
 * It may end some by tw_cache_load_end, each with a status of its own, and keep some.
 *
 * Returns:
 *   TW_OK         what it gave no value for the source has not, as with TW_NOT_FOUND there
 *
 * Anything else holds for all keys whose load it has not ended.
 */
typedef enum tw_status tw_cache_load_many(void *argument, struct tw_cache_missing *missing,
					  size_t n);

/*
 * Takes each item as tw_cache_take does, with one call of `load` for all that are not there and
 * that no other thread loads.
 *
 * `load` is seldom called more than once: for keys set or deleted while others loaded them. Loads
 * of others are waited for when the own ones have ended, `wait` at most for all together. *found
 * (may be NULL) is the number of items with an entry; each has to be released. A key may stand
 * there more than once. Any thread.
 *
 * Returns:
 *   TW_OK         each item has a status of its own
 *   TW_INVALID    no cache, no items and n > 0, or no loader
 *   TW_NO_MEMORY  no item has an entry; each has this status
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_take_many(struct tw_cache *cache, struct tw_cache_taking *items,
					 size_t n, tw_cache_load_many *load, void *argument,
					 tw_duration wait, size_t *found);

/*
 * Told what a take has found, once: `status` as tw_cache_take returns, and on TW_OK and TW_STALE
 * the entry, else NULL.
 *
 * The entry may be read until the call returns, and longer if it is pinned with tw_cache_entry_pin.
 * Called with no lock held by the thread that ends the load, or stops the cache, or, where the
 * answer is known at once, in the take itself: it should be quick; may call the cache, but not
 * tw_cache_destroy or tw_cache_flush; must not end its thread.
 */
typedef void tw_cache_value_fn(void *context, enum tw_status status,
			       const struct tw_cache_entry *entry);

/*
 * Takes a key as tw_cache_take does, for threads that may not wait, as those of event loops: what
 * has to be loaded is loaded by the cache's own loader on its threads.
 *
 * These are tw_cache_options.load and loaders; one load serves all takes of the key of any kind.
 * on_value is called exactly once on TW_OK, maybe before the return, and else not at all. Any
 * thread. Costs a lookup, and what is not there an allocation for each take, of which as many wait
 * as are made: there is no limit but the caller's.
 *
 * Returns:
 *   TW_OK         on_value is called
 *   TW_INVALID    no cache, a bad key, no on_value, or the cache has no loader
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_take_async(struct tw_cache *cache, const void *key, size_t key_size,
					  tw_cache_value_fn *on_value, void *context);

/* One of many keys to get. */
struct tw_cache_lookup {
	const void *key;
	size_t key_size;
	void *buffer;
	size_t capacity;
	size_t value_size;     /* filled in, as by tw_cache_get */
	enum tw_status status; /* filled in, as tw_cache_get returns */
};

/*
 * Gets each item as tw_cache_get does, with their memory fetched side by side, which takes about
 * half the time.
 *
 * *found (may be NULL) is the number of items with TW_OK or TW_TRUNCATED.
 *
 * Returns:
 *   TW_OK         each item has a status of its own
 *   TW_INVALID    no cache, or no items and n > 0
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items,
					size_t n, size_t *found);

/* One of many keys to set. */
struct tw_cache_item {
	const void *key;
	size_t key_size;
	const void *value;
	size_t value_size;
	tw_duration expire;    /* as for tw_cache_set_with_expire; 0: the cache's own */
	enum tw_status status; /* filled in */
};

/*
 * Sets each item as tw_cache_set_with_expire does, 64 at a time: with their memory fetched side by
 * side, and one lock for those of a shard, 16 at most.
 *
 * Items of one key take effect in their order; lookups of others may see some set and some not yet.
 * *set (may be NULL) is the number of items with TW_OK. Any thread.
 *
 * Returns:
 *   TW_OK         each item has a status of its own
 *   TW_INVALID    no cache, or no items and n > 0
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates; nothing was set
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_set_many(struct tw_cache *cache, struct tw_cache_item *items,
					size_t n, size_t *set);

/* One of many keys. */
struct tw_cache_key {
	const void *key;
	size_t key_size;
	enum tw_status status; /* filled in */
};

/*
 * Deletes each key as tw_cache_delete does, in the same way as tw_cache_set_many sets items.
 *
 * *deleted (may be NULL) is the number of those with TW_OK.
 *
 * Returns:
 *   TW_OK         each key has a status of its own
 *   TW_INVALID    no cache, or no keys and n > 0
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates; nothing was deleted
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_delete_many(struct tw_cache *cache, struct tw_cache_key *keys,
					   size_t n, size_t *deleted);

/*
 * Removes every entry that was set before the call (TW_CAUSE_EXPLICIT), and keeps no load that
 * runs.
 *
 * What is set meanwhile may stay or go. Any thread; in short steps, 64 entries to a lock.
 *
 * Returns:
 *   TW_OK         they are removed
 *   TW_INVALID    no cache
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_clear(struct tw_cache *cache);

/*
 * Calls visit(context, entry) for the entries that may be read, until it returns 0.
 *
 * Each that is there from begin to end is visited exactly once, what comes and goes meanwhile at
 * most once for each value. None is past its deadline when its visit begins. Neither hits nor uses.
 * No lock is held: `visit` may call the cache, and may keep an entry by tw_cache_entry_pin. Any
 * thread; costs a list of pointers to one shard's entries, pinned before the first of them is
 * visited; in short steps.
 *
 * Returns:
 *   TW_OK         all were visited, or as many as `visit` wanted
 *   TW_INVALID    no cache or no visit
 *   TW_NO_MEMORY  not all were visited
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_each(struct tw_cache *cache,
				    int (*visit)(void *context, const struct tw_cache_entry *entry),
				    void *context);

/*
 * Gives the cache new limits.
 *
 * 0: none. On return no more is there than they allow (TW_CAUSE_SIZE), other threads' sets of this
 * moment aside. Any thread; in short steps, while others read and write (the first limit puts each
 * shard's entries in order, under its lock, about 35 ns an entry).
 *
 * Returns:
 *   TW_OK         the limits hold
 *   TW_INVALID    no cache
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_set_limit(struct tw_cache *cache, uint64_t max_entries,
					 uint64_t max_bytes);

/*
 * Fills in the cache's statistics.
 *
 * Costs a sum over the shards and the threads that used the cache. Any thread, also after
 * tw_cache_stop.
 *
 * Returns:
 *   TW_OK         *stats is filled
 *   TW_INVALID    no cache or nothing to fill
 */
TW_API enum tw_status tw_cache_get_stats(struct tw_cache *cache, struct tw_cache_stats *stats);

/*
 * Counts the entries, as tw_cache_stats.entries tells, for the cost of one load. Any thread, also
 * after tw_cache_stop.
 *
 * Returns: their number; 0: no cache.
 */
TW_API uint64_t tw_cache_count(const struct tw_cache *cache);

/*
 * Writes the counts of tw_cache_get_stats as text for Prometheus (its format 0.0.4), line by line.
 *
 * Times are in seconds, and each name begins with `prefix` and "_"; NULL: "tw_cache". `write` is
 * called with `context` and whole lines, in this thread, with no lock held. Any thread, also after
 * tw_cache_stop; costs as tw_cache_get_stats.
 *
 * Returns:
 *   TW_OK         it is written
 *   TW_INVALID    no cache, no `write`, a prefix that no name may begin with, or of more than
 *                 TW_METRICS_PREFIX_MAX bytes
 */
TW_API enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write,
					     void *context, const char *prefix);

/*
 * Removes what was past its deadline (and stale_if_error) at the wheel's last tick, waits until
 * on_remove was told of every removal before the call, and frees what no thread reads any more.
 *
 * What has passed its deadline since that tick may stay up to a tick longer (no call hands it out).
 * With TW_DRIVE_CALLER it drives the wheel, as tw_flush.
 *
 * Returns:
 *   TW_OK         done
 *   TW_INVALID    no cache, or called from a task of the wheel (on_remove and on_stats are such) or
 *                 from a loader of this cache, where it does nothing
 *   TW_CLOSED     the cache was stopped, or the wheel, so that on_remove is not told of all before
 *                 tw_cache_destroy
 */
TW_API enum tw_status tw_cache_flush(struct tw_cache *cache);

#ifdef __cplusplus
}
#endif

#endif
