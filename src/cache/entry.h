/* SPDX-License-Identifier: MIT */
/*
 * An entry is a key with its value, in one cell of a pool. It belongs to the cache while in a
 * table, then to the pins. The last reference frees it, on any thread, with or without a cache.
 *
 * Any thread may look into any cell at any time, also a free one, by entry_life(), word_load(),
 * entry_try_pin() and the functions named peek: what they return counts only if the entry is in its
 * slot after that (lookup.c).
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
#include "base/compiler.h"
#include "base/list.h"
#include "pool.h"
#include "shared.h"

/* The thread sanitizer knows only atomics. */
#if defined(__SSE2__) && !SANITIZER_THREAD
#include <emmintrin.h>
#define CACHE_HAS_SSE2 1
#else
#define CACHE_HAS_SSE2 0
#endif

/* These flags say what an entry is, for its life; most entries have none. */
enum {
	/* These lie before the key, in this order. */
	ENTRY_EXTENDED = 1, /* struct entry_extension */
	ENTRY_ADOPTED = 2,  /* struct entry_adopted */
	ENTRY_AGING = 4,    /* struct entry_age */
	ENTRY_ABSENT = 8    /* no value: the source is known to have none */
};

/* These bits say how an entry stands with its shard. */
enum {
	ENTRY_FILED = 1023,  /* the place where its hash is filed to be examined, or 0 */
	ENTRY_LINKED = 1024, /* in the table */
	/* These name its queue in the policy. */
	ENTRY_SMALL = 0,
	ENTRY_MAIN = 2048,
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
	/* The number of the cell's life, and the state in the lower 16 bits. No life of a cell has
	 * the number of another. Written under the shard's lock; read by any thread. */
	_Atomic uint64_t life;
	union {
		/* While it is in the table; under the shard's lock. In no queue, next is NULL. */
		struct list policy_link;
		/* After that; next_freed with the last reference; removal_next under the lock of
		 * the removals. */
		struct {
			struct tw_cache_entry *next_freed;
			struct tw_cache_entry *removal_next;
		};
	};
	_Atomic uint32_t references; /* the table's or the maker's, and pins; 0 in a free cell */
	uint32_t hash;               /* the key's, the lower half; constant */
	uint16_t key_size;           /* constant */
	uint8_t kind;                /* constant */
	_Atomic uint8_t uses;        /* two bits; see policy_use() */
	uint32_t value_size;         /* size of a copied value; constant */
	/* Moved by lookups, too, where lifetimes slide: entry_deadline(). */
	_Atomic tw_duration deadline;
	_Alignas(8) unsigned char bytes[]; /* extension, adopted, age, key, value; constant, except
					    * times; key and value padded to words */
};

/* A plan says what an entry is made of. */
struct entry_plan {
	const void *key;
	size_t key_size;
	uint64_t hash;
	const void *value;            /* to copy; NULL with ENTRY_ADOPTED */
	size_t value_size;            /* 0 with ENTRY_ADOPTED */
	struct entry_adopted adopted; /* with that: the caller's, or a copy in memory of its own */
	/* > 0: the lifetime from the put on, without jitter. < 0: minus the deadline. */
	tw_duration life;
	/* These are completed by cache_plan(). With a weight of its own, kind has
	 * ENTRY_EXTENDED. */
	uint8_t kind;
	size_t size;     /* bytes of the cell that it needs */
	uint64_t weight; /* if 0 before: the memory that it takes, adopted values included */
};

/* ENTRY_SHARE is what an entry takes beside its cell: its share of the table and what is filed. */
enum { ENTRY_SHARE = 40 };

/* Copies the plan's value to memory of its own, which the entry adopts. Returns false if out of
 * memory. */
bool entry_plan_map(struct entry_plan *plan, struct pool *pool);
/* Frees that copy, if there is one: no entry was made of it. */
void entry_plan_unmap(const struct entry_plan *plan, struct pool *pool);
/* Copies an entry without an adopted value to the cell, with one reference, or returns NULL. */
struct tw_cache_entry *entry_copy(void *cell, const struct tw_cache_entry *entry);
/* Gives up the maker's reference of an entry that was in no table, or does nothing for NULL. An
 * adopted value is freed, or left with the caller. */
void entry_let_go(struct tw_cache_entry *entry, bool frees_value);
/* Frees an entry without references, or does nothing for NULL, and those that are linked to it by
 * next_freed. It may call functions of the program. */
void entry_free(struct tw_cache_entry *entry);

/* Does what entry_weight() does if something lies before the key. */
uint64_t entry_weight_beyond(const struct tw_cache_entry *entry);

/* Fetches the lines of an entry that all but its links need. Takes any address, NULL too. */
static inline void entry_prefetch(const struct tw_cache_entry *entry)
{
	const uintptr_t address = (uintptr_t)entry;

	__builtin_prefetch((const void *)(address + offsetof(struct tw_cache_entry, references)));
	__builtin_prefetch((const void *)(address + offsetof(struct tw_cache_entry, bytes) + 72));
}

