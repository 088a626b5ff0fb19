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
 * Times are in nanoseconds, on the wheel's clock (tw_now). A key has 1 to TW_KEY_SIZE_MAX bytes and
 * is copied. An entry is readable until its deadline. timingwheel.h says what reserved fields are.
 *
 * Any thread may make any call, also inside a listener, a loader or a task of the wheel, with two
 * exceptions. tw_cache_flush returns TW_INVALID there, because it waits for listeners.
 * tw_cache_destroy must be the last call on the cache, and must not be made there.
 *
 * These rules hold for functions of the program that the cache calls:
 *  - The function returns, as those that the wheel calls (timingwheel.h). An exception,
 *    pthread_exit or a cancellation that leaves a loader, weigh, compute, visit, on_value or
 *    on_remove ends the process, after a message on stderr that names the cache. None may leave
 *    free_value either. No call on the cache is a cancellation point.
 *  - It may call the cache, except weigh, compute and free_value.
 *  - While it runs, these wait: for a loader the takes of its key, for weigh and compute writers,
 *    for on_remove its next call, for on_value and free_value their thread alone.
 *
 * A call that begins after tw_cache_stop returns TW_CLOSED. These calls still work:
 * tw_cache_get_stats, tw_cache_write_metrics, and the calls on pinned entries and
 * on loads under way.
 *
 * The cache guarantees:
 *  - No call returns a value at or past its deadline, however late the wheel is, except a take. A
 *    take does so in two cases: with TW_STALE (stale_if_error), and if the value that its load
 *    supplied expires before the take returns.
 *  - No entry is removed for its age before its deadline.
 *  - Each entry leaves the cache exactly once, with one cause, and on_remove is called for it,
 *    unless it is an absence.
 *  - Expired entries leave memory without any traffic, within two ticks of the wheel after the end
 *    of their lifetime and of stale_if_error, if a worker of the wheel's pool is free. While all
 *    are busy, each set or delete removes up to 30 such entries of its shard, and new entries use
 *    their memory.
 *  - A lookup does not wait: not for a writer, another lookup, a thread that sleeps with a pinned
 *    entry, or the removal of a million other entries.
 *  - A set that fails changes nothing. Its value is still the caller's.
 *
 * The child of a fork must not use a cache that it inherited. It may make a cache of its own.
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
/* The largest tw_cache_options.loaders. */
#define TW_CACHE_LOADERS_MAX 1024
/* The largest weight of an entry. A larger weight counts as this one. */
#define TW_CACHE_WEIGHT_MAX ((uint64_t)1 << 48)

/*
 * Says why an entry left the cache. An entry past its deadline leaves with TW_CAUSE_EXPIRED,
 * whichever call removes it, except in tw_cache_destroy.
 */
enum tw_cache_cause {
	/* A delete, compute or clear removed the entry, or a reload found that the source no
	 * longer has the key (refresh_after). */
	TW_CAUSE_EXPLICIT,
	TW_CAUSE_REPLACED, /* another value, or an absence, was stored under the key */
	TW_CAUSE_SIZE,     /* the entry, not expired, had to make room (max_entries, max_bytes) */
	TW_CAUSE_EXPIRED,  /* the deadline has passed */
	TW_CAUSE_SHUTDOWN  /* tw_cache_destroy */
};

/* The number of causes. */
#define TW_CACHE_CAUSES 5

/*
 * Selects the entry that makes room at a limit. Under both policies a hit writes two bits of the
 * entry, and nothing once they are set, so threads that hit one entry do not slow each other down.
 *
 * Expired entries make room before live ones, at the latest 1/32 of the wheel's tick after their
 * deadline. A set examines at most 60 entries for this, so after many entries have expired at once,
 * a few live ones may be evicted.
 */
enum tw_cache_policy {
	/* S3-FIFO (Yang et al., 2023), the default: new keys enter a small queue. Only keys used at
	 * least twice there, or set again soon after their eviction, enter the main queue. The
	 * small queue's share adapts between 5 and 90 %. The hit ratio is usually higher than with
	 * LRU, most of all with skewed keys or scans. */
	TW_POLICY_S3FIFO,
	/* Approximate LRU: an entry that was used since it last came up for eviction gets another
	 * turn, up to three. Entries without uses leave in the order in which they were set. A
	 * flood of absences (negative_expire) pushes out the values. */
	TW_POLICY_LRU
};

/*
 * Weighs an entry for max_bytes.
 *
 * The thread that sets or loads the value calls it, maybe more than once, and maybe under a lock of
 * the cache. It must be quick, must not call the cache, and must return the same weight for the
 * same entry. It is not called for a value adopted with a weight, nor for
 * absences, which weigh 1.
 *
 * Returns: the weight. 0 counts as 1.
 */
