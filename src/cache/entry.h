/* SPDX-License-Identifier: MIT */
/*
 * An entry is a key with its value, in one block of memory. It belongs to the cache while in a
 * table, then to the pins. The last reference frees it, on any thread, with or without a cache.
 */
#ifndef CACHE_ENTRY_H
#define CACHE_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <timingwheel/cache.h>

#include "base/clock.h"
#include "base/list.h"
#include "pool.h"

/* These flags say what an entry is, for its life; most entries have none. */
enum {
	/* These lie before the key, in this order. */
	ENTRY_EXTENDED = 1, /* struct entry_extension */
	ENTRY_ADOPTED = 2,  /* struct entry_adopted */
	ENTRY_AGING = 4,    /* struct entry_age */
	ENTRY_ABSENT = 8    /* no value: the source is known to have none */
};

/* ENTRY_OF_TABLE is the table's reference in `references`. It outweighs all pins, and counts of
 * them that are less than 0, too (pins.c). */
#define ENTRY_OF_TABLE (UINT32_C(1) << 31)

/* These bits say how an entry stands with its shard. */
enum {
	ENTRY_FILED = 1023,  /* the place where its hash is filed to be examined, or 0 */
	ENTRY_LINKED = 1024, /* in the table */
	/* These name its queue in the policy. */
	ENTRY_SMALL = 0,
	ENTRY_MAIN = 2048,
	ENTRY_STALE = 4096, /* it was found expired, and is kept for stale_if_error */
	/* Once it was removed, the highest bits say why. */
	ENTRY_CAUSE_SHIFT = 13,
	ENTRY_CAUSE = 0xffff >> ENTRY_CAUSE_SHIFT << ENTRY_CAUSE_SHIFT
};

struct entry_extension {
	uint64_t weight; /* constant */
	/* The end of its own lifetime, where each hit moves the deadline. Written under the shard's
	 * lock; read by any thread. */
	_Atomic tw_duration end;
};

struct entry_adopted {
	void *value;
	size_t value_size;
	tw_cache_free_fn *free_value;
	void *context;
};

/* The age says when the key may be loaded again. Written under the shard's lock. */
struct entry_age {
	_Atomic tw_duration refresh_at; /* any thread; TW_FOREVER if never, or while it is loaded */
};

struct tw_cache_entry {
	struct pool_block block; /* see entry_state() */
	union {
		/* While it is in the table; under the shard's lock. In no queue, next is NULL. */
		struct list policy_link;
		/* After that; retired_next under the lock of the shard, then of the thread that has
		 * it; removal_next under the lock of the removals. */
		struct {
			struct tw_cache_entry *retired_next;
			struct tw_cache_entry *removal_next;
		};
	};
	_Atomic uint32_t references; /* the table's, until no reader can find it; counted pins */
	uint32_t hash;               /* the key's, the lower half; constant */
	uint16_t key_size;           /* constant */
	uint8_t kind;                /* constant */
	_Atomic uint8_t uses;        /* two bits; see policy_use() */
	uint32_t value_size;         /* size of a copied value; constant */
	/* Moved by lookups, too, where lifetimes slide: entry_deadline(). */
	_Atomic tw_duration deadline;
	unsigned char bytes[]; /* extension, adopted, age, key, value; constant, except times */
};

/* A plan says what an entry is made of. */
struct entry_plan {
	const void *key;
	size_t key_size;
	uint64_t hash;
	const void *value;                    /* to copy; NULL if `adopted` is set */
	size_t value_size;                    /* 0 if `adopted` is set */
	const struct tw_cache_value *adopted; /* with ENTRY_ADOPTED, or NULL: the value is copied */
	/* > 0: the lifetime from the put on, without jitter. < 0: minus the deadline. */
	tw_duration life;
	/* These are completed by cache_plan(). With a weight of its own, kind has
	 * ENTRY_EXTENDED. */
	uint8_t kind;
	size_t size;     /* bytes of the block that it needs */
	uint64_t weight; /* if 0 before: the memory that it takes, adopted values included */
	uint64_t birth;  /* the era in which it is made */
};

