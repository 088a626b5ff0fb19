/* SPDX-License-Identifier: MIT */
/*
 * What is unlinked is stamped with the epoch, and freed when two epochs have passed (epoch.c). To
 * look at the readers costs more than to wait for a few more entries, so that is done by the dozen,
 * at once for what is large or a user's.
 *
 * The ring of the policy may hold addresses of entries in limbo, noted by readers who found them
 * before they were unlinked. So the epoch is read first, then the ring is emptied, and then only
 * what was over by that epoch is freed: who had found it, had noted it.
 */
#include "limbo.h"

enum {
	FEW = 32, /* wait for more before the readers are looked at */
	LARGE_VALUE = 4096
};

static bool entry_is_large(const struct tw_cache_entry *entry)
{
	return (entry_flags(entry) & ENTRY_ADOPTED) || entry->value_size > LARGE_VALUE;
}

void limbo_add(struct limbo *limbo, struct epochs *epochs, struct tw_cache_entry *entry)
{
	entry->limbo_epoch = epochs_stamp(epochs);
	entry->limbo_next = NULL;
	if (limbo->last)
		limbo->last->limbo_next = entry;
	else
		limbo->first = entry;
	limbo->last = entry;
	limbo->count++;
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

static void limbo_take_tables(struct limbo *limbo, uint64_t current, struct garbage *garbage)
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

static void garbage_add(struct garbage *garbage, struct tw_cache_entry *entry)
{
	entry->limbo_next = garbage->entries;
	garbage->entries = entry;
}

static void limbo_take_entries(struct limbo *limbo, uint64_t current, struct pool *pool,
			       struct policy *policy, struct garbage *garbage)
{
	struct tw_cache_entry *entry = limbo->first;
	struct tw_cache_entry *next;

	if (!entry || !stamp_is_over(entry->limbo_epoch, current))
		return;
	policy_settle(policy);
	for (; entry && stamp_is_over(entry->limbo_epoch, current); entry = next) {
		next = entry->limbo_next;
		__builtin_prefetch(next);
		if (entry_is_large(entry))
			garbage_add(garbage, entry);
		else
			entry_release_here(pool, entry);
		limbo->count--;
	}
	limbo->first = entry;
	if (!entry) {
		limbo->last = NULL;
		pool_trim(pool);
	}
}

void limbo_take(struct limbo *limbo, struct epochs *epochs, struct pool *pool,
		struct policy *policy, struct garbage *garbage)
{
	uint64_t current;

	if (limbo->count < FEW && !limbo->is_urgent)
		return;
	epochs_advance(epochs);
	if (limbo->is_urgent)
		epochs_advance(epochs);
	current = epochs_current(epochs);
	limbo_take_entries(limbo, current, pool, policy, garbage);
	limbo_take_tables(limbo, current, garbage);
	if (limbo_is_empty(limbo))
		limbo->is_urgent = false;
}

void limbo_take_all(struct limbo *limbo, struct garbage *garbage)
{
	while (limbo->first) {
		struct tw_cache_entry *entry = limbo->first;

		limbo->first = entry->limbo_next;
		garbage_add(garbage, entry);
	}
	garbage->tables = limbo->tables;
	*limbo = (struct limbo){0};
}

void garbage_free(const struct garbage *garbage)
{
	struct tw_cache_entry *entry = garbage->entries;
	struct table *table = garbage->tables;

	while (entry) {
		struct tw_cache_entry *next = entry->limbo_next;

		__builtin_prefetch(next);
		tw_cache_entry_release(entry);
		entry = next;
	}
	while (table) {
		struct table *next = table->limbo_next;

		table_free(table);
		table = next;
	}
}
