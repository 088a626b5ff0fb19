/* SPDX-License-Identifier: MIT */
/*
 * An entry is one cell of memory: 48 bytes, then what few entries need (a weight of its own, an
 * adopted value), the key, and the copied value. So a reader that has found the key has the value
 * in the same or the next cache line, and one of 16 and 64 bytes fills two lines.
 *
 * The table holds a reference, and so does each pin. A reader may come with a pin while the count
 * is not 0, also by mistake, when the cell has another entry than the reader looks for; then it
 * gives the pin up at once.
 *
 * Invariants:
 *   key, value and weight never change while the cell's life has one number
 *   the references are 0 in a free cell, and in one that is to be freed
 *   an adopted value is freed once, when the references have become 0
 *
 * To free a value may release the last pin of another entry, whose value may do so in turn. A
 * thread that frees a value puts the entries that come up meanwhile on a list, and goes on with
 * them when the user's function has returned, so that its stack does not grow with their number.
 *
 * A copied value too large for a cell is an adopted one of the cache's own, in memory of its own.
 */
#include "entry.h"

#include <pthread.h>
#include <string.h>

#include "base/pages.h"

_Static_assert(sizeof(struct tw_cache_entry) == 48, "two cache lines with a usual key and value");
_Static_assert(TW_CACHE_CAUSES <= 1 << (16 - ENTRY_CAUSE_SHIFT), "a cause fits into the state");

static void value_unmap(void *value, size_t size, void *context)
{
	struct pool *pool = context;

	counter_add_shared(&pool->mapped, -(int64_t)size);
	pages_unmap_aligned(value, size);
}

/* Initializes what lies before the key. */
void entry_make_more(struct tw_cache_entry *entry, const struct entry_plan *plan)
{
	unsigned char *place = entry->bytes;

	if (plan->kind & ENTRY_EXTENDED) {
		struct entry_extension extension = {.weight = plan->weight};

		words_store(place, &extension, sizeof(extension));
		time_store(&entry_extension(entry)->end, TW_FOREVER);
		place += sizeof(extension);
	}
	if (plan->kind & ENTRY_ADOPTED)
		words_store(place, &plan->adopted, sizeof(plan->adopted));
	if (plan->kind & ENTRY_AGING)
		time_store(&entry_age(entry)->refresh_at, TW_FOREVER);
}

struct tw_cache_entry *entry_copy(void *cell, const struct tw_cache_entry *entry)
{
	size_t size;
	struct entry_plan plan = {.key = entry_key(entry),
				  .key_size = entry->key_size,
				  .value = entry_value(entry, &size),
				  .value_size = entry->value_size,
				  .hash = entry->hash,
				  .kind = entry->kind};
	struct tw_cache_entry *copy = entry_make(cell, pool_of(entry), &plan);

	if (!copy)
		return NULL;
	entry_set_state(copy, entry_state(entry));
	time_store(&copy->deadline, entry_deadline(entry));
	words_store(copy->bytes, entry->bytes, kind_size(entry->kind));
	return copy;
}

bool entry_try_to_expire(struct tw_cache_entry *entry, tw_duration now, tw_duration *deadline)
{
	*deadline = entry_deadline(entry);
	do {
		if (*deadline < 0) {
			*deadline = -*deadline;
			return true;
		}
		if (*deadline > now)
			return false;
		/* relaxed: either this or a hit that moves the deadline wins, nothing else. */
	} while (!atomic_compare_exchange_weak_explicit(&entry->deadline, deadline, -*deadline,
							memory_order_relaxed,
							memory_order_relaxed));
	entry_set_uses(entry, 0);
	return true;
}

void entry_carry_deadline(struct tw_cache_entry *copy, struct tw_cache_entry *entry)
{
	tw_duration deadline = entry_deadline(copy);
	/* acq_rel: a hit that moves it from now on sees that the entry is not linked, and looks
	 * again; pairs with entry_move_deadline(). */
	tw_duration last = atomic_fetch_add_explicit(&entry->deadline, 0, memory_order_acq_rel);

	while (deadline < last && !entry_move_deadline(copy, &deadline, last))
		continue;
}

uint64_t entry_weight_beyond(const struct tw_cache_entry *entry)
{
	uint64_t weight = ENTRY_SHARE + pool_class_of(entry)->size;

	if (entry->kind & ENTRY_EXTENDED)
		return entry_extension(entry)->weight;
	return weight + (entry->kind & ENTRY_ADOPTED ? entry_adopted(entry)->value_size : 0);
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

	return deadline < 0 ? -deadline : deadline;
}

/* ---- Freeing ---- */

/* This thread has to free these entries and their values. Linked by next_freed. */
static _Thread_local struct tw_cache_entry *to_free __attribute__((tls_model("initial-exec")));
/* The thread is freeing them. */
static _Thread_local bool is_freeing __attribute__((tls_model("initial-exec")));

static void entries_free(void)
{
	struct tw_cache_entry *entry;
	int state;

	/* A cancelled thread would end in a user's function, and leave what its caller has still
	 * to do. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	is_freeing = true;
	while ((entry = to_free)) {
		const struct entry_adopted *adopted = entry_adopted(entry);

		to_free = entry->next_freed;
		adopted->free_value(adopted->value, adopted->value_size, adopted->context);
		pool_give(entry);
	}
	is_freeing = false;
	pthread_setcancelstate(state, &state);
}

void entry_free(struct tw_cache_entry *entry)
{
	struct tw_cache_entry *next;

	for (; entry; entry = next) {
		if (!(entry->kind & ENTRY_ADOPTED)) {
			pool_give(entry);
			return;
		}
		next = entry->next_freed;
		entry->next_freed = to_free;
		to_free = entry;
	}
	if (to_free && !is_freeing)
		entries_free();
}

static void value_keep(void *value, size_t size, void *context)
{
	(void)value, (void)size, (void)context;
}

void entry_let_go(struct tw_cache_entry *entry, bool frees_value)
{
	if (!entry)
		return;
	if ((entry->kind & ENTRY_ADOPTED) && !frees_value &&
	    entry_adopted(entry)->free_value != value_unmap)
		entry_adopted(entry)->free_value = value_keep;
	tw_cache_entry_release(entry);
}

const struct tw_cache_entry *tw_cache_entry_pin(const struct tw_cache_entry *entry)
{
	entry_pin(entry);
	return entry;
}

void tw_cache_entry_release(const struct tw_cache_entry *pinned)
{
	struct tw_cache_entry *entry = (struct tw_cache_entry *)pinned;

	if (!entry || !entry_give_up(entry))
		return;
	entry->next_freed = NULL;
	entry_free(entry);
}

/* ---- Values too large for a cell ---- */

bool entry_plan_map(struct entry_plan *plan, struct pool *pool)
{
	void *copy = pages_map_untouched(plan->value_size);

	if (!copy)
		return false;
	memcpy(copy, plan->value, plan->value_size);
	counter_add_shared(&pool->mapped, (int64_t)plan->value_size);
	plan->adopted = (struct entry_adopted){copy, plan->value_size, value_unmap, pool};
	plan->kind |= ENTRY_ADOPTED;
	plan->value_size = 0;
	return true;
}

void entry_plan_unmap(const struct entry_plan *plan, struct pool *pool)
{
	if ((plan->kind & ENTRY_ADOPTED) && plan->adopted.free_value == value_unmap)
		value_unmap(plan->adopted.value, plan->adopted.value_size, pool);
}
