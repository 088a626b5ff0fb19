/* SPDX-License-Identifier: MIT */
/*
 * Keeps values of a slow source in memory, each until its deadline and within limits on their
 * number and size.
 *
 *     struct tw_cache *cache;
 *     const struct tw_cache_entry *entry;
 *     struct tw_cache_options options = {.name = "users", .max_entries = 100000};
 *     if (tw_cache_create(&cache, 10 * TW_MINUTE, &options) != TW_OK)
 *             return;
 *     if (tw_cache_take(cache, id, id_size, load_user, database, TW_SECOND, &entry) == TW_OK) {
 *             show(tw_cache_entry_value(entry, &size), size);
 *             tw_cache_entry_release(entry);
 *     }
 *     tw_cache_destroy(cache);
 *
 * Times are in nanoseconds, on the wheel's clock (tw_now); the wheel that a cache makes for itself
 * has CLOCK_MONOTONIC. A key has 1 to TW_KEY_SIZE_MAX bytes and is copied. An entry is readable
 * until its deadline.
 *
 * The cache guarantees:
 *  - No call returns a value at or past its deadline, however late the wheel is, except a take:
 *    with TW_STALE (stale_if_error), and if what its load supplied expires before the return.
 *  - No entry is removed for its age before its deadline.
 *  - Each entry leaves the cache exactly once, with one cause, and on_remove is called for it,
 *    unless it is an absence.
 *  - Expired entries leave memory without any traffic, within two ticks of the wheel after the end
 *    of their lifetime and of stale_if_error, if a worker of the wheel's pool is free. While none
 *    is, each set or delete removes up to 30 such entries of its shard.
 *  - A lookup does not wait: not for a writer, another lookup, a thread that sleeps with a pinned
 *    entry, or the removal of a million other entries.
 *  - A call that stores a value and fails changes nothing. The value is still the caller's.
 *
 * These rules hold for every call, and timingwheel.h says what reserved fields are:
 *  - Any thread may make it, also in a listener, a loader or a task of the wheel, except
 *    tw_cache_destroy, the last call on the cache, and tw_cache_flush, which waits for listeners.
 *  - It returns TW_INVALID if the cache, the loading or a function is NULL, if a pointer through
 *    which it returns something is NULL (unless it "may be NULL"), or if a key is NULL, empty or
 *    longer than TW_KEY_SIZE_MAX. It returns TW_CLOSED after tw_cache_stop, unless its comment says
 *    otherwise; the calls on pinned entries go on. It returns TW_NO_MEMORY if the system has no
 *    memory for it, or 65,536 other threads use caches. A call that stores a value returns TW_FULL
 *    if the entry alone weighs more than max_bytes. The lists of statuses do not repeat this.
 *  - *entry becomes NULL unless the status says that it is pinned.
 *  - The child of a fork must not use a cache that it inherited. It may make a cache of its own.
 *
 * These rules hold for functions of the program that the cache calls:
 *  - They return, as the functions that a wheel calls (timingwheel.h): an exception, pthread_exit
 *    or a cancellation that leaves one ends the process, with a message that names the cache.
 *  - A loader, `visit`, on_value and on_remove are called with no lock held. They may sleep, and
 *    may call the cache, except tw_cache_destroy and tw_cache_flush. `weigh`, `compute` and
 *    free_value may do neither, for other calls wait for them: calls for a key of the cache return
 *    TW_INVALID in `compute`.
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
/* Holds a key and its value. It never changes once it is in a cache. */
struct tw_cache_entry;

/* The largest number of shards of a cache. */
#define TW_CACHE_SHARDS_MAX 1024
/* The largest number of loads that tw_cache_options.load runs at a time. */
#define TW_CACHE_LOADERS_MAX 1024
/* The largest weight of an entry; a larger one counts as this. The sum of 2^23 has 63 bits. */
#define TW_CACHE_WEIGHT_MAX ((uint64_t)1 << 40)

/* Says why an entry left the cache. One past its deadline leaves with TW_CAUSE_EXPIRED, whichever
 * call removes it, except in tw_cache_destroy. */
enum tw_cache_cause {
	/* A delete, compute or clear removed the entry, or a reload found that the source no longer
	 * has the key (refresh_after). */
	TW_CAUSE_EXPLICIT,
	TW_CAUSE_REPLACED, /* another value, or an absence, was stored under the key */
	TW_CAUSE_SIZE,     /* the entry, not expired, had to make room (max_entries, max_bytes) */
	TW_CAUSE_EXPIRED,  /* the deadline has passed */
	TW_CAUSE_SHUTDOWN  /* tw_cache_destroy */
};