/* ENTRY_SHARE is what an entry takes beside its cell: its share of the table and what is filed. */
enum { ENTRY_SHARE = 40 };

/* Copies an entry without an adopted value to the block, with one reference, or returns NULL. */
struct tw_cache_entry *entry_copy(void *block, const struct tw_cache_entry *entry, uint64_t birth);
/* Gives up the reference of the table, or the maker's, as tw_cache_entry_release does a pin. */
void entry_let_go(struct tw_cache_entry *entry);
/* Does as entry_let_go(), into spare cells of its pool. Leaves an adopted value with the caller. */
void entry_let_go_to_spare(struct tw_cache_entry *entry, struct pool_spare *spare);

/* These are entry_size() and entry_weight() if something lies before the key. */
size_t entry_size_beyond(const struct tw_cache_entry *entry);
uint64_t entry_weight_beyond(const struct tw_cache_entry *entry);

/* Fetches the lines of an entry that all but its links need. Takes any address, NULL too. */
static inline void entry_prefetch(const struct tw_cache_entry *entry)
{
	const uintptr_t address = (uintptr_t)entry;

	__builtin_prefetch((const void *)(address + offsetof(struct tw_cache_entry, references)));
	__builtin_prefetch((const void *)(address + offsetof(struct tw_cache_entry, bytes) + 72));
}

/* Copies as memcpy does, without a call for the sizes that most keys and values have. */
static inline __attribute__((always_inline)) void bytes_copy(void *to, const void *from,
							     size_t size)
{
	unsigned char *bytes = to;
	const unsigned char *source = from;

	if (size < 16 || size > 64) {
		memcpy(to, from, size);
		return;
	}
	/* It goes from one end to the other, so most addresses are known before the size is. */
	memcpy(bytes, source, 16);
	if (size >= 32)
		memcpy(bytes + 16, source + 16, 16);
	if (size >= 48)
		memcpy(bytes + 32, source + 32, 16);
	if (size == 64)
		memcpy(bytes + 48, source + 48, 16);
	else if (size % 16 != 0)
		memcpy(bytes + size - 16, source + size - 16, 16);
}

/* Returns the state bits. Under the shard's lock; constant once the entry was removed. */
static inline unsigned entry_state(const struct tw_cache_entry *entry)
{
	/* relaxed: written under the same lock, or read by the call for the removal. */
	return atomic_load_explicit(&((struct tw_cache_entry *)entry)->block.state,
				    memory_order_relaxed);
}

/* Returns whether the entry is in the table. If not, another look at the key's slot finds what is
 * there in its place. Inside an era. */
static inline bool entry_is_linked(const struct tw_cache_entry *entry)
{
	/* acquire: comes after the change of the slot; pairs with entry_set_state(). */
	return atomic_load_explicit(&((struct tw_cache_entry *)entry)->block.state,
				    memory_order_acquire) &
	       ENTRY_LINKED;
}

static inline void entry_set_state(struct tw_cache_entry *entry, unsigned state)
{
	/* release: publishes all of a linked entry, and the slot of one that is not any more; pairs
	 * with the load in compact.c, and with entry_is_linked(). */
	atomic_store_explicit(&entry->block.state, (uint16_t)state, memory_order_release);
}

/* Returns the era in which the entry was made. */
static inline uint64_t entry_birth(const struct tw_cache_entry *entry)
{
	return (uint64_t)entry->block.birth_high << 32 | entry->block.birth_low;
}

static inline void entry_set_birth(struct tw_cache_entry *entry, uint64_t era)
{
	entry->block.birth_low = (uint32_t)era;
	entry->block.birth_high = (uint16_t)(era >> 32);
}

static inline unsigned entry_filed(const struct tw_cache_entry *entry)
{
	return entry_state(entry) & ENTRY_FILED;
}

static inline void entry_set_filed(struct tw_cache_entry *entry, unsigned place)
{
	entry_set_state(entry, (entry_state(entry) & ~(unsigned)ENTRY_FILED) | place);
}

