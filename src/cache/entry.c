/* SPDX-License-Identifier: MIT */
/*
 * An entry is one block of memory: 48 bytes, then what few entries need (a weight of its own, an
 * adopted value), the key, and the copied value. So a reader that has found the key has the value
 * in the same or the next cache line, and one of 16 and 64 bytes fills two lines.
 *
 * The table holds one reference, and gives it up when no reader can be looking at the entry without
 * one (epoch.c). Until then a reader inside an epoch may pin it by one addition.
 */
#include "entry.h"

#include <pthread.h>
#include <string.h>

_Static_assert(sizeof(struct tw_cache_entry) == 48, "two cache lines with a usual key and value");
_Static_assert(TW_CACHE_CAUSES <= 1 << (16 - ENTRY_CAUSE_SHIFT), "a cause fits into the state");

size_t plan_size(const struct entry_plan *plan)
{
	size_t size = sizeof(struct tw_cache_entry) + entry_padded_key_size(plan->key_size);

	size += plan->is_extended ? sizeof(struct entry_extension) : 0;
	return size + (plan->adopted ? sizeof(struct entry_adopted) : plan->value_size);
}

struct tw_cache_entry *entry_make(struct pool_block *block, const struct entry_plan *plan)
{
	struct tw_cache_entry *entry = (struct tw_cache_entry *)(void *)block;
	unsigned char *key;

	if (!entry)
		return NULL;
	entry_set_state(entry, 0);
	atomic_init(&entry->references, 1);
	entry->hash = (uint32_t)plan->hash;
	entry->key_size = (uint16_t)plan->key_size;
	entry->kind = (uint8_t)((plan->is_extended ? ENTRY_EXTENDED : 0) |
				(plan->adopted ? ENTRY_ADOPTED : 0) |
				(plan->is_absent ? ENTRY_ABSENT : 0));
	atomic_init(&entry->uses, 0);
	entry->value_size = plan->adopted ? 0 : (uint32_t)plan->value_size;
	atomic_init(&entry->deadline, TW_FOREVER);
	if (plan->is_extended) {
		entry_extension(entry)->weight = plan->weight;
		atomic_init(&entry_extension(entry)->end, TW_FOREVER);
	}
	if (plan->adopted)
		*entry_adopted(entry) = *plan->adopted;
	key = (unsigned char *)entry_key(entry);
	bytes_copy(key, plan->key, plan->key_size);
	if (!plan->adopted && plan->value_size > 0)
		bytes_copy(key + entry_padded_key_size(plan->key_size), plan->value,
			   plan->value_size);
	return entry;
}

/* As plan_size() of its plan. */
static size_t entry_size(const struct tw_cache_entry *entry)
{
	size_t before = (size_t)(entry_key(entry) - (const unsigned char *)entry);

	return before + entry_padded_key_size(entry->key_size) + entry->value_size;
}

void entry_discard(struct tw_cache_entry *entry)
{
	pool_return(&entry->block, entry_size(entry));
}

/* True: that was the last reference. */
static bool entry_unpin(struct tw_cache_entry *entry)
{
	/* acquire: nobody else has one, so nobody else can be looking at it; pairs with itself. */
	if (atomic_load_explicit(&entry->references, memory_order_acquire) == 1)
		return true;
	/* acq_rel: every reader is done with it before the last one frees it; pairs with itself. */
	return atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) == 1;
}

void entry_release_here(struct pool *pool, struct tw_cache_entry *entry)
{
	if (entry_unpin(entry))
		pool_give(pool, &entry->block, entry_size(entry));
}

void entry_release_to_spare(struct pool_spare *spare, struct tw_cache_entry *entry)
{
	if (entry_unpin(entry))
		spare_give(spare, &entry->block, entry_size(entry));
}

bool entry_try_to_expire(struct tw_cache_entry *entry, tw_duration now)
{
	tw_duration deadline = entry_deadline(entry);

	do {
		if (deadline < 0)
			return !deadline_is_replaced(deadline);
		if (deadline > now)
			return false;
		/* relaxed: of this and a hit that moves the deadline one wins, nothing else. */
	} while (!atomic_compare_exchange_weak_explicit(&entry->deadline, &deadline, -deadline,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

bool entry_try_to_replace(struct tw_cache_entry *entry, tw_duration now)
{
	tw_duration deadline = entry_deadline(entry);

	do {
		if (deadline <= now)
			return false;
		/* No lookup finds it past that. */
		if (deadline == TW_FOREVER)
			return true;
		/* release: the successor, which was set before; pairs with
		 * shard_successor_of(). */
	} while (!atomic_compare_exchange_weak_explicit(&entry->deadline, &deadline,
							deadline + INT64_MIN, memory_order_release,
							memory_order_relaxed));
	return true;
}

const void *entry_value_beyond(const struct tw_cache_entry *entry, size_t *size)
{
	if (entry->kind & ENTRY_ADOPTED) {
		*size = entry_adopted(entry)->value_size;
		return entry_adopted(entry)->value;
	}
	*size = entry->value_size;
	return entry_key(entry) + entry_padded_key_size(entry->key_size);
}

uint64_t entry_weight(const struct tw_cache_entry *entry)
{
	size_t value_size;

	if (entry->kind & ENTRY_EXTENDED)
		return entry_extension(entry)->weight;
	entry_value(entry, &value_size);
	return entry->key_size + (uint64_t)value_size;
}

const void *tw_cache_entry_value(const struct tw_cache_entry *entry, size_t *size)
{
	size_t unused;

	return entry_value(entry, size ? size : &unused);
}

const void *tw_cache_entry_key(const struct tw_cache_entry *entry, size_t *size)
{
	if (size)
		*size = entry->key_size;
	return entry_key(entry);
}

tw_duration tw_cache_entry_deadline(const struct tw_cache_entry *entry)
{
	tw_duration deadline = entry_deadline(entry);

	if (deadline_is_replaced(deadline))
		return deadline - INT64_MIN;
	return deadline < 0 ? -deadline : deadline;
}

const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry)
{
	entry_pin(entry);
	return entry;
}

/* A cancelled thread would end in a user's function, and leave what its caller has still to do. */
static void adopted_free(const struct entry_adopted *adopted)
{
	int state;

	if (!adopted->free_value)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	adopted->free_value(adopted->value, adopted->value_size, adopted->context);
	pthread_setcancelstate(state, &state);
}

void tw_cache_entry_release(const struct tw_cache_entry *constant)
{
	struct tw_cache_entry *entry = (struct tw_cache_entry *)constant;

	if (!entry || !entry_unpin(entry))
		return;
	if (entry->kind & ENTRY_ADOPTED)
		adopted_free(entry_adopted(entry));
	entry_discard(entry);
}
