/* SPDX-License-Identifier: MIT */
#include "shard_table.h"

/* Begins a table for `entries` entries, unless one is being made. */
static void shard_begin_resizing(struct shard *shard, size_t entries)
{
	struct shared_state *shared = shard->shared;

	if (shard->next)
		return;
	shard->next =
		table_new_uncleared(&shared->pool->arena, epochs_era(&shared->epochs), entries);
	shard->next_cleared = 0;
	shard->next_copied = 0;
	shard->must_tend = true;
}

/* Retires the next table, for freeing it may take too long for the lock. */
void shard_drop_next(struct shard *shard)
{
	retire_add_table(shard->retiring, shard->next);
	shard->next = NULL;
}

/* Publishes the next table, and retires the old one. */
static void shard_end_resizing(struct shard *shard)
{
	struct table *old = shard_table(shard);
	struct table *table = shard->next;

	/* seq_cst: publishes the table, before the stamp is taken; pairs with shard_table(). */
	atomic_store_explicit(&shard->table, table, memory_order_seq_cst);
	/* seq_cst: publishes the place, before the stamp is taken; pairs with shard_place(). */
	atomic_store_explicit(&shard->place, table_place(table), memory_order_seq_cst);
	shard->next = NULL;
	shard->tables++;
	retire_add_table(shard->retiring, old);
}

void shard_resize_some(struct shard *shard, size_t steps)
{
	enum { CLEARED = 64, COPIED = 4 };
	const struct table *table = shard_table(shard);
	struct table *next = shard->next;

	/* The next table was to be smaller, but the present one has become fuller. */
	if (!table_is_for(next, table->count)) {
		shard_drop_next(shard);
		return;
	}
	if (shard->next_cleared <= next->mask)
		(void)table_clear_some(next, &shard->next_cleared, steps * CLEARED);
	else if (!table_copy_some(table, &shard->next_copied, steps * COPIED, next))
		shard_end_resizing(shard);
}

bool shard_reserve(struct shard *shard)
{
	const struct table *table = shard_table(shard);

	if (!table_is_for(table, table->count))
		shard_begin_resizing(shard, (table->mask + 1) * BUCKET_SLOTS);
	/* The resizing is usually over by now, unless there was no memory for it for long. */
	while (shard->next && !table_has_room(shard_table(shard)))
		shard_resize_some(shard, 1);
	return table_has_room(shard_table(shard));
}

void shard_try_to_shrink(struct shard *shard)
{
	const struct table *table = shard_table(shard);

	if (!table_is_sparse(table))
		return;
	policy_forget(&shard->policy);
	shard_begin_resizing(shard, table->count + table->count / 2);
}

size_t shard_walk_on(struct shard *shard, struct shard_walk *walk, struct tw_cache_entry **entries,
		     size_t most)
{
	const struct table *table = shard_table(shard);
	size_t count;

	/* In another table everything stands elsewhere. */
	if (walk->tables != shard->tables)
		walk->position = 0;
	walk->tables = shard->tables;
	count = table_list(table, &walk->position, entries, most);
	walk->is_over = walk->position > table->mask;
	return count;
}