static inline enum tw_cache_cause entry_cause(const struct tw_cache_entry *entry)
{
	return (enum tw_cache_cause)(entry_state(entry) >> ENTRY_CAUSE_SHIFT);
}

/* Returns how much lies before the key in an entry of that kind. */
static inline size_t kind_size(unsigned kind)
{
	return (kind & ENTRY_EXTENDED ? sizeof(struct entry_extension) : 0) +
	       (kind & ENTRY_ADOPTED ? sizeof(struct entry_adopted) : 0) +
	       (kind & ENTRY_AGING ? sizeof(struct entry_age) : 0);
}

static inline struct entry_extension *entry_extension(const struct tw_cache_entry *entry)
{
	return (struct entry_extension *)(void *)entry->bytes;
}

static inline struct entry_adopted *entry_adopted(const struct tw_cache_entry *entry)
{
	return (struct entry_adopted *)(void *)(entry->bytes +
						kind_size(entry->kind & ENTRY_EXTENDED));
}

static inline struct entry_age *entry_age(const struct tw_cache_entry *entry)
{
	return (struct entry_age *)(void *)(entry->bytes +
					    kind_size(entry->kind &
						      (ENTRY_EXTENDED | ENTRY_ADOPTED)));
}

/* Returns whether the entry has more than the key and the value. */
static inline bool entry_has_more(const struct tw_cache_entry *entry)
{
	return entry->kind & (ENTRY_EXTENDED | ENTRY_ADOPTED | ENTRY_AGING);
}

static inline const unsigned char *entry_key(const struct tw_cache_entry *entry)
{
	return __builtin_expect(entry_has_more(entry), 0) ? entry->bytes + kind_size(entry->kind)
							  : entry->bytes;
}

/* Returns the size with padding: the value begins at a multiple of 8 bytes. */
static inline size_t entry_padded_key_size(size_t key_size)
{
	return (key_size + 7) & ~(size_t)7;
}

/* Returns the size of the entry's block: that of its plan. */
static inline size_t entry_size(const struct tw_cache_entry *entry)
{
	if (__builtin_expect(entry_has_more(entry), 0))
		return entry_size_beyond(entry);
	return sizeof(*entry) + entry_padded_key_size(entry->key_size) + entry->value_size;
}

/* Returns what the entry counts for limits in bytes: the weight of its plan. */
static inline uint64_t entry_weight(const struct tw_cache_entry *entry)
{
	if (__builtin_expect(entry_has_more(entry), 0))
		return entry_weight_beyond(entry);
	return ENTRY_SHARE + pool_cell_size(entry_size(entry));
}

static inline const void *entry_value(const struct tw_cache_entry *entry, size_t *size)
{
	if (__builtin_expect(entry_has_more(entry), 0) && (entry->kind & ENTRY_ADOPTED)) {
		*size = entry_adopted(entry)->value_size;
		return entry_adopted(entry)->value;
	}
	*size = entry->value_size;
	return entry_key(entry) + entry_padded_key_size(entry->key_size);
}

/* DEADLINE_LAST is the last deadline that is a time; later ones are TW_FOREVER. */
#define DEADLINE_LAST (TW_FOREVER / 2)

static inline tw_duration deadline_after(tw_duration now, tw_duration lifetime)
{
	tw_duration deadline = time_add(now, lifetime);

	return deadline <= DEADLINE_LAST ? deadline : TW_FOREVER;
}

/*
 * The deadline, end and refresh time of an entry are numbers by themselves: they publish nothing,
 * so loads and stores of them are relaxed. The entry is published with its first deadline.
 */
static inline tw_duration time_load(const _Atomic tw_duration *time)
{
	return atomic_load_explicit(time, memory_order_relaxed);
}

static inline void time_store(_Atomic tw_duration *time, tw_duration value)
{
	atomic_store_explicit(time, value, memory_order_relaxed);
}

/* Returns the entry's deadline. If it is positive, the entry may be read until then. If it is
 * negative, the entry may never be read again, by any clock: entry_try_to_expire() has found it
 * past its deadline, which was -deadline. */