typedef uint64_t tw_cache_weigh_fn(void *context, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/*
 * Receives each entry that leaves the cache, in no particular order.
 *
 * A worker of the wheel's pool calls it, or with TW_WORKERS_INLINE the thread that drives the
 * wheel. One call runs at a time for each cache, with no lock held. It may sleep. It may call the
 * cache, except tw_cache_destroy and tw_cache_flush. The entry can be read until the call returns,
 * and longer if it is pinned by tw_cache_entry_pin. It is not called for absences.
 */
typedef void tw_cache_remove_fn(void *context, const struct tw_cache_entry *entry,
				enum tw_cache_cause cause);

/* Identifies a load under way. The loader gives it the value. */
struct tw_cache_loading;

/*
 * Fetches the key's value from the source, and gives it to `loading` by tw_cache_load_give.
 *
 * tw_cache_take calls it in the calling thread. The wheel's pool calls tw_cache_options.load. No
 * lock is held. It may sleep, and may call the cache, also tw_cache_take for other keys. When it
 * returns, the load ends and `loading` is invalid, unless tw_cache_load_keep kept the load.
 *
 * Returns:
 *   TW_OK         the value was given; without a value this counts as TW_LOAD_FAILED
 *   TW_NOT_FOUND  the source does not have the key; this absence is stored for negative_expire
 *
 * Any other status is an error, also a number that is no status. All callers that wait for this
 * load get it. It is remembered only for retry_after. TW_STALE, which takes return with a value,
 * becomes TW_LOAD_FAILED. Unless the loader returns TW_OK, a value that it gave is freed.
 */
typedef enum tw_status tw_cache_load(void *argument, const void *key, size_t key_size,
				     struct tw_cache_loading *loading);

/*
 * Holds a cache's statistics: counts since tw_cache_create, and current states. They are exact
 * while no other call runs.
 */
struct tw_cache_stats {
	/* Keys asked for by get, get_many, acquire or a take. Each counts as one of these three. */
	uint64_t hits;
	uint64_t misses;        /* no readable entry; takes that wait for a load included */
	uint64_t absent;        /* known to be absent (negative_expire) */
	uint64_t loads;         /* keys for which a loader was called */
	uint64_t refreshes;     /* loads of values that were still readable (refresh_after) */
	uint64_t load_errors;   /* loads that supplied no value, absences included */
	uint64_t load_waits;    /* takes that waited for a load of another call */
	uint64_t wait_timeouts; /* takes that returned TW_TIMED_OUT */
	/* How long the loads that have ended took, and the sum. This is real time, also on a manual
	 * clock. */
	struct tw_percentiles load_time;
	tw_duration load_time_total;
	uint64_t loads_waiting; /* queued now for the wheel's pool */
	uint64_t loads_running; /* now; includes kept ones, and keys set or deleted since */
	/* Real time since the oldest load, waiting or running, was asked for; 0 if none. */
	tw_duration oldest_load;
	uint64_t stale;   /* takes that returned TW_STALE */
	uint64_t inserts; /* entries that came in, replacements and absences included */
	/* Entries that left, by cause. The sum of these and `entries` is `inserts`. */
	uint64_t removed[TW_CACHE_CAUSES];
	uint64_t notified; /* calls of on_remove that have returned */
	uint64_t refused;  /* values set or loaded, but not stored: heavier alone than max_bytes */
	uint64_t entries;  /* now; absences and expired entries included, until they leave */
	uint64_t bytes;    /* the sum of the weights of `entries` */
	uint64_t queued_removals; /* removals for which on_remove has not yet returned */
	/* Bytes of memory now, without adopted values. `memory` is all that the cache has from the
	 * system for entries, tables, and the threads that use it: 1,170 bytes each, until they
	 * have ended. */
	uint64_t memory;
	uint64_t memory_in_use;  /* the part in use by entries, tables, expiry lists and threads */
	uint64_t memory_retired; /* entries that have left, but that a lookup may still read */
	uint64_t memory_pinned;  /* entries that have left, but are pinned */
	uint64_t reserved[4];    /* for later versions; 0 */
};

/* Holds the options of tw_cache_create. A zeroed struct has all the defaults. */
struct tw_cache_options {
	void *context; /* passed to weigh and on_remove */
	/* The prefix of the names of the threads of the cache's own wheel, as tw_options.name;
	 * default "proc". */
	const char *name;
	/*
	 * The wheel that wakes the cache and whose pool runs on_remove and `load`. NULL, the
	 * default, makes a wheel of the cache's own: a tick of 1 s, 300 slots, two workers, and
	 * with `load` at most `loaders` more while loads block. A given wheel may serve many caches
	 * and other timers, and must outlive the cache. The cache has an alarm there for each shard
	 * and for each of `loaders`, and at most two more. If the wheel is stopped, or no thread
	 * drives it, calls still return no expired entry, but expired entries stay in memory until
	 * sets and deletes remove them.
	 */
	struct tw_wheel *wheel;
	/* How much lifetimes vary, < 1. 0 means the default, 0.05; a negative number means none.
	 * Each lifetime is multiplied by a random number above 1 - jitter, and at most 1, so that
	 * entries set together do not expire together, and none lives longer than asked. */
	double jitter;
	/* The largest number of entries. 0, the default, means no limit. If max_bytes is 0, too, the
	 * cache keeps no order of eviction, and tw_cache_set_limit returns TW_INVALID. */
	uint64_t max_entries;
	/*
	 * The largest sum of weights. 0, the default, means no limit. Without `weigh` the weight of
	 * an entry is its memory in bytes: 48, the key rounded up to 8, and the value, together
	 * rounded up to a cell; plus 40 for its share of the table. Options add to the 48: 16 with
	 * `idle`, 8 with refresh_after. An adopted value adds 32, and its size is added to the
	 * weight. Cell sizes are multiples of 16 up to 256 bytes, then grow in steps of about a
	 * fifth, and from 16 KiB on are multiples of 4 KiB.
	 *
	 * Without `weigh` the cache's memory is at most 1.25 times max_bytes plus 4 MiB, whatever
	 * sizes come and go. Not counted: entries kept only by pins or queued removals, adopted
	 * values, sets in progress, and 1,170 bytes for each thread that uses the cache.
	 */
	uint64_t max_bytes;
	tw_cache_weigh_fn *weigh;    /* weighs entries; NULL, the default, weighs their memory */
	enum tw_cache_policy policy; /* which entry makes room at a limit */
	/*
	 * The number of shards, parts of the table with a lock each for writers. It is rounded up
	 * to a power of two, and is at most TW_CACHE_SHARDS_MAX. 0 means the default: 64, or with a
	 * limit only as many as leave 512 entries of max_entries and 32,768 of max_bytes to each.
	 * The limits hold for the whole cache, and the order of eviction for each shard. So the
	 * order of a small cache is exact.
	 */
	unsigned shards;
	/* How long an entry stays readable without a hit, nanoseconds, ≥ 0. 0, the default, means
	 * no such limit. Each hit or touch starts this time again, up to the end of the entry's own
	 * lifetime. A hit counts from the next step of the coarse clock, a few milliseconds late at
	 * most. This time has no jitter. */
	tw_duration idle;
	/* How long an absence is stored, nanoseconds, ≥ 0, with jitter. 0, the default, stores no
	 * absences. An absence is a loader's answer TW_NOT_FOUND. While it is stored, takes return
	 * TW_NOT_FOUND without a load. `idle` applies to it too. It is an entry for the limits; one
	 * that is asked for once pushes out few values under TW_POLICY_S3FIFO. */
	tw_duration negative_expire;
	/* Receives each entry that leaves. NULL, the default, calls no function. */
	tw_cache_remove_fn *on_remove;
	/*
	 * The cache's own loader. tw_cache_take_async uses it, reloads use it, and so do takes
	 * without a loader. The wheel's pool calls it, at most `loaders` calls at a time, with
	 * load_context, which must outlive the cache. So it may block, if the pool may grow
	 * (tw_options.max_workers). With TW_WORKERS_INLINE the thread that drives the wheel calls
	 * it, and waits for it. `loaders` is at most TW_CACHE_LOADERS_MAX; 0 means the default, 2.
	 * Reloads (refresh_after) wait until no other load waits for the pool, and leave one of
	 * `loaders` free if there are several. If the wheel was stopped, such loads end with
	 * TW_CLOSED; one that was queued before that does when the next is queued, or in
	 * tw_cache_stop. If `load` is NULL, the default, the cache has no loader.
	 */
	tw_cache_load *load;
	void *load_context;
	unsigned loaders;
	/*
	 * The age from which a value is reloaded when it is looked up, nanoseconds, ≥ 0. 0, the
	 * default, reloads nothing. It needs `load`. It has an effect only if it is shorter than
	 * the lifetimes. It has jitter, which is the same for a key each time.
	 *
	 * The lookups are get, get_many, acquire and all takes. One of them queues the reload,
	 * which costs it an allocation and short locks. All return the old value until the new one
	 * is there. If the reload fails, the old value stays until its deadline. Lookups retry the
	 * reload after 1/16 of refresh_after, then 1/8, 1/4, and from then on 1/2, or after
	 * retry_after. If the reload returns TW_NOT_FOUND, the old value leaves: with
	 * TW_CAUSE_REPLACED if negative_expire stores the absence, else with TW_CAUSE_EXPLICIT. A
	 * set or delete during the reload prevails over it. A new value that the cache cannot store
	 * (TW_FULL, TW_NO_MEMORY) is returned to those that wait for it, and the old one leaves
	 * with TW_CAUSE_EXPLICIT. Each entry takes 8 bytes more.
	 */
	tw_duration refresh_after;
	/* The most reloads that may wait for the pool or run at a time. 0 means the default, 64. At
	 * the limit lookups return the old value and queue no reload. */
	unsigned max_refreshing;
	/*
	 * How long an expired value is kept so that a take whose load fails, or takes longer than
	 * the take waits, can return it, with TW_STALE; nanoseconds, ≥ 0. 0, the default, keeps
	 * none. No other call finds it. It counts for the limits and the statistics. It makes
	 * room before live entries, unless a take has returned it since it expired. A load that
	 * returns TW_NOT_FOUND has not failed, and removes it.
	 */
	tw_duration stale_if_error;
	/*
	 * How long a key is not loaded after a load that failed, nanoseconds, ≥ 0. 0, the default,
	 * has every take load it. Each failure in a row doubles this, up to the cache's lifetime.
	 * Takes meanwhile return the expired value (stale_if_error) or the status of the failed
	 * load at once, and count as misses; other lookups do not find the key. A set or delete
	 * ends it. Reloads (refresh_after) are tried again after this time, too. The number of
	 * failures is forgotten as long after the pause as that was long. A failure takes 200 bytes
	 * and the key until then; each shard remembers 256, and forgets the oldest for another.
	 */
	tw_duration retry_after;
	uint64_t reserved[4]; /* for later versions; must be 0 */
};

/*
 * Makes a cache whose entries live for `expire` nanoseconds, unless a call gives another lifetime.
 *
 * `expire` must be > 0. TW_FOREVER means that entries do not expire. `options` is copied and may be
 * NULL, for the defaults. *cache is NULL unless the status is TW_OK. Any thread. The call costs
 * about 5 KiB a shard, and three threads if the cache makes its own wheel, or four with `load`. It
 * needs no room in a given wheel's queue.
 *
 * Returns:
 *   TW_OK         the caller owns *cache, until tw_cache_destroy
 *   TW_INVALID    cache is NULL, expire ≤ 0, or an option is out of range
 *   TW_NO_MEMORY  nothing was made
 *   TW_SYSTEM     a thread could not be started
 *   TW_CLOSED     the given wheel was stopped
 */
TW_CHECKED
TW_API enum tw_status tw_cache_create(struct tw_cache **cache, tw_duration expire,
				      const struct tw_cache_options *options);

/*
 * Stops the use of the cache, so that it can be destroyed: calls that begin later return TW_CLOSED,
 * and so do takes that wait for a load.
 *
 * Other calls in progress complete as usual, and none stores a value after the return. A running
 * load continues, and the take that runs it returns what it supplies. on_value of each waiting
 * tw_cache_take_async is called with TW_CLOSED before the return. Entries stay until their deadline
 * or tw_cache_destroy, and on_remove is called as before.
 *
 * Any thread, also in a listener, a loader or a task, any number of times, at the same time as any
 * call except tw_cache_destroy. The call waits for no other call. It costs a lock for each shard.
 *
 * Returns:
 *   TW_OK         this call stopped it
 *   TW_CLOSED     it was stopped before
 *   TW_INVALID    no cache
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
 * It must be the last call on the cache, and no other call except those takes may be in progress.
 * While it runs, listeners may call the cache; these calls return TW_CLOSED. It must not be called
 * in a task of the wheel, where it could not return. In a listener, a loader or another callback of
 * this cache it does nothing. While it waits for on_remove, it drives a wheel with TW_DRIVE_CALLER,
 * as tw_poll does. If the wheel was stopped, this thread calls on_remove.
 */
TW_API void tw_cache_destroy(struct tw_cache *cache);

/*
 * Sets the key's value, with the cache's lifetime.
 *
 * Key and value are copied. The value may be empty, and NULL if it is empty. The copy of the value
 * begins at a multiple of 8 bytes, which need not be one of 16. A value that the key has is
 * replaced (TW_CAUSE_REPLACED). Lookups at the same time find the old value or the new one. With
 * any status but TW_OK nothing has changed.
 *
 * Any thread. The call costs a hash, an allocation, a copy, a short lock, and a read of the precise
 * clock. As a rule it makes a system call only if the new deadline is the earliest of its shard, or
 * if on_remove is to be called for entries that leave.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_INVALID    no cache, key is NULL, key_size is 0 or over TW_KEY_SIZE_MAX, value is NULL and
 *                 not empty, or value_size is over UINT32_MAX
 *   TW_FULL       the entry alone weighs more than max_bytes
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_READS(2, 3)
TW_READS(4, 5)
TW_API enum tw_status tw_cache_set(struct tw_cache *cache, const void *key, size_t key_size,
				   const void *value, size_t value_size);

/*
 * Sets the key's value as tw_cache_set does, with a lifetime of `expire` nanoseconds.
 *
 * `expire` must be > 0. Deadlines more than 146 years after the clock's start
 * count as TW_FOREVER.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_INVALID    no cache, a bad key or value as for tw_cache_set, or a bad `expire`
 *   TW_FULL       the entry alone weighs more than max_bytes
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_READS(2, 3)
TW_READS(4, 5)
TW_API enum tw_status tw_cache_set_with_expire(struct tw_cache *cache, const void *key,
					       size_t key_size, const void *value,
					       size_t value_size, tw_duration expire);

/*
 * Frees an adopted value, exactly once, after the value's last reader.
 *
 * The thread that finds the value unread calls the function, before the thread's call on the cache
 * returns. That may be a call for another key: any call but tw_cache_get, tw_cache_get_many,
 * tw_cache_acquire, tw_cache_get_stats, tw_cache_write_metrics and
 * those on a pinned entry. Of these only tw_cache_entry_release calls it, for the last pin. The
 * wheel's threads, or the thread that drives the wheel, call it too.
 *
 * So it may run while the program holds a lock around a call on the cache. It must not take such a
 * lock, nor wait for a thread that holds one. It must be quick, and cancellation is disabled
 * meanwhile. It must not call the cache, but may pin and release entries. If it releases the last
 * pin of an entry with an adopted value, that value is freed after it has returned, by the same
 * thread: a value may hold pins of other entries, in chains of any length.
 */
typedef void tw_cache_free_fn(void *value, size_t value_size, void *context);

/*
 * Describes the value that a key gets. A zeroed struct is an empty value with the cache's lifetime.
 *
 * A value without a free function is copied. With one the cache adopts it: on TW_OK the cache owns
 * `data`, and calls free_value(data, size, context) in the end. A value that outlives the cache and
 * all pins is adopted with a function that does nothing. With any status but TW_OK the caller still
 * owns the value. A copy begins at a multiple of 8 bytes, as by tw_cache_set.
 */
struct tw_cache_value {
	const void *data; /* may be NULL if `size` is 0 */
	size_t size;      /* bytes; at most UINT32_MAX of a copied value */
	/* The lifetime from the call on, nanoseconds, ≥ 0, with jitter. 0 means the cache's. */
	tw_duration expire;
	/* When the value expires, on the wheel's clock (tw_now), ≥ 0, without jitter. 0 means that
	 * `expire` counts; only one of the two may be given. If the time is past, the value is
	 * stored as one that has expired, and no call finds it. */
	tw_duration deadline;
	/* Counts for max_bytes. 0 weighs the entry as tw_cache_options.max_bytes says. */
	uint64_t weight;
	tw_cache_free_fn *free_value; /* NULL, the default, copies the value */
	void *context;                /* passed to free_value */
	uint64_t reserved[2];         /* for later versions; must be 0 */
};

/* Says for which keys tw_cache_put sets a value. A stored absence (negative_expire) is no value. */
enum tw_cache_put_mode {
	TW_CACHE_PUT_SET,    /* any key */
	TW_CACHE_PUT_ADD,    /* only one without a readable value */
	TW_CACHE_PUT_REPLACE /* only one with a readable value */
};

/*
 * Sets the key's value as tw_cache_set does, with the lifetime, weight and ownership that `value`
 * says, if `mode` allows it.
 *
 * Returns:
 *   TW_OK         the key has the value
 *   TW_EXISTS     TW_CACHE_PUT_ADD: the key has another value, which stays
 *   TW_NOT_FOUND  TW_CACHE_PUT_REPLACE: the key had no readable value
 *   TW_INVALID    no cache, a bad key as for tw_cache_set, no value, a field of it that is out of
 *                 range, or no such mode
 *   TW_FULL       the entry alone weighs more than max_bytes
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_put(struct tw_cache *cache, const void *key, size_t key_size,
				   const struct tw_cache_value *value, enum tw_cache_put_mode mode);

/*
 * Copies the key's value to `buffer`, at most `capacity` bytes of it.
 *
 * *value_size (may be NULL) becomes the full size of the value, or 0 if there is none. The call
 * counts as a use. Any thread; it waits for no other thread, but a thread's first call allocates.
 * It costs a hash, three cache lines, the copy, and a read of the coarse clock. Near a deadline it
 * reads the precise clock too.
 *
 * Returns:
 *   TW_OK         the value was copied
 *   TW_TRUNCATED  the value is larger than the buffer; its first `capacity` bytes were copied
 *   TW_NOT_FOUND  the key has no readable value
 *   TW_INVALID    no cache, a bad key, or buffer is NULL and capacity > 0
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_READS(2, 3)
TW_FILLS(4, 5)
TW_API enum tw_status tw_cache_get(struct tw_cache *cache, const void *key, size_t key_size,
				   void *buffer, size_t capacity, size_t *value_size);

/* A flag of tw_cache_acquire: the call has no effect on the entry. It counts as no hit, miss or use,
 * does not restart the time of `idle`, and queues no reload. */
#define TW_CACHE_NO_USE 1u

/*
 * Pins the key's entry, without a copy. The entry stays readable until tw_cache_entry_release,
 * whatever happens to the key or the cache.
 *
 * `flags` is 0 or TW_CACHE_NO_USE. Without a flag the call counts and costs as tw_cache_get does.
 * *entry is NULL unless the status is TW_OK.
 *
 * Returns:
 *   TW_OK         *entry is pinned
 *   TW_NOT_FOUND  the key has no readable value
 *   TW_INVALID    no cache, a bad key, other flags, or entry is NULL
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_acquire(struct tw_cache *cache, const void *key, size_t key_size,
				       unsigned flags, const struct tw_cache_entry **entry);

/*
 * Return the value and the key of an entry.
 *
 * The entry must be pinned, or be the one that a callback was called with. *size (may be NULL)
 * becomes the size in bytes. A value that was copied begins at a multiple of 8 bytes: a uint64_t or
 * a pointer can be read in place, a type of larger alignment must be copied out. An adopted value
 * is at the address that was given. Any thread.
 *
 * Returns: the bytes. An empty value that was copied is not NULL.
 */
TW_NONNULL(1)
TW_API const void *tw_cache_entry_value(const struct tw_cache_entry *entry, size_t *size);
TW_NONNULL(1)
TW_API const void *tw_cache_entry_key(const struct tw_cache_entry *entry, size_t *size);

/*
 * Returns the time when the entry expires. With `idle` each hit changes it. Any thread.
 *
 * The clock of a cache's own wheel is CLOCK_MONOTONIC: the deadline less that time is how long the
 * entry is still readable. An entry acquired with TW_CACHE_NO_USE is asked without effect on it.
 *
 * Returns: the deadline on the wheel's clock, or TW_FOREVER if the entry does not expire.
 */
TW_NONNULL(1)
TW_API tw_duration tw_cache_entry_deadline(const struct tw_cache_entry *entry);

/*
 * Pins the entry another time. Each pin needs a release of its own. Any thread.
 *
 * Returns: the entry.
 */
TW_NONNULL(1)
TW_API const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry);