/* ---- Words that are copied while they may change ---- */

static inline uint64_t word_load(const unsigned char *word)
{
	/* relaxed: what is copied counts only if the entry is found in its slot after that. */
	return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)word, memory_order_relaxed);
}

static inline void word_store(unsigned char *word, uint64_t value)
{
	/* relaxed: published with the slot. */
	atomic_store_explicit((_Atomic uint64_t *)(void *)word, value, memory_order_relaxed);
}

/* Copies `size` bytes to whole words; the last one is padded by zeros. */
static inline void words_store(unsigned char *to, const void *from, size_t size)
{
	const unsigned char *source = from;
	uint64_t word;

#pragma GCC unroll 4
	for (; size >= sizeof(word); size -= sizeof(word)) {
		memcpy(&word, source, sizeof(word));
		word_store(to, word);
		source += sizeof(word);
		to += sizeof(word);
	}
	if (size > 0) {
		word = 0;
		memcpy(&word, source, size);
		word_store(to, word);
	}
}

#if CACHE_HAS_SSE2
static inline void vector_move(unsigned char *to, const unsigned char *from)
{
	typedef struct {
		unsigned char bytes[16];
	} vector;
	__m128i words;

	/* This does what word_load() and word_store() do: x86 moves each aligned word whole, and a
	 * torn copy does not count. volatile: it is done here, and once. */
	__asm__ volatile("movdqu %2, %1\n\tmovdqu %1, %0"
			 : "=m"(*(vector *)(void *)to), "=&x"(words)
			 : "m"(*(const vector *)(const void *)from));
}

/* Copies 16 to 64 bytes from or to words, as most values have. */
static inline void words_move_usual(unsigned char *to, const unsigned char *from, size_t size)
{
	/* It goes from one end to the other, so most addresses are known before the size is. */
	vector_move(to, from);
	if (size >= 32)
		vector_move(to + 16, from + 16);
	if (size >= 48)
		vector_move(to + 32, from + 32);
	vector_move(to + size - 16, from + size - 16);
}
#endif

/* Copies a value to words; what the last one has behind it is of no use. */
static inline void value_store(unsigned char *to, const void *from, size_t size)
{
#if CACHE_HAS_SSE2
	if (__builtin_expect(size - 16 <= 48, 1)) {
		words_move_usual(to, from, size);
		return;
	}
#endif
	words_store(to, from, size);
}

/* Copies `size` bytes of words. */
static inline void words_load(void *to, const unsigned char *from, size_t size)
{
	unsigned char *bytes = to;
	uint64_t word;

#if CACHE_HAS_SSE2
	if (__builtin_expect(size - 16 <= 48, 1)) {
		words_move_usual(to, from, size);
		return;
	}
#endif
	for (; size >= sizeof(word); size -= sizeof(word)) {
		word = word_load(from);
		memcpy(bytes, &word, sizeof(word));
		bytes += sizeof(word);
		from += sizeof(word);
	}
	if (size > 0) {
		word = word_load(from);
		memcpy(bytes, &word, size);
	}
}

/* ---- State ---- */

/* Returns the state bits. Under the shard's lock; constant once the entry was removed. */
static inline unsigned entry_state(const struct tw_cache_entry *entry)
{
	/* relaxed: written under the same lock, or read by the call for the removal. */
	return (uint16_t)atomic_load_explicit(&((struct tw_cache_entry *)entry)->life,
					      memory_order_relaxed);
}

