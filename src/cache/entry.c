/* SPDX-License-Identifier: MIT */
/*
 * An entry is one block of memory: 48 bytes, then what few entries need (a weight of its own, an
 * adopted value), the key, and the copied value. So a reader that has found the key has the value
 * in the same or the next cache line, and one of 16 and 64 bytes fills two lines.
 *
 * The table holds a reference, and gives it up when no reader can be looking at the entry without
 * one (epoch.c). Until then a reader inside an epoch may pin it (pins.h).
 *
 * Invariants: key, value and weight never change. The memory goes back when the references are 0
 * and no hazard names it, and an adopted value is freed once, before that.
 *
 * To free a value may release the last pin of another entry, whose value may do so in turn. A
 * thread that frees a value puts the entries that come up meanwhile on a list, and goes on with
 * them when the user's function has returned, so that its stack does not grow with their number.
 */
#include "entry.h"

#include <pthread.h>
#include <string.h>

_Static_assert(sizeof(struct tw_cache_entry) == 48, "two cache lines with a usual key and value");
_Static_assert(TW_CACHE_CAUSES <= 1 << (16 - ENTRY_CAUSE_SHIFT), "a cause fits into the state");

/* Initializes what lies before the key. */
void entry_make_more(struct tw_cache_entry *entry, const struct entry_plan *plan)
{
	if (plan->kind & ENTRY_EXTENDED) {
		entry_extension(entry)->weight = plan->weight;
		atomic_init(&entry_extension(entry)->end, TW_FOREVER);
	}
	if (plan->kind & ENTRY_ADOPTED)
		*entry_adopted(entry) =
			(struct entry_adopted){(void *)plan->adopted->data, plan->adopted->size,
					       plan->adopted->free_value, plan->adopted->context};
	if (plan->kind & ENTRY_AGING)
		atomic_init(&entry_age(entry)->refresh_at, TW_FOREVER);
}

size_t entry_size_beyond(const struct tw_cache_entry *entry)
{
	return sizeof(*entry) + kind_size(entry->kind) + entry_padded_key_size(entry->key_size) +
	       entry->value_size;
}

struct tw_cache_entry *entry_copy(void *block, const struct tw_cache_entry *entry, uint64_t birth)
{
	struct entry_plan plan = {.key = entry_key(entry),
				  .key_size = entry->key_size,
				  .hash = entry->hash,
				  .kind = entry->kind,
				  .birth = birth};
	struct tw_cache_entry *copy = entry_make(block, &plan);

	if (!copy)
		return NULL;
	entry_set_state(copy, entry_state(entry));
	copy->value_size = entry->value_size;
	atomic_init(&copy->deadline, entry_deadline(entry));
	memcpy(copy->bytes, entry->bytes, entry_size(entry) - sizeof(*entry));
	return copy;
}

/* Gives up references. Returns whether these were the last ones. */
static bool entry_give_up(struct tw_cache_entry *entry, uint32_t references)
{
	/* acq_rel: every reader is done with it before the last one frees it; pairs with itself. */
	return atomic_fetch_sub_explicit(&entry->references, references, memory_order_acq_rel) ==
	       references;
}

/* Gives up the reference that is no pin. Returns whether that was the last one. */
static bool entry_leave_to_pins(struct tw_cache_entry *entry)
{
	size_t size;
	struct pool *pool;

	if (entry_is_alone(entry))
		return true;
	/* The entry is counted first, because the pins may free it after that. */
	size = entry_size(entry);
	pool = pool_of(entry);
	pool_count_pinned(pool, size, true);
	if (!entry_give_up(entry, ENTRY_OF_TABLE))
		return false;
	pool_count_pinned(pool, size, false);
	return true;
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
	uint64_t weight = ENTRY_SHARE + pool_cell_size(entry_size(entry));

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

/* This thread has to free these entries and their values. Linked by retired_next. */
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

		to_free = entry->retired_next;
		adopted->free_value(adopted->value, adopted->value_size, adopted->context);
		pool_give(entry, entry_size(entry));
	}
	is_freeing = false;
	pthread_setcancelstate(state, &state);
}

static void entry_free(struct tw_cache_entry *entry)
{
	if (!(entry->kind & ENTRY_ADOPTED)) {
		pool_give(entry, entry_size(entry));
		return;
	}
	entry->retired_next = to_free;
	to_free = entry;
	if (!is_freeing)
		entries_free();
}

void entry_let_go(struct tw_cache_entry *entry)
{
	if (entry && entry_leave_to_pins(entry))
		entry_free(entry);
}

void entry_let_go_to_spare(struct tw_cache_entry *entry, struct pool_spare *spare)
{
	if (entry_leave_to_pins(entry))
		spare_give(spare, entry, entry_size(entry));
}

void entry_unpin(struct tw_cache_entry *entry)
{
	if (!entry_give_up(entry, 1))
		return;
	pool_count_pinned(pool_of(entry), entry_size(entry), false);
	entry_free(entry);
}