/* Releases one pin of the entry, also after tw_cache_destroy. NULL is allowed. Any thread. */
TW_API void tw_cache_entry_release(const struct tw_cache_entry *entry);

/*
 * Removes the key's entry (TW_CAUSE_EXPLICIT).
 *
 * The value of a load of the key that is under way will not be stored, and takes that begin later
 * do not wait for it. Any thread. The call costs as much as tw_cache_set.
 *
 * Returns:
 *   TW_OK         the entry is removed
 *   TW_NOT_FOUND  the key had no readable value. An expired value or a stored absence
 *                 (negative_expire) is removed even so
 *   TW_INVALID    no cache, or a bad key
 *   TW_CLOSED     the cache was stopped
 */
TW_READS(2, 3)
TW_API enum tw_status tw_cache_delete(struct tw_cache *cache, const void *key, size_t key_size);

/* Says what tw_cache_compute does with a key. */
enum tw_cache_verdict {
	TW_CACHE_KEEP,    /* the entry stays as it is */
	TW_CACHE_REPLACE, /* the key gets the value */
	TW_CACHE_TOUCH,   /* the entry gets the lifetime or deadline of the value; a use */
	TW_CACHE_DELETE   /* the entry is removed, as by tw_cache_delete */
};

/*
 * Decides what happens to the key of `entry`, and fills in `value` for TW_CACHE_REPLACE and
 * TW_CACHE_TOUCH.
 *
 * `entry` is NULL if the key has no readable value. `value` is all 0 before the call; its data must
 * stay readable until tw_cache_compute returns. The function is called under the lock of the key's
 * shard. It must be quick, and must not call the cache. It may pin the entry by tw_cache_entry_pin,
 * and so keep one that it deletes.
 *
 * Returns: what tw_cache_compute does with the key.
 */