#define TW_CACHE_CAUSES 5 /* the number of causes */

/*
 * Selects the entry that makes room at a limit. Under both policies a hit writes two bits of the
 * entry, and nothing once they are set, so threads that hit one entry do not slow each other down.
 *
 * Expired entries that are not kept (stale_if_error) make room before live ones, from 1/32 of the
 * wheel's tick after their deadline on. A set examines at most 60: a few live ones may leave, too.
 */
enum tw_cache_policy {
	/* S3-FIFO (Yang et al., 2023), the default: new keys enter a small queue. Only keys used at
	 * least twice there, or set again soon after their eviction, enter the main queue. The
	 * small queue's share adapts between 5 and 90 %. The hit ratio is usually higher than with
	 * LRU, most of all with skewed keys or scans. A flood of absences pushes out few values. */
	TW_POLICY_S3FIFO,
	/* Approximate LRU: an entry that was used since it last came up for eviction gets another
	 * turn, up to three. Entries without uses leave in the order in which they were set. A
	 * flood of absences (negative_expire) pushes out the values. */
	TW_POLICY_LRU
};

/*
 * Returns the weight of an entry for max_bytes; 0 counts as 1.
 *
 * The thread that sets or loads the value calls it, maybe under a lock of the cache. It is not
 * called for a value that comes with a weight, nor for absences, which weigh 1.
 */
