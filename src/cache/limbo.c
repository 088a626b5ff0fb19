/* SPDX-License-Identifier: MIT */
/*
 * What is unlinked is stamped with the epoch, and freed when two epochs have passed (epoch.c). To
 * stamp it takes a full fence, and to look at the readers takes a cache line for each, so both are
 * done for some entries at once, as many as there are readers: what has been unlinked since the
 * last time gets one stamp, once those of the last time are freed. Not for more, for what waits
 * here the processor's cache has lost when it is used again: with 32 at once instead of 4, sets of
 * 128 bytes took a tenth more time, with 128 nearly half. At once for what is large or a user's.
 *
 * The fence stands between the stores that hid the entries and the look at the epoch, and at the
 * readers after it. A reader enters, and then loads a slot. If it found the entry, its load was
 * before the fence in the order of all that is seq_cst, and so was its entering: a look at the
 * readers after the fence sees it.
 *
 * The ring of the policy may hold addresses of entries in limbo, noted by readers that found them
 * before they were unlinked. So the epoch is read first, then the ring is emptied, and then only
 * what was over by that epoch is freed: a reader that had found it, had noted it.
 */
#include "limbo.h"

#include "base/sanitizer.h"

enum {
	FEW = 4, /* wait for more before the readers are looked at */
	LARGE_VALUE = 4096
};

static bool entry_is_large(const struct tw_cache_entry *entry)
{
	return (entry->kind & ENTRY_ADOPTED) || entry->value_size > LARGE_VALUE;
}

void limbo_add(struct limbo *limbo, struct tw_cache_entry *entry)
{
	entry->limbo_next = limbo->fresh;
	limbo->fresh = entry;
	limbo->fresh_count++;
	if (entry_is_large(entry))
		limbo->is_urgent = true;
}

void limbo_add_table(struct limbo *limbo, struct epochs *epochs, struct table *table)
{
	table->limbo_epoch = epochs_stamp(epochs);
	table->limbo_next = limbo->tables;
	limbo->tables = table;
	limbo->is_urgent = true;
}

static void limbo_take_tables(struct limbo *limbo, uint64_t current, struct limbo *garbage)
{
	struct table **place = &limbo->tables;
	struct table *table;

	while ((table = *place)) {
		if (!stamp_is_over(table->limbo_epoch, current)) {
			place = &table->limbo_next;
			continue;
		}
		*place = table->limbo_next;
		table->limbo_next = garbage->tables;
		garbage->tables = table;
	}
}

/* Between slot_store() and what follows, here and in epochs_advance(). The thread sanitizer knows
 * no fences: for it each slot_store() is seq_cst. */
static void limbo_fence(void)
{
	/* seq_cst: pairs with reader_enter(). The stores may be of other threads: then the shard's
	 * lock, or stash_begin(), stands between them and this. */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_seq_cst);
}

static void limbo_stamp(struct limbo *limbo, struct epochs *epochs)
{
	limbo_fence();
	limbo->stamped = limbo->fresh;
	limbo->stamp = epochs_stamp(epochs);
	limbo->fresh = NULL;
	limbo->fresh_count = 0;
}

struct tw_cache_entry *limbo_go_on(struct limbo *limbo, struct epochs *epochs, bool *goes_on)
{
	struct tw_cache_entry *over = NULL;

	*goes_on = epochs_advance(epochs);
	if (limbo->stamped && stamp_is_over(limbo->stamp, epochs_current(epochs))) {
		over = limbo->stamped;
		limbo->stamped = NULL;
	}
	if (!limbo->stamped && limbo->fresh)
		limbo_stamp(limbo, epochs);
	return over;
}

/* What readers saw last was noted in the ring before they left: it is emptied first. */
static void limbo_free(struct tw_cache_entry *entry, struct pool *pool, struct policy *policy,
		       struct limbo *garbage)
{
	struct tw_cache_entry *next;

	policy_settle(policy);
	for (; entry; entry = next) {
		next = entry->limbo_next;
		__builtin_prefetch(next);
		if (entry_is_large(entry))
			limbo_add(garbage, entry);
		else
			entry_release_here(pool, entry);
	}
}

void limbo_take(struct limbo *limbo, struct epochs *epochs, struct pool *pool,
		struct policy *policy, struct limbo *garbage)
{
	bool goes_on;

	if (!limbo->is_urgent &&
	    (limbo->fresh_count < FEW || limbo->fresh_count < epochs_readers(epochs)))
		return;
	do {
		struct tw_cache_entry *over = limbo_go_on(limbo, epochs, &goes_on);

		limbo_take_tables(limbo, epochs_current(epochs), garbage);
		if (over)
			limbo_free(over, pool, policy, garbage);
	} while (goes_on && limbo->is_urgent && !limbo_is_empty(limbo));
	if (limbo_is_empty(limbo)) {
		limbo->is_urgent = false;
		pool_trim(pool);
	}
}

static void entries_release(struct tw_cache_entry *entry)
{
	struct tw_cache_entry *next;

	for (; entry; entry = next) {
		next = entry->limbo_next;
		__builtin_prefetch(next);
		tw_cache_entry_release(entry);
	}
}

void limbo_close(struct limbo *limbo)
{
	entries_release(limbo->fresh);
	entries_release(limbo->stamped);
	for (struct table *table = limbo->tables; table; table = limbo->tables) {
		limbo->tables = table->limbo_next;
		table_free(table);
	}
}