typedef enum tw_cache_verdict tw_cache_compute_fn(void *context, const struct tw_cache_entry *entry,
						  struct tw_cache_value *value);

/*
 * Reads and changes the key in one step, as `compute` decides. No other call that changes the key
 * comes in between.
 *
 * A replaced value leaves with TW_CAUSE_REPLACED, a deleted one with TW_CAUSE_EXPLICIT. After
 * either the value of a load of the key that is under way will not be stored. The call counts as no
 * hit or miss, and does not wait for loads. With any status but TW_OK nothing has changed, and an
 * adopted value is still the caller's. Any thread. The call costs as much as tw_cache_set and
 * `compute`, or half of that for TW_CACHE_TOUCH.
 *
 * Returns:
 *   TW_OK         the verdict of `compute` is carried out, also if it deleted nothing
 *   TW_NOT_FOUND  TW_CACHE_TOUCH: the key has no readable value
 *   TW_INVALID    no cache, a bad key, no `compute`, no such verdict, or a value that is not valid
 *                 for tw_cache_put
 *   TW_FULL       the entry alone weighs more than max_bytes
 *   TW_NO_MEMORY  out of memory. A thread's first call allocates, and so may an earlier deadline
 *   TW_CLOSED     the cache was stopped
 */
TW_READS(2, 3)
TW_API enum tw_status tw_cache_compute(struct tw_cache *cache, const void *key, size_t key_size,
				       tw_cache_compute_fn *compute, void *context);