typedef uint64_t tw_cache_weigh_fn(void *context, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/*
 * Receives each entry that leaves the cache, in no particular order.
 *
 * A worker of the wheel's pool calls it, or with TW_WORKERS_INLINE the thread that drives the
 * wheel, one call at a time for each cache. The entry can be read until the call returns, and
 * longer if it is pinned by tw_cache_entry_pin. It is not called for absences. The queue of entries
 * that wait for it has no limit (tw_cache_stats.queued_removals).
 */
typedef void tw_cache_remove_fn(void *context, const struct tw_cache_entry *entry,
				enum tw_cache_cause cause);

/* Identifies a load under way. The loader gives it the value. */
struct tw_cache_loading;

/*
 * Fetches the key's value from the source, and gives it to `loading` by tw_cache_load_give.
 *
 * tw_cache_take calls it in the calling thread; a worker of the wheel's pool calls
 * tw_cache_options.load. When it returns, the load ends and `loading` is invalid, unless
 * tw_cache_load_keep kept the load.
 *
 * Returns:
 *   TW_OK         the value was given; without a value this counts as TW_LOAD_FAILED
 *   TW_NOT_FOUND  the source does not have the key; this absence is stored for negative_expire
 *
 * Any other status is an error, also a number that is no status. All callers that wait for this
 * load get it. It is stored only for retry_after. TW_STALE, which takes return with a value,
 * becomes TW_LOAD_FAILED. Unless the loader returns TW_OK, a value that it gave is freed.
 */
typedef enum tw_status tw_cache_load(void *argument, const void *key, size_t key_size,
				     struct tw_cache_loading *loading);

/*
 * Frees an adopted value, exactly once, after the value's last reader.
 *
 * Any call on the cache may call it, also one for another key, and so do the wheel's threads, and
 * tw_cache_entry_release for the last pin. So it may run while the program holds a lock around such
 * a call: it must not wait for that lock. It may pin and release entries. A value whose last pin it
 * releases is freed after it has returned, by the same thread: values may pin other entries, in
 * chains of any length.
 */
typedef void tw_cache_free_fn(void *value, size_t value_size, void *context);

/* Describes a value that a key is to have: by tw_cache_put, tw_cache_compute or a load. */
struct tw_cache_value {
	const void *data; /* may be NULL if `size` is 0 */
	size_t size;      /* bytes; at most UINT32_MAX if they are copied */
	/* The lifetime, ≥ 0, with jitter; 0, the default, means the cache's. */
	tw_duration expire;
	/* The time when the value expires, on the wheel's clock, without jitter; 0, the default:
	 * `expire` counts. Not both may be given. A value whose deadline is past has expired. */
	tw_duration deadline;
	uint64_t weight; /* for max_bytes; 0, the default, weighs the entry as that says */
	/* NULL, the default, copies `data`. Else the cache keeps it without a copy, and calls this
	 * in the end: a function that does nothing, if the data outlives the cache and all pins. */
	tw_cache_free_fn *free_value;
	void *context;
	uint64_t reserved[2]; /* for later versions; must be 0 */
};

/* Holds a cache's statistics: counts since tw_cache_create, and current states. They are exact
 * while no other call runs. */
struct tw_cache_stats {
	uint64_t hits;          /* readable entries found by get, get_many, acquire or a take */
	uint64_t misses;        /* no readable entry; takes that wait for a load included */
	uint64_t absent;        /* known to be absent (negative_expire) */
	uint64_t loads;         /* keys for which a loader was called */
	uint64_t refreshes;     /* loads of values that were still readable (refresh_after) */
	uint64_t load_errors;   /* loads that supplied no value, absences included */
	uint64_t load_waits;    /* takes that waited for a load of another call */
	uint64_t wait_timeouts; /* takes that returned TW_TIMED_OUT */
	uint64_t loads_ended;   /* loads that were run, and have ended; without memory, fewer */
	tw_duration load_time;  /* the real time that these took */
	uint64_t loads_waiting; /* queued now for the wheel's pool */
	uint64_t loads_running; /* now; includes kept ones, and keys set or deleted since */
	uint64_t stale;         /* takes that returned TW_STALE */
	uint64_t inserts;       /* entries that came in, replacements and absences included */
	/* Entries that left, by cause. The sum of these and `entries` is `inserts`. */
	uint64_t removed[TW_CACHE_CAUSES];
	uint64_t notified;        /* calls of on_remove that have returned */
	uint64_t refused;         /* values not stored, as heavier alone than max_bytes */
	uint64_t entries;         /* now; absences and expired entries included, until they leave */
	uint64_t bytes;           /* the sum of the weights of `entries` */
	uint64_t queued_removals; /* removals for which on_remove has not yet returned */
	/* Bytes of memory now, without adopted values: all that the cache has from the system for
	 * entries, tables, and the threads that use it (128 bytes each). */
	uint64_t memory;
	uint64_t memory_in_use; /* by tables, expiry lists, threads, and entries, pinned ones too */
	uint64_t reserved[5];   /* for later versions; 0 */
};

/* Holds the options of tw_cache_create. A zeroed struct has all the defaults: where a field does
 * not say otherwise, 0 and NULL mean no such limit, time or function. Times are in nanoseconds, ≥
 * 0. */
struct tw_cache_options {
	void *context; /* passed to weigh and on_remove */
	/* The name of the cache's own wheel (tw_options.name), and the cache's in messages; default
	 * "proc". */
	const char *name;
	/* The wheel that wakes the cache and whose pool runs on_remove and `load`. NULL makes a
	 * wheel of the cache's own: a tick of 1 s, 300 slots, two workers, and with `load` at most
	 * `loaders` more while loads block. A given wheel may serve many caches and other timers,
	 * and must outlive the cache. If it is stopped, or no thread drives it, calls still return
	 * no expired entry, but such entries stay in memory until sets and deletes remove them. */
	struct tw_wheel *wheel;
	/* How much lifetimes vary, < 1; 0 means 0.05, a negative number not at all. Each lifetime
	 * is multiplied by a random number above 1 - jitter and at most 1. */
	double jitter;
	/* The largest number of entries; 0 sets no limit, so a size of 0 keeps all. A cache made
	 * without any limit keeps no order of eviction, and can't get a limit later. */
	uint64_t max_entries;
	/* The largest sum of weights. Without `weigh` the weight of an entry is its memory in
	 * bytes: 48, the key rounded up to 8, and the value, together rounded up to a cell, which
	 * is at most about a fifth larger; plus 40 for its share of the table. `idle` adds 16 to
	 * the 48, refresh_after 8. A value adopted, or above 500,000 bytes, adds 32 and its size.
	 *
	 * With the default shards and no weights of the program, the memory is at most 1.25 times
	 * max_bytes plus 4 MiB, beside entries kept only by pins or queued removals, adopted
	 * values, sets in progress, and 128 bytes for each thread that uses the cache. */
	uint64_t max_bytes;
	tw_cache_weigh_fn *weigh;    /* weighs entries; NULL weighs their memory */
	enum tw_cache_policy policy; /* which entry makes room at a limit */
	/* The number of shards, parts of the table with a lock each for writers, rounded up to a
	 * power of two, ≤ TW_CACHE_SHARDS_MAX. 0 means 64, or with a limit only as many as leave
	 * 512 entries of max_entries and 32,768 of max_bytes to each. The limits hold for the whole
	 * cache, and the order of eviction for each shard: that of a small cache is exact. */
	unsigned shards;
	/* How long an entry stays readable without a hit. Each hit or touch starts this time again,
	 * up to the end of the entry's own lifetime. A hit counts from the next step of the coarse
	 * clock, a few milliseconds late at most. This time has no jitter. */
	tw_duration idle;
	/* How long an absence is stored, with jitter: a loader's answer TW_NOT_FOUND. Takes return
	 * TW_NOT_FOUND meanwhile, without a load. `idle` applies to it too. It counts for the
	 * limits. */
	tw_duration negative_expire;
	tw_cache_remove_fn *on_remove; /* receives each entry that leaves */
	/* The cache's own loader. tw_cache_take_async uses it, reloads use it, and so do takes
	 * without a loader. The wheel's pool calls it, at most `loaders` calls at a time
	 * (≤ TW_CACHE_LOADERS_MAX; 0 means 2), with load_context, which must outlive the cache. It
	 * may block if the pool may grow (tw_options.max_workers). Reloads (refresh_after) wait
	 * until no other load waits for the pool, and leave one of several `loaders` free. If the
	 * wheel was stopped, such loads end with TW_CLOSED; one that was queued before that does
	 * when the next is queued, or in tw_cache_stop. */
	tw_cache_load *load;
	void *load_context;
	unsigned loaders;
	/* The age from which a value is reloaded when it is looked up. It needs `load`. It has
	 * jitter, which is the same for a key each time.
	 *
	 * A get, get_many, acquire or take queues the reload, for an allocation and short locks.
	 * All return the old value until the new one is there. If the reload fails, the old value
	 * stays until its deadline. Lookups retry the reload after 1/16 of refresh_after, then 1/8,
	 * 1/4, and from then on 1/2, or after retry_after. If it returns TW_NOT_FOUND, the old
	 * value leaves: with TW_CAUSE_REPLACED if negative_expire stores the absence, else with
	 * TW_CAUSE_EXPLICIT. A set or delete during the reload prevails over it. A new value that
	 * the cache cannot store is returned to those that wait for it, and the old one leaves with
	 * TW_CAUSE_EXPLICIT. */
	tw_duration refresh_after;
	/* The most reloads that may wait for the pool or run at a time; 0 means 64. At the limit
	 * lookups queue no reload. */
	unsigned max_refreshing;
	/* How long an expired value is kept so that a take whose load fails, or takes longer than
	 * the take waits, can return it, with TW_STALE. No other call finds it. It counts for the
	 * limits and in `entries`, and makes room in its turn, where uses before it expired do not
	 * count. A load that returns TW_NOT_FOUND has not failed, and removes it. */
	tw_duration stale_if_error;
	/* How long a key is not loaded after a load that failed. Each failure in a row doubles
	 * this, up to the cache's lifetime. Takes meanwhile return the expired value
	 * (stale_if_error) or the status of the failed load, and count as misses. A set or delete
	 * ends it. Reloads are tried again after this time, too. A failure takes 250 bytes and the
	 * key for twice the time; each shard remembers 256, and forgets the oldest for another. */
	tw_duration retry_after;
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/*
 * Makes a cache whose entries live for `expire` nanoseconds, unless a call gives another lifetime.
 *
 * `expire` must be > 0; TW_FOREVER never ends. It counts by the wheel's clock: in a suspension of
 * the machine only if a given wheel has TW_CLOCK_BOOTTIME. `options` is copied and may be NULL.
 * *cache is NULL unless the status is TW_OK. Costs 5 KiB a shard, and the threads of its own wheel.
 *
 * Returns:
 *   TW_OK         the caller owns *cache, until tw_cache_destroy
 *   TW_INVALID    expire ≤ 0, or an option is out of range
 *   TW_SYSTEM     a thread could not be started
 *   TW_CLOSED     the given wheel was stopped
 */
TW_CHECKED
TW_API enum tw_status tw_cache_create(struct tw_cache **cache, tw_duration expire,
				      const struct tw_cache_options *options);

/*
 * Stops the use of the cache: later calls return TW_CLOSED, and so do takes that wait for a load.
 *
 * Other calls in progress complete as usual, and none stores a value after the return. A running
 * load continues, and the take that runs it returns what it supplies. on_value of each waiting
 * tw_cache_take_async is called with TW_CLOSED before the return. Entries stay until their deadline
 * or tw_cache_destroy, and on_remove is called as before. Waits for no other call.
 *
 * Returns:
 *   TW_OK         this call stopped it
 *   TW_CLOSED     it was stopped before
 */
TW_API enum tw_status tw_cache_stop(struct tw_cache *cache);

/*
 * Stops and frees the cache. NULL is allowed.
 *
 * The call stops the cache as tw_cache_stop does, waits until waiting takes and running loaders
 * have returned, and ends the loads that loaders have kept. Then it removes every entry with
 * TW_CAUSE_SHUTDOWN, also entries past their deadline, waits until on_remove has returned for each,
 * and frees everything except pinned entries. These stay readable until they are released.
 *
 * No other call except those takes may be in progress; a listener's calls return TW_CLOSED. In a
 * callback of this cache it does nothing, and in a task of the wheel it could not return. While it
 * waits for on_remove, it drives a wheel with TW_DRIVE_CALLER, as tw_poll does. If the wheel was
 * stopped, this thread calls on_remove.
 */
TW_API void tw_cache_destroy(struct tw_cache *cache);

/*
 * Set the key's value, with the cache's lifetime, or with one of `expire` nanoseconds.
 *
 * Key and value are copied. The value may be empty, and NULL if it is empty. A value that the key
 * has is replaced (TW_CAUSE_REPLACED). Lookups at the same time find the old value or the new one.
 * The value of a load of the key that is under way will not be stored, and takes that begin later
 * do not wait for it.
 *
 * Costs a hash, an allocation, a copy, a short lock, and a read of the precise clock. As a rule it
 * makes a system call only if the new deadline is the earliest of its shard, or if on_remove is to
 * be called for entries that leave.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_INVALID    the value is NULL and not empty, or larger than UINT32_MAX, or expire ≤ 0
 */
TW_READS(2, 3)
TW_READS(4, 5)
TW_API enum tw_status tw_cache_set(struct tw_cache *cache, const void *key, size_t key_size,
				   const void *value, size_t value_size);
TW_READS(2, 3)
TW_READS(4, 5)
TW_API enum tw_status tw_cache_set_with_expire(struct tw_cache *cache, const void *key,
					       size_t key_size, const void *value,
					       size_t value_size, tw_duration expire);

/* Says when tw_cache_put stores the value. */
enum tw_cache_put_mode {
	TW_CACHE_PUT_SET,    /* always */
	TW_CACHE_PUT_ADD,    /* if the key has no readable value; an absence is none */
	TW_CACHE_PUT_REPLACE /* if the key has a readable value */
};

/*
 * Sets the key's value as tw_cache_set does, with all that struct tw_cache_value says, if `mode`
 * allows it.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_EXISTS     TW_CACHE_PUT_ADD: the key has another value, which stays
 *   TW_NOT_FOUND  TW_CACHE_PUT_REPLACE: the key had no readable value
 *   TW_INVALID    no such mode, or a field of *value is out of range
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_put(struct tw_cache *cache, const void *key, size_t key_size,
				   const struct tw_cache_value *value, enum tw_cache_put_mode mode);

/*
 * Copies the key's value to `buffer`, at most `capacity` bytes of it.
 *
 * *value_size (may be NULL) becomes the full size of the value, or 0 if there is none. The call
 * counts as a use. Costs a hash, three cache lines, the copy, and a read of the coarse clock; near
 * a deadline it reads the precise clock too.
 *
 * Returns:
 *   TW_OK         the value was copied
 *   TW_TRUNCATED  the value is larger than the buffer; its first `capacity` bytes were copied
 *   TW_NOT_FOUND  the key has no readable value
 *   TW_INVALID    buffer is NULL and capacity > 0
 */
TW_READS(2, 3)
TW_FILLS(4, 5)
TW_API enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size,
				   void *buffer, size_t capacity, size_t *value_size);

/* Names one key to get, for tw_cache_get_many, and holds its result. */
struct tw_cache_lookup {
	const void *key;
	size_t key_size;       /* bytes */
	void *buffer;          /* for the value */
	size_t capacity;       /* bytes in `buffer` */
	size_t value_size;     /* filled in, as by tw_cache_get */
	enum tw_status status; /* filled in, as tw_cache_get returns */
};

/*
 * Gets `n` items as tw_cache_get does, in about half the time, because their memory is fetched
 * together.
 *
 * *found (may be NULL) becomes the number of items with TW_OK or TW_TRUNCATED.
 *
 * Returns:
 *   TW_OK         each item has its own status
 *   TW_INVALID    items is NULL and n > 0
 */
TW_API enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items,
					size_t n, size_t *found);