static inline tw_duration entry_deadline(const struct tw_cache_entry *entry)
{
	return time_load(&entry->deadline);
}

/* Replaces *deadline by `moved`. Returns false if it was another, and sets *deadline to that. */
static inline bool entry_move_deadline(struct tw_cache_entry *entry, tw_duration *deadline,
				       tw_duration moved)
{
	/* acquire, also on failure: sees the end that was set before the deadline, and that the
	 * entry is not linked; pairs with change_touch() and entry_carry_deadline(). Readers
	 * of `moved` see that, too: an exchange hands it on. */
	return atomic_compare_exchange_strong_explicit(&entry->deadline, deadline, moved,
						       memory_order_acquire, memory_order_acquire);
}

/* Returns true if the entry is past its deadline: nothing moves that any more. *deadline is what it
 * is or was. Under the shard's lock. */
bool entry_try_to_expire(struct tw_cache_entry *entry, tw_duration now, tw_duration *deadline);
/* Returns whether an entry past `deadline` has a value, and that was less than `stale` ago. */
static inline bool entry_is_stale(const struct tw_cache_entry *entry, tw_duration deadline,
				  tw_duration now, tw_duration stale)
{
	return !(entry->kind & ENTRY_ABSENT) && time_add(deadline, stale) > now;
}

/* Moves the deadline of a copy on to that of the entry, to which hits may have moved it since the
 * copy was made. The copy has the entry's slot, and the entry is not linked any more. Under the
 * shard's lock. */
void entry_carry_deadline(struct tw_cache_entry *copy, struct tw_cache_entry *entry);

/* Returns whether the one reference is the caller's. */
static inline bool entry_is_alone(const struct tw_cache_entry *entry)
{
	/* acquire: no other thread has one, so no other thread can be looking at it; pairs with
	 * entry_give_up(). */
	return atomic_load_explicit(&((struct tw_cache_entry *)entry)->references,
				    memory_order_acquire) == ENTRY_OF_TABLE;
}

/* Counts a pin. The caller has a reference or is inside an epoch, so the entry can't be freed. */
static inline void entry_pin(const struct tw_cache_entry *entry)
{
	struct tw_cache_entry *mutable_entry = (struct tw_cache_entry *)entry;

	/* relaxed: a reference of the caller's or of the table keeps it alive until this is
	 * done. */
	atomic_fetch_add_explicit(&mutable_entry->references, 1, memory_order_relaxed);
}

/* Gives up a counted pin. The last reference frees the entry. */
void entry_unpin(struct tw_cache_entry *entry);

/* Fills what an entry has before its key, for entry_make(). */
void entry_make_more(struct tw_cache_entry *entry, const struct entry_plan *plan);

/* Makes an entry in the block, with one reference, the caller's. Returns NULL if there is none. */
static inline __attribute__((always_inline)) struct tw_cache_entry *entry_make(
	struct pool_block *block, const struct entry_plan *plan)
{
	struct tw_cache_entry *entry = (struct tw_cache_entry *)(void *)block;
	unsigned char *key;

	if (!entry)
		return NULL;
	entry_set_birth(entry, plan->birth);
	entry_set_state(entry, 0);
	entry->policy_link.next = NULL;
	atomic_init(&entry->references, ENTRY_OF_TABLE);
	entry->hash = (uint32_t)plan->hash;
	entry->key_size = (uint16_t)plan->key_size;
	entry->kind = plan->kind;
	atomic_init(&entry->uses, 0);
	entry->value_size = (uint32_t)plan->value_size;
	atomic_init(&entry->deadline, TW_FOREVER);
	if (__builtin_expect(entry_has_more(entry), 0))
		entry_make_more(entry, plan);
	key = (unsigned char *)entry_key(entry);
	bytes_copy(key, plan->key, plan->key_size);
	if (plan->value_size > 0)
		bytes_copy(key + entry_padded_key_size(plan->key_size), plan->value,
			   plan->value_size);
	return entry;
}

#endif