/*
 * Gives a load its value, with the lifetime, weight and ownership that `value` says.
 *
 * The loader calls it, or the thread that has the loading of a kept load. If a load gets several
 * values, the last one counts. The lifetime (expire) counts from the end of the load.
 *
 * Returns:
 *   TW_OK         the load has the value
 *   TW_INVALID    no loading, no value, or a field of it that is out of range
 *   TW_NO_MEMORY  out of memory; the loader should return this status
 *   TW_CLOSED     the load has ended, in tw_cache_destroy or before
 */
TW_CHECKED
TW_API enum tw_status tw_cache_load_give(struct tw_cache_loading *loading,
					 const struct tw_cache_value *value);

/*
 * Keeps the load beyond its loader's return. The load then ends by tw_cache_load_end, and the
 * status that the loader returns is ignored.
 *
 * The loader calls it before it returns. So a loader can send a request and return. Takes of the
 * key wait meanwhile. `loading` stays valid, also after tw_cache_destroy, until tw_cache_load_end.
 * One thread must call that, exactly once.
 *
 * Returns:
 *   TW_OK         the load is kept
 *   TW_INVALID    no loading, or the load is kept already or has ended
 */
TW_CHECKED
TW_API enum tw_status tw_cache_load_keep(struct tw_cache_loading *loading);