/* Has tw_cache_acquire count as no hit, miss or use, not restart `idle`, and queue no reload. */
#define TW_CACHE_NO_USE 1u

/*
 * Pins the key's entry, without a copy. The entry stays readable until tw_cache_entry_release,
 * whatever happens to the key or the cache.
 *
 * `flags` is 0 or TW_CACHE_NO_USE. Counts as tw_cache_get does. Each pin and release writes to the
 * entry: threads that share a hot one are faster with tw_cache_get.
 *
 * Returns:
 *   TW_OK         *entry is pinned
 *   TW_NOT_FOUND  the key has no readable value
 *   TW_INVALID    an unknown flag
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_acquire(struct tw_cache *cache, const void *key, size_t key_size,
				       unsigned flags, const struct tw_cache_entry **entry);

/*
 * Return the value and the key of an entry. An empty value that was copied is not NULL.
 *
 * The entry must be pinned, or be the one that a callback was called with. *size (may be NULL)
 * becomes the size in bytes. A value that was copied begins at a multiple of 8 bytes, which need
 * not be one of 16. An adopted value is at the address that was given.
 */
TW_NONNULL(1)
TW_API const void *tw_cache_entry_value(const struct tw_cache_entry *entry, size_t *size);
TW_NONNULL(1)
TW_API const void *tw_cache_entry_key(const struct tw_cache_entry *entry, size_t *size);