static inline void entry_set_state(struct tw_cache_entry *entry, unsigned state)
{
	/* relaxed, both: the number stays, and the state is read under the lock. */
	uint64_t life = atomic_load_explicit(&entry->life, memory_order_relaxed);

	atomic_store_explicit(&entry->life, (life & ~(uint64_t)0xffff) | state,
			      memory_order_relaxed);
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

/* ---- Looks into a cell that may be any other's by now ---- */

/* Returns the number of the cell's life with its state, or 0 if it has none. */
static inline uint64_t entry_life(const struct tw_cache_entry *entry)
{
	/* acquire: sees what was written before the life began; pairs with entry_make(). */
	return atomic_load_explicit(&((struct tw_cache_entry *)entry)->life, memory_order_acquire);
}

/* Loads and stores of a constant field, whatever its type. relaxed, both: as in word_load() and
 * word_store(). */
#define peek(field)                                                              \
	atomic_load_explicit((_Atomic __typeof__(field) *)(uintptr_t) & (field), \
			     memory_order_relaxed)
#define peeked_store(field, value) \
	atomic_store_explicit((_Atomic __typeof__(field) *)&(field), value, memory_order_relaxed)

/* ---- Parts ---- */

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

/* Returns what the entry counts for limits in bytes: the weight of its plan. */
static inline uint64_t entry_weight(const struct tw_cache_entry *entry)
{
	if (__builtin_expect(entry_has_more(entry), 0))
		return entry_weight_beyond(entry);
	return ENTRY_SHARE + pool_class_of(entry)->size;
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

/* Returns how often the entry was used, up to three times. */
static inline unsigned entry_uses(const struct tw_cache_entry *entry)
{
	/* relaxed: a hint; of two uses at once one may be lost. */
	return atomic_load_explicit(&((struct tw_cache_entry *)entry)->uses, memory_order_relaxed);
}

static inline void entry_set_uses(struct tw_cache_entry *entry, unsigned uses)
{
	/* relaxed: a hint, as the load is. */
	atomic_store_explicit(&entry->uses, (uint8_t)uses, memory_order_relaxed);
}

/* Returns true if the entry is past its deadline: nothing moves that any more, and uses before it
 * do not count. *deadline is what it is or was. Under the shard's lock. */
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

/* Counts a pin. The caller has a reference, or the lock of a shard that has one. */
static inline void entry_pin(const struct tw_cache_entry *entry)
{
	/* relaxed: the other reference keeps it alive until this is done. */
	atomic_fetch_add_explicit(&((struct tw_cache_entry *)entry)->references, 1,
				  memory_order_relaxed);
}

/* Gives up a reference. Returns whether it was the last one: then the caller frees the entry. */
static inline bool entry_give_up(struct tw_cache_entry *entry)
{
	/* acq_rel: every user is done with it before the last one frees it; pairs with itself, and
	 * with entry_try_pin(). */
	return atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) == 1;
}

/* Returns how many pins an entry of a table has. Under the shard's lock; a hint, for pins come and
 * go. */
static inline uint32_t entry_pins(const struct tw_cache_entry *entry)
{
	/* relaxed: a hint. */
	return atomic_load_explicit(&((struct tw_cache_entry *)entry)->references,
				    memory_order_relaxed) -
	       1;
}

/* Counts a pin of what is in the cell by now, unless that is free. */
static inline bool entry_try_pin(struct tw_cache_entry *entry)
{
	/* relaxed: a free cell is not written to; the exchange below orders. */
	uint32_t references = atomic_load_explicit(&entry->references, memory_order_relaxed);

	while (references > 0)
		/* acquire: all of the entry is seen, and its last user's end; pairs with
		 * entry_make() and entry_give_up(). relaxed: tried again. */
		if (atomic_compare_exchange_weak_explicit(&entry->references, &references,
							  references + 1, memory_order_acquire,
							  memory_order_relaxed))
			return true;
	return false;
}

/* Fills what an entry has before its key, for entry_make(). */
void entry_make_more(struct tw_cache_entry *entry, const struct entry_plan *plan);

/* Begins a life of a cell. */
static inline uint64_t entry_next_life(const struct tw_cache_entry *entry, uint64_t floor)
{
	/* relaxed: the cell is the caller's. */
	uint64_t life =
		atomic_load_explicit(&((struct tw_cache_entry *)entry)->life, memory_order_relaxed);

	life = life > floor ? life : floor;
	return ((life >> 16) + 1) << 16;
}

/* Makes an entry in the cell, with one reference, the caller's. Returns NULL if there is none. */
static inline __attribute__((always_inline)) struct tw_cache_entry *entry_make(
	void *cell, struct pool *pool, const struct entry_plan *plan)
{
	struct tw_cache_entry *entry = cell;
	unsigned char *key;
	uint64_t life;

	if (!entry)
		return NULL;
	life = entry_next_life(entry, counter_read(&pool->floor));
	/* release: a reader that sees any of this sees that the cell has left its slot; pairs with
	 * look_fence(). The thread sanitizer knows no fences. */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_release);
	entry->policy_link.next = NULL;
	entry->hash = (uint32_t)plan->hash;
	peeked_store(entry->key_size, (uint16_t)plan->key_size);
	peeked_store(entry->kind, plan->kind);
	/* relaxed, these three: published with the slot. */
	atomic_store_explicit(&entry->uses, 0, memory_order_relaxed);
	peeked_store(entry->value_size, (uint32_t)plan->value_size);
	atomic_store_explicit(&entry->deadline, TW_FOREVER, memory_order_relaxed);
	if (__builtin_expect(entry_has_more(entry), 0))
		entry_make_more(entry, plan);
	key = (unsigned char *)entry_key(entry);
	words_store(key, plan->key, plan->key_size);
	if (plan->value_size > 0)
		value_store(key + entry_padded_key_size(plan->key_size), plan->value,
			    plan->value_size);
	/* release: a thread that sees this number sees what is above; pairs with entry_life(). */
	atomic_store_explicit(&entry->life, life, memory_order_release);
	/* release: a thread that pins it does, too; pairs with entry_try_pin(). */
	atomic_store_explicit(&entry->references, 1, memory_order_release);
	return entry;
}

#endif