/*
 * Ends the load, as if its loader had returned `status`. TW_LOAD_FAILED abandons the load.
 *
 * The loader may call it, for its own load. For a kept load any thread calls it, once, at any time;
 * `loading` is invalid afterwards. The call costs as much as tw_cache_set. It calls on_value of
 * each tw_cache_take_async that waits for the load.
 *
 * Returns:
 *   TW_OK         this call ended the load
 *   TW_CLOSED     the load had ended before, in tw_cache_destroy or in the loader
 *   TW_INVALID    no loading
 */
TW_API enum tw_status tw_cache_load_end(struct tw_cache_loading *loading, enum tw_status status);

/*
 * Returns the key's entry, pinned. If the key has none, the call loads it with `load`.
 *
 * This thread calls `load`. If `load` is NULL, it calls the cache's own loader
 * (tw_cache_options.load) with load_context. One load runs at a time for each key. Other takes of
 * the key wait for its end and return its result. `wait` limits this waiting, and the waiting for a
 * load that this call's loader keeps. It does not interrupt the loader. It counts from the start of
 * the call, in nanoseconds of real time, also on a manual clock. `wait` ≤ 0 does not wait at all,
 * and TW_FOREVER waits without limit.
 *
 * The call returns a loaded value even if the cache cannot store it: if the key was set or deleted
 * during the load (a value set then stays), if a set would return TW_FULL, or if its lifetime is
 * over. A take that begins after such a set or delete does not wait for that load: it finds the
 * value set, or begins another load. So tw_cache_delete frees a key whose source hangs. If a load
 * still waits for the wheel's pool, the take runs its own loader instead. The take counts as a
 * hit, a miss or an absence, by what it found first. *entry is NULL unless the status is TW_OK or
 * TW_STALE.
 *
 * Returns:
 *   TW_OK           *entry is pinned
 *   TW_STALE        the load failed, or the time `wait` is over, and *entry is pinned, with an
 *                   expired value (stale_if_error)
 *   TW_NOT_FOUND    the source does not have the key, by the loader or by a stored absence
 *   TW_LOAD_FAILED  the loader supplied no value. If the loader returned another error, the call
 *                   returns that one
 *   TW_TIMED_OUT    the time `wait` is over, and there is no such value
 *   TW_INVALID      no cache, a bad key, no loader, entry is NULL, or the call is made inside the
 *                   load that it would join. A circle through several threads, or through a kept
 *                   load, is not detected; there `wait` is the limit
 *   TW_NO_MEMORY    out of memory
 *   TW_CLOSED       the cache was stopped
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
 * function is called with no lock held: by tw_cache_take_async itself if the result is known at
 * once, else by the thread that ends the load or stops the cache. So it should be quick. It may
 * call the cache, except tw_cache_destroy and tw_cache_flush.
 *
 * A function that takes the next key by tw_cache_take_async recurses if that key is there: each
 * such link of a chain takes about 300 bytes of the stack, and the function's own frame. A chain of
 * unknown length must go on from elsewhere now and then, such as an event loop or an alarm.
 */