/* Returns the time on the wheel's clock when the entry expires, or TW_FOREVER if it does not. With
 * `idle` each hit changes it. */
TW_NONNULL(1)
TW_API tw_duration tw_cache_entry_deadline(const struct tw_cache_entry *entry);

/* Pins the entry another time, and returns it. Each pin needs a release of its own. */
TW_NONNULL(1)
TW_API const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry);

/* Releases one pin of the entry, also after tw_cache_destroy. NULL is allowed. */
TW_API void tw_cache_entry_release(const struct tw_cache_entry *entry);

/*
 * Removes the key's entry (TW_CAUSE_EXPLICIT).
 *
 * The value of a load of the key that is under way will not be stored, and takes that begin later
 * do not wait for it. Costs as much as tw_cache_set.
 *
 * Returns:
 *   TW_OK         the entry is removed
 *   TW_NOT_FOUND  the key had no readable value. An expired value or a stored absence
 *                 (negative_expire) is removed even so
 */
TW_READS(2, 3)
TW_API enum tw_status tw_cache_delete(struct tw_cache *cache, const void *key, size_t key_size);

/* Says what tw_cache_compute does with a key. */
enum tw_cache_verdict {
	TW_CACHE_KEEP,    /* the entry stays as it is */
	TW_CACHE_REPLACE, /* the key gets the computed value */
	TW_CACHE_TOUCH,   /* the entry gets `expire` or `deadline`, and no other field; a use */
	TW_CACHE_DELETE   /* the entry is removed, as by tw_cache_delete */
};

