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
 * only tw_cache_flush is refused there, for it waits for others who may wait for that one, and
 * tw_cache_destroy must be the last one and none of those. TW_CLOSED is what a call answers that
 * began after tw_cache_stop; tw_cache_get_stats alone still tells. Keys are bytes, 1 to
 * TW_KEY_SIZE_MAX long, copied. Times are on the wheel's clock (tw_now), in nanoseconds.
 *
 * What the cache guarantees:
 *  - No call hands out a value at or past its deadline, however late its timer is; none is removed
 *    for its age before it. Lookups find out by a coarse clock, and read the precise one only near
 *    the deadline. What one call has found expired, no other finds there.
 *  - Every entry that came in leaves exactly once, with one cause, and on_remove is told of it.
 *  - Entries past their deadline leave without any traffic, within two ticks of the wheel.
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
/* What an entry weighs at most: more counts as this. */
#define TW_CACHE_WEIGHT_MAX ((uint64_t)1 << 48)

/* Why an entry left the cache. One past its deadline has expired, whichever call but
 * tw_cache_destroy removes it. */
enum tw_cache_cause {
	TW_CAUSE_EXPLICIT, /* tw_cache_delete, tw_cache_clear */
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
 * The weight of an entry, which max_bytes counts. Called by the setting thread, maybe more than
 * once and under a lock of the cache: it must be quick, must not call the cache, and must answer
 * the same for the same entry.
 */
typedef uint64_t tw_cache_weigh_fn(void *context, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/*
 * Told of every entry that leaves, in no promised order. Called by a worker of the wheel's pool
 * (where the wheel is driven, with TW_WORKERS_INLINE), one call at a time for each cache, with no
 * lock held: it may sleep, and may call the cache, but not tw_cache_destroy or tw_cache_flush. The
 * entry may be read until the call returns, and longer if it is pinned with tw_cache_entry_pin. Not
 * told of absences (negative_expire), which are nobody's values.
 */
typedef void tw_cache_remove_fn(void *context, const struct tw_cache_entry *entry,
				enum tw_cache_cause cause);

/* Counts since tw_cache_create, exact when no other call runs; see tw_cache_get_stats. */
struct tw_cache_stats {
	/* Each key asked for by get, get_many, acquire or take counts as one of these three. */
	uint64_t hits;
	uint64_t misses; /* not there, or past its deadline; a take that waits for a load too */
	uint64_t absent; /* known to be absent (negative_expire) */
	uint64_t loads;  /* loaders called */
	uint64_t load_errors;   /* of those: gave no value, absences included */
	uint64_t load_waits;    /* takes that waited for another's load */
	uint64_t wait_timeouts; /* of those: gave up, TW_TIMED_OUT */
	uint64_t inserts;       /* entries that came in, replacements and absences included */
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

/* All zero means all defaults. */
struct tw_cache_options {
	void *context;    /* given to weigh, on_remove and on_stats */
	const char *name; /* of the own wheel's threads, cut to 8 bytes; NULL: "proc" */
	/*
	 * The wheel that wakes the cache and whose pool runs its listeners; may serve many caches
	 * and other timers. It must live longer than the cache. While it is stopped, or nobody
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
	tw_cache_weigh_fn *weigh; /* NULL: as above */
	enum tw_cache_policy policy;
	/* Sliding lifetime: an entry that is not looked up for so long expires, before its own
	 * lifetime ends; each hit starts it anew. Counts from the coarse clock's next step, a few
	 * milliseconds late at most. Without jitter. ≥ 0; 0: none. */
	tw_duration idle;
	/* How long the answer of a loader that a key is absent is kept, so that other takes are
	 * told without asking the source. With jitter. ≥ 0; 0: not kept. */
	tw_duration negative_expire;
	tw_cache_remove_fn *on_remove; /* NULL: nobody is told */
	/*
	 * While so many removals wait for on_remove, or its return, sets answer TW_FULL, and what
	 * was loaded is given out and not kept: so a listener that is slower than the sets, or
	 * stuck, piles up no memory. What leaves without a set is queued all the same, and the last
	 * set below the limit may go over it by what it evicts. 0: no limit.
	 */
	uint64_t max_queued_removals;
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
 * `options` may be NULL; it is copied. Costs about 5 KiB a shard, and with a wheel of its own three
 * threads. TW_OK; TW_INVALID: no cache to fill, expire ≤ 0, an option out of range; TW_NO_MEMORY;
 * TW_SYSTEM: a thread could not be started; TW_CLOSED: the given wheel was stopped. Never TW_FULL:
 * it needs no room in the given wheel's queue. On failure *cache is NULL.
 */
TW_API enum tw_status tw_cache_create(struct tw_cache **cache, tw_duration expire,
				      const struct tw_cache_options *options);

/*
 * Has all threads stop using the cache, so that it can be destroyed: calls that begin later answer
 * TW_CLOSED, and so do takes that wait for a load. Calls under way end as they would have; no set
 * of theirs comes in after the return. A load that runs goes on, and its own take is given what it
 * brings. What is in the cache stays until its deadline or tw_cache_destroy, and on_remove is told
 * as before. Any thread, also from a listener, a loader or a task, any number of times, beside all
 * calls but tw_cache_destroy. Waits for no call; costs a lock for each shard. TW_OK; TW_CLOSED: it
 * was stopped before; TW_INVALID: no cache.
 */
TW_API enum tw_status tw_cache_stop(struct tw_cache *cache);

/*
 * Ends the cache: stops it; waits until takes that waited and the loads that run have returned;
 * removes every entry, waits until on_remove was told of all, and frees everything but the entries
 * that are still pinned, which stay readable until they are released. The cause is
 * TW_CAUSE_SHUTDOWN for each of them, also for one past its deadline that had not left yet. NULL is
 * fine. Beside those takes no call on the cache may be running or follow. Not from a listener, a
 * loader or any other task of the wheel, where it could not return; from a callback of this cache
 * it does nothing. While it runs, listeners may call the cache, which answers TW_CLOSED. With
 * TW_DRIVE_CALLER it drives the wheel, as tw_flush does. If the wheel has been stopped, on_remove
 * is called by this thread.
 */
TW_API void tw_cache_destroy(struct tw_cache *cache);

/*
 * Sets the key's value, for the cache's own lifetime; key and value are copied before it returns. A
 * value may be empty (then NULL is fine). Replaces the value that the key has (TW_CAUSE_REPLACED);
 * lookups beside it find the one or the other. Any thread. Costs a hash, an allocation, a copy, a
 * lock that nobody holds for long, and the precise clock; no system call unless the new deadline is
 * the earliest of its shard or entries leave that somebody is to be told of. TW_OK; TW_INVALID: no
 * cache, a key that is NULL, empty or over TW_KEY_SIZE_MAX, a NULL value that is not empty, a value
 * over UINT32_MAX bytes; TW_FULL: it weighs more than max_bytes by itself, or max_queued_removals
 * wait; TW_NO_MEMORY; TW_CLOSED. On failure nothing has changed.
 */
TW_API enum tw_status tw_cache_set(struct tw_cache *cache, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/* As tw_cache_set, with its own lifetime: > 0, or TW_FOREVER, as which counts what would end 146
 * years after the clock began, or later; ≤ 0: TW_INVALID. */
TW_API enum tw_status tw_cache_set_with_expire(struct tw_cache *cache, const void *key,
					       size_t key_size, const void *value,
					       size_t value_size, tw_duration expire);

/* As tw_cache_set_with_expire, if the key has no value that may still be read; else TW_EXISTS. */
TW_API enum tw_status tw_cache_add(struct tw_cache *cache, const void *key, size_t key_size,
				   const void *value, size_t value_size, tw_duration expire);

/* As tw_cache_set_with_expire, if the key has a value that may still be read; else TW_NOT_FOUND. */
TW_API enum tw_status tw_cache_replace(struct tw_cache *cache, const void *key, size_t key_size,
				       const void *value, size_t value_size, tw_duration expire);

/*
 * As tw_cache_set_with_expire, but takes the value itself, uncopied: on TW_OK the cache owns it,
 * and calls free_value(value, value_size, context) exactly once, after the last reader, on whatever
 * thread finds out; it must not call the cache. free_value may be NULL: the value outlives the
 * cache and all pins. `weight` is what max_bytes counts; 0: as for tw_cache_set. Any value_size;
 * any value, NULL too. On any other status the caller still owns the value.
 */
TW_API enum tw_status tw_cache_adopt(struct tw_cache *cache, const void *key, size_t key_size,
				     void *value, size_t value_size, uint64_t weight,
				     void (*free_value)(void *value, size_t value_size,
							void *context),
				     void *context, tw_duration expire);

/*
 * Copies the key's value to `buffer`, at most `capacity` bytes of it; *value_size (may be NULL) is
 * its full size, 0 where there is none. Counts as a use. Any thread; waits for nobody (the first
 * call of a thread allocates). Costs a hash, three cache lines, the copy, and a coarse clock.
 * TW_OK; TW_TRUNCATED: it does not fit, and what fits was copied; TW_NOT_FOUND; TW_INVALID: no
 * cache, a bad key, no buffer with a capacity; TW_NO_MEMORY; TW_CLOSED.
 */
TW_API enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size,
				   void *buffer, size_t capacity, size_t *value_size);

/*
 * Pins the key's entry instead of copying: it stays readable, whatever becomes of the key or the
 * cache, until tw_cache_entry_release. Otherwise as tw_cache_get. Except on TW_OK *entry is NULL.
 * TW_OK; TW_NOT_FOUND; TW_INVALID: no cache, a bad key, nothing to fill; TW_NO_MEMORY; TW_CLOSED.
 */
TW_API enum tw_status tw_cache_acquire(struct tw_cache *cache, const void *key, size_t key_size,
				       const struct tw_cache_entry **entry);

/* Of a pinned entry, or inside a callback that was given it. Any thread. `size` may be NULL. An
 * empty value that was copied is not NULL. */
TW_API const void *tw_cache_entry_value(const struct tw_cache_entry *entry, size_t *size);
TW_API const void *tw_cache_entry_key(const struct tw_cache_entry *entry, size_t *size);
/* When it expires, on the wheel's clock; TW_FOREVER: never. With `idle` each hit moves it. */
TW_API tw_duration tw_cache_entry_deadline(const struct tw_cache_entry *entry);
/* One pin more, to be released for itself; answers the entry. */
TW_API const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry);
/* Gives back one pin, also after tw_cache_destroy; NULL is fine. */
TW_API void tw_cache_entry_release(const struct tw_cache_entry *entry);

/*
 * Removes the key's entry (TW_CAUSE_EXPLICIT). A load of the key that runs will not be kept. Any
 * thread; costs as tw_cache_set. TW_OK; TW_NOT_FOUND: it had none, or one past its deadline, which
 * is gone now; TW_INVALID: no cache, a bad key; TW_CLOSED.
 */
TW_API enum tw_status tw_cache_delete(struct tw_cache *cache, const void *key, size_t key_size);

/*
 * Gives the key's entry a new lifetime from now on, shorter or longer. A later deadline commands
 * the wheel nothing. Neither a hit nor a miss, but a use. Any thread; costs a lock as tw_cache_set.
 * TW_OK; TW_NOT_FOUND; TW_INVALID: no cache, a bad key, expire ≤ 0; TW_CLOSED; TW_NO_MEMORY, and
 * nothing has changed: the thread's first call allocates, and so may a deadline that comes sooner.
 */
TW_API enum tw_status tw_cache_touch(struct tw_cache *cache, const void *key, size_t key_size,
				     tw_duration expire);

/* What a loader leaves its value in. */
struct tw_cache_loading;

/*
 * Fetches the key's value from the source, and gives it to `loading` by one of the two calls below.
 * Called by tw_cache_take in the calling thread, with no lock held; may sleep, and may call the
 * cache, tw_cache_take of other keys too. Answers TW_OK: the value was given; TW_NOT_FOUND: the
 * source has none, which is kept for negative_expire; anything else is an error, which all
 * waiting callers are told and none after them; numbers that are no status are passed on too. A
 * value given is ignored then, and freed. TW_OK without a value counts as TW_LOAD_FAILED, and so
 * does a loader that ends its thread (pthread_exit, cancellation).
 */
typedef enum tw_status tw_cache_load(void *argument, const void *key, size_t key_size,
				     struct tw_cache_loading *loading);

/*
 * For the loader, in its own thread: gives a copy of the value, or the value itself (as
 * tw_cache_adopt), with its lifetime; `expire` 0: the cache's own. Given twice, the last counts.
 * TW_OK; TW_INVALID: no loading, expire < 0, a value as tw_cache_set would not have it;
 * TW_NO_MEMORY: the loader should answer that.
 */
TW_API enum tw_status tw_cache_load_copy(struct tw_cache_loading *loading, const void *value,
					 size_t value_size, tw_duration expire);
TW_API enum tw_status tw_cache_load_adopt(struct tw_cache_loading *loading, void *value,
					  size_t value_size, uint64_t weight,
					  void (*free_value)(void *value, size_t value_size,
							     void *context),
					  void *context, tw_duration expire);

/*
 * The key's entry, pinned; if it has none, `load` is called to fetch it, once at a time for each
 * key, however many take it: the others wait for its end, `wait` at most: real time, on a manual
 * clock too; ≤ 0: not at all; TW_FOREVER: as long as it takes. They are told the same. The entry
 * is given out even if it can't be kept: when the key was set or deleted during the load (the value
 * set meanwhile stays), when a set of it would answer TW_FULL, or its lifetime is over. A take that
 * begins after such a set or delete waits for the end of that load, and then looks again, or loads
 * itself.
 * Counts as a hit, a miss or an absence, by what it found first. TW_OK; what the loader answered,
 * or TW_LOAD_FAILED; TW_NOT_FOUND: absent, says the loader or what is kept of its answer;
 * TW_TIMED_OUT; TW_INVALID: no cache, a bad key, no loader, nothing to fill, or the wait would be
 * for itself: from inside a load of this key, or of one that waits for this thread's load (a circle
 * that leads through several caches and threads is not seen: there `wait` is the limit);
 * TW_NO_MEMORY; TW_CLOSED. Except on TW_OK *entry is NULL.
 */
TW_API enum tw_status tw_cache_take(struct tw_cache *cache, const void *key, size_t key_size,
				    tw_cache_load *load, void *argument, tw_duration wait,
				    const struct tw_cache_entry **entry);

/* One of many keys to get. */
struct tw_cache_lookup {
	const void *key;
	size_t key_size;
	void *buffer;
	size_t capacity;
	size_t value_size;     /* filled in, as by tw_cache_get */
	enum tw_status status; /* filled in, as tw_cache_get answers */
};

/*
 * tw_cache_get for each item, with their memory fetched side by side, which takes about half the
 * time. *found (may be NULL) is the number of items with TW_OK or TW_TRUNCATED.
 * TW_OK; TW_INVALID: no cache or no items; TW_NO_MEMORY; TW_CLOSED. On TW_OK each item has a status
 * of its own.
 */
TW_API enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items,
					size_t n, size_t *found);

/*
 * Removes every entry that was set before the call (TW_CAUSE_EXPLICIT), and keeps no load that
 * runs. What is set meanwhile may stay or go. Any thread; in short steps, 64 entries to a lock.
 * TW_OK; TW_INVALID: no cache; TW_CLOSED.
 */
TW_API enum tw_status tw_cache_clear(struct tw_cache *cache);

/*
 * Calls visit(context, entry) for the entries that may be read, until it answers 0: each that is
 * there from begin to end exactly once, what comes and goes meanwhile at most once for each value.
 * None is past its deadline when its visit begins. Neither hits nor uses. No lock is held: `visit`
 * may call the cache, and may keep an entry by tw_cache_entry_pin. Any thread; costs a list of
 * pointers to one shard's entries, which is made under that shard's lock.
 * TW_OK, also when ended by `visit`; TW_INVALID: no cache or no visit; TW_CLOSED; TW_NO_MEMORY: not
 * all were met.
 */
TW_API enum tw_status tw_cache_each(struct tw_cache *cache,
				    int (*visit)(void *context, const struct tw_cache_entry *entry),
				    void *context);

/*
 * New limits, 0: none. On return no more is there than they allow (TW_CAUSE_SIZE), other threads'
 * sets of this moment aside. Any thread; in short steps, while others read and write (the first
 * limit puts each shard's entries in order, under its lock, about 35 ns an entry).
 * TW_OK; TW_INVALID: no cache; TW_CLOSED.
 */
TW_API enum tw_status tw_cache_set_limit(struct tw_cache *cache, uint64_t max_entries,
					 uint64_t max_bytes);

/*
 * Costs a sum over the shards and the threads that used the cache. Any thread.
 * TW_OK; TW_INVALID: no cache or nothing to fill.
 */
TW_API enum tw_status tw_cache_get_stats(struct tw_cache *cache, struct tw_cache_stats *stats);

/*
 * Removes what was past its deadline at the wheel's last tick, so that what has passed it since
 * then may stay up to a tick longer (nobody is given it); waits until on_remove was told of every
 * removal before the call; and frees what nobody reads any more. With TW_DRIVE_CALLER it drives the
 * wheel, as tw_flush. TW_OK; TW_INVALID: no cache, or called from a task of the wheel (on_remove
 * and on_stats are such) or from a loader of this cache, where it does nothing; TW_CLOSED: the
 * cache was stopped, or the wheel, so that on_remove is not told of all before tw_cache_destroy.
 */
TW_API enum tw_status tw_cache_flush(struct tw_cache *cache);

#ifdef __cplusplus
}
#endif

#endif