typedef void tw_cache_value_fn(void *context, enum tw_status status,
			       const struct tw_cache_entry *entry);

/*
 * Takes a key as tw_cache_take does, without waiting, for threads such as event loops. It calls
 * on_value with the result.
 *
 * The cache's own loader (tw_cache_options.load) loads missing keys, on the wheel's pool. One
 * load serves all takes of the key of any kind. On TW_OK on_value is called exactly once. If the
 * key has an entry or a stored absence, it is called before the return, on the stack of this call.
 * With any other status it is not called. Any thread. The call costs a lookup, and an allocation.
 * The number of waiting takes has no limit.
 *
 * Returns:
 *   TW_OK         on_value is called
 *   TW_INVALID    no cache, a bad key, no on_value, or the cache has no loader
 *   TW_NO_MEMORY  out of memory
 *   TW_CLOSED     the cache was stopped
 */
TW_CHECKED
TW_READS(2, 3)
TW_API enum tw_status tw_cache_take_async(struct tw_cache *cache, const void *key, size_t key_size,
					  tw_cache_value_fn *on_value, void *context);

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
 * *found (may be NULL) becomes the number of items with TW_OK or TW_TRUNCATED. Any thread.
 *
 * Returns:
 *   TW_OK         each item has its own status
 *   TW_INVALID    no cache, or items is NULL and n > 0
 *   TW_NO_MEMORY  out of memory: a thread's first call allocates
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_get_many(struct tw_cache *cache, struct tw_cache_lookup *items,
					size_t n, size_t *found);