/*
 * Decides what happens to the key of `entry`, and fills in `computed` for TW_CACHE_REPLACE and
 * TW_CACHE_TOUCH.
 *
 * `entry` is NULL if the key has no readable value. `computed` is all 0 before the call, and its
 * data must stay readable until tw_cache_compute returns. The function is called under the lock of
 * the key's shard. It may pin the entry by tw_cache_entry_pin: so TW_CACHE_DELETE takes an entry
 * out of the cache.
 *
 * Returns: what tw_cache_compute does with the key.
 */
typedef enum tw_cache_verdict tw_cache_compute_fn(void *context, const struct tw_cache_entry *entry,
						  struct tw_cache_value *computed);

/*
 * Reads and changes the key in one step, as `compute` decides. No other call for the key comes in
 * between.
 *
 * After a replacement or removal the value of a load of the key that is under way will not be
 * stored. Counts as no hit or miss, and waits for no load. Costs as much as tw_cache_set and
 * `compute`.
 *
 * Returns:
 *   TW_OK         the verdict of `compute` is carried out, also if it deleted nothing
 *   TW_NOT_FOUND  TW_CACHE_TOUCH: the key has no readable value
 *   TW_INVALID    no such verdict, or a field of *computed is out of range
 */
TW_READS(2, 3)
TW_API enum tw_status tw_cache_compute(struct tw_cache *cache, const void *key, size_t key_size,
				       tw_cache_compute_fn *compute, void *context);

/*
 * Returns the key's entry, pinned. If the key has none, the call loads it with `load`.
 *
 * This thread calls `load`, or if that is NULL the cache's own loader (tw_cache_options.load) with
 * load_context. One load runs at a time for each key. Other takes of the key wait for its end and
 * return its result. `wait` limits this waiting, and the waiting for a load that this call's loader
 * keeps. It does not interrupt the loader. It counts from the start of the call, in nanoseconds of
 * real time, also on a manual clock; ≤ 0 does not wait at all, and TW_FOREVER without limit.
 *
 * The call returns a loaded value even if the cache cannot store it: if the key was set or deleted
 * during the load (a value set then stays), if a set would return TW_FULL, or if its lifetime is
 * over. A take that begins after such a set or delete does not wait for that load: it finds the
 * value set, or begins another load. So tw_cache_delete frees a key whose source hangs. If a load
 * still waits for the wheel's pool, the take runs its own loader instead. The take counts as a hit,
 * a miss or an absence, by what it found first.
 *
 * Returns:
 *   TW_OK           *entry is pinned
 *   TW_STALE        as TW_LOAD_FAILED or TW_TIMED_OUT, and *entry is pinned, with an expired value
 *                   (stale_if_error)
 *   TW_NOT_FOUND    the source does not have the key, by the loader or by a stored absence
 *   TW_LOAD_FAILED  the loader supplied no value. If the loader returned another error, the call
 *                   returns that one
 *   TW_TIMED_OUT    the time `wait` is over, and there is no such value
 *   TW_INVALID      no loader, or the call is made inside the load that it would join. A circle
 *                   through several threads, or through a kept load, is not detected; there `wait`
 *                   is the limit
 *   TW_CLOSED       the cache was stopped, before the call or while it waited
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_take(struct tw_cache *cache, const void *key, size_t key_size,
				    tw_cache_load *load, void *argument, tw_duration wait,
				    const struct tw_cache_entry **entry);

/*
 * Receives the result of a tw_cache_take_async, once.
 *
 * `status` is as tw_cache_take returns. `entry` is NULL unless the status is TW_OK or TW_STALE. It
 * can be read until the call returns, and longer if it is pinned by tw_cache_entry_pin. The
 * function is called by tw_cache_take_async itself if the result is known at once, else by the
 * thread that ends the load or stops the cache. So it should be quick. One that takes the next key
 * by tw_cache_take_async recurses if that key is there, by about 300 bytes of the stack and its own
 * frame: a chain of unknown length must go on from elsewhere now and then.
 */
typedef void tw_cache_value_fn(void *context, enum tw_status status,
			       const struct tw_cache_entry *entry);

/*
 * Takes a key as tw_cache_take does, without waiting, for threads such as event loops. It calls
 * on_value with the result.
 *
 * The cache's own loader (tw_cache_options.load) loads missing keys. One load serves all takes of
 * the key of any kind. On TW_OK on_value is called exactly once, before the return if the key has
 * an entry or a stored absence; with any other status it is not called. Costs a lookup, and an
 * allocation. Neither the number of waiting takes nor their time has a limit.
 *
 * Returns:
 *   TW_OK         on_value is called
 *   TW_INVALID    the cache has no loader
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_take_async(struct tw_cache *cache, const void *key, size_t key_size,
					  tw_cache_value_fn *on_value, void *context);

/*
 * Gives a load its value.
 *
 * The loader calls it, or the thread that has the loading of a kept load. The lifetime counts from
 * the load's end. If a load gets several values, the last one counts.
 *
 * Returns:
 *   TW_OK         the load has the value
 *   TW_INVALID    a field of *value is out of range
 *   TW_NO_MEMORY  out of memory; the loader should return this status
 *   TW_CLOSED     the load has ended, in tw_cache_destroy or before
 */
TW_CHECKED
TW_API enum tw_status tw_cache_load_give(struct tw_cache_loading *loading,
					 const struct tw_cache_value *value);