/*
 * Removes every entry that was set before the call (TW_CAUSE_EXPLICIT).
 *
 * The values of loads under way will not be stored, and takes that begin later do not wait for
 * them. Entries set during the call may stay or leave. Any thread. The call takes a lock for at
 * most 64 entries at a time.
 *
 * Returns:
 *   TW_OK         the entries are removed
 *   TW_INVALID    no cache
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_clear(struct tw_cache *cache);

/*
 * Calls visit(context, entry) for each readable entry, until it returns 0.
 *
 * An entry that exists during the whole call is visited exactly once. A value that comes or leaves
 * during the call is visited at most once. No entry is past its deadline when its visit begins.
 * Visits count as no hits or uses. No lock is held: `visit` may call the cache, and may keep an
 * entry by tw_cache_entry_pin. Any thread. The call costs a list
 * of pointers to the entries of one shard, which are pinned meanwhile. It works in short steps.
 *
 * Returns:
 *   TW_OK         all entries were visited, or `visit` returned 0
 *   TW_INVALID    no cache or no visit
 *   TW_NO_MEMORY  not all entries were visited
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_each(struct tw_cache *cache,
				    int (*visit)(void *context, const struct tw_cache_entry *entry),
				    void *context);

/*
 * Gives the cache new limits, max_entries and max_bytes. 0 means no limit.
 *
 * On return the cache is within its limits (TW_CAUSE_SIZE), apart from sets by other threads at
 * that moment. Any thread. The call works in short steps while others read and write. A cache whose
 * limits have been taken away may get others.
 *
 * Returns:
 *   TW_OK         the limits hold
 *   TW_INVALID    no cache, or it was created without a limit
 *   TW_CLOSED     the cache was stopped
 */
TW_API enum tw_status tw_cache_set_limit(struct tw_cache *cache, uint64_t max_entries,
					 uint64_t max_bytes);

/*
 * Fills in the cache's statistics.
 *
 * Any thread, also after tw_cache_stop. The call costs a sum over the shards and over the threads
 * that used the cache.
 *
 * Returns:
 *   TW_OK         *stats is filled in
 *   TW_INVALID    no cache, or stats is NULL
 */
TW_API enum tw_status tw_cache_get_stats(struct tw_cache *cache, struct tw_cache_stats *stats);

/*
 * Writes the cache's statistics as text for Prometheus (its format 0.0.4).
 *
 * Times are in seconds. Each name begins with `prefix`, or with "tw_cache" if prefix is NULL, and
 * "_". The call calls `write` with `context` and whole lines, in this thread, with no lock held.
 * Any thread, also after tw_cache_stop. It costs as much as tw_cache_get_stats.
 *
 * Returns:
 *   TW_OK         all lines were written
 *   TW_INVALID    no cache, no `write`, or a prefix that cannot begin a name or is longer than
 *                 TW_METRICS_PREFIX_MAX bytes
 */
TW_API enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write,
					     void *context, const char *prefix);

/*
 * Removes expired entries, waits for on_remove, and frees memory that no thread reads any more.
 *
 * The call removes the entries whose deadline, with stale_if_error, had passed at the wheel's last
 * tick. Entries that expired since then may stay one tick longer; no call returns them. It then
 * waits until on_remove has returned for every removal before the call. While it waits, it drives a
 * wheel with TW_DRIVE_CALLER, as tw_poll does.
 *
 * Returns:
 *   TW_OK         done
 *   TW_INVALID    no cache, or the call was made in a task of the wheel, in a loader or in another
 *                 callback of this cache, where it does nothing
 *   TW_CLOSED     the cache was stopped, or the wheel was. Then on_remove may be called for some
 *                 removals only by tw_cache_destroy
 */
TW_API enum tw_status tw_cache_flush(struct tw_cache *cache);

#ifdef __cplusplus
}
#endif

#endif