/*
 * Keeps the load beyond its loader's return: a loader can send a request and return.
 *
 * The loader calls it before it returns; the status that it returns is ignored. Takes of the key
 * wait on. `loading` stays valid, also after tw_cache_destroy, until tw_cache_load_end, which one
 * thread must call, exactly once.
 *
 * Returns:
 *   TW_OK         the load is kept
 *   TW_INVALID    the load is kept already or has ended
 */
TW_CHECKED
TW_API enum tw_status tw_cache_load_keep(struct tw_cache_loading *loading);

/*
 * Ends the load, as if its loader had returned `status`. TW_LOAD_FAILED abandons the load.
 *
 * The loader may call it, for its own load, and any thread for a kept one; `loading` is invalid
 * afterwards. Costs as much as tw_cache_set, and calls on_value of each tw_cache_take_async that
 * waits for the load.
 *
 * Returns:
 *   TW_OK         this call ended the load
 *   TW_CLOSED     the load had ended before, in tw_cache_destroy or in the loader
 */
TW_API enum tw_status tw_cache_load_end(struct tw_cache_loading *loading, enum tw_status status);

/*
 * Removes every entry that was set before the call (TW_CAUSE_EXPLICIT).
 *
 * The values of loads under way will not be stored, and takes that begin later do not wait for
 * them. Entries set during the call may stay or leave. Works in short steps.
 *
 * Returns:
 *   TW_OK         the entries are removed
 */
TW_API enum tw_status tw_cache_clear(struct tw_cache *cache);

/*
 * Calls visit(context, entry) for each readable entry, until it returns 0.
 *
 * An entry that exists during the whole call is visited exactly once. A value that comes or leaves
 * during the call is visited at most once. No entry is past its deadline when its visit begins.
 * Visits count as no hits or uses. `visit` may keep an entry by tw_cache_entry_pin. Works in short
 * steps, and lists the entries of one shard at a time, pinned.
 *
 * Returns:
 *   TW_OK         all entries were visited, or `visit` returned 0
 *   TW_NO_MEMORY  not all entries were visited
 */
TW_API enum tw_status tw_cache_each(struct tw_cache *cache,
				    int (*visit)(void *context, const struct tw_cache_entry *entry),
				    void *context);

/*
 * Gives the cache new limits, max_entries and max_bytes. 0 means no limit.
 *
 * On return the cache is within its limits (TW_CAUSE_SIZE), apart from sets by other threads at
 * that moment. Works in short steps while others read and write.
 *
 * Returns:
 *   TW_OK         the limits hold
 *   TW_INVALID    the cache was made without any limit, so it has no order of eviction
 */
TW_API enum tw_status tw_cache_set_limit(struct tw_cache *cache, uint64_t max_entries,
					 uint64_t max_bytes);

/*
 * Fills in the cache's statistics, also after tw_cache_stop. Costs a sum over the shards and over
 * the threads that used the cache.
 *
 * Returns:
 *   TW_OK         *stats is filled in
 */
TW_API enum tw_status tw_cache_get_stats(struct tw_cache *cache, struct tw_cache_stats *stats);

/*
 * Writes the statistics as text for Prometheus (its format 0.0.4), also after tw_cache_stop.
 *
 * Times are in seconds. Each name begins with `prefix`, or with "tw_cache" if prefix is NULL, and
 * "_". The call calls `write` with `context` and whole lines, in this thread, with no lock held.
 *
 * Returns:
 *   TW_OK         all lines were written
 *   TW_INVALID    a prefix that cannot begin a name or is longer than TW_METRICS_PREFIX_MAX bytes
 */
TW_API enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write,
					     void *context, const char *prefix);

/*
 * Removes expired entries, waits for on_remove, and frees memory that no thread reads any more.
 *
 * The call removes the entries whose deadline, with stale_if_error, had passed at the wheel's last
 * tick, and waits until on_remove has returned for every removal before the call. While it waits,
 * it drives a wheel with TW_DRIVE_CALLER, as tw_poll does.
 *
 * Returns:
 *   TW_OK         done
 *   TW_INVALID    the call was made in a task of the wheel or in a callback of this cache
 *   TW_CLOSED     the cache was stopped, or the wheel was. Then on_remove may be called for some
 *                 removals only by tw_cache_destroy
 */
TW_API enum tw_status tw_cache_flush(struct tw_cache *cache);

#ifdef __cplusplus
}
#endif

#endif
