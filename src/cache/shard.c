/* SPDX-License-Identifier: MIT */
/*
 * All changes of a shard are made under its lock, which nobody holds for longer than it takes to
 * change 64 entries (or to grow the table, to list its entries for tw_cache_each, to put them in
 * order for the first limit, or to throw away what is filed). Memory is freed after the lock was
 * let go.
 *
 * Removal has one place: shard_drop() counts the entry out, queues the notice of it, and puts it
 * into limbo, where it waits until no reader can be looking at it. Tables that have grown wait
 * likewise.
 */
#include "shard.h"

#include <stdlib.h>

/* A thread that finds the lock taken tries for a moment before it sleeps: it is let go sooner. */
static void shard_init_lock(struct shard *shard)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(&shard->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

enum tw_status shard_open(struct shard *shard, struct domain *domain, struct notices *notices)
{
	struct table *table = table_new(domain->arena, 1);
	enum tw_status status = TW_NO_MEMORY;

	shard->pool = pool_create(domain->arena);
	if (!table || !shard->pool)
		goto free_both;
	shard->domain = domain;
	shard->notices = notices;
	shard->armed = TW_FOREVER;
	expiry_init(&shard->expiry, (uint64_t)(tw_now(domain->wheel) / domain->granule));
	status = tw_alarm_create(domain->wheel, shard_wake, shard, &shard->alarm);
	if (status != TW_OK)
		goto free_both;
	atomic_init(&shard->table, table);
	atomic_init(&shard->place, table_place(table));
	shard_init_lock(shard);
	return TW_OK;
free_both:
	table_free(table);
	if (shard->pool)
		pool_close(shard->pool);
	return status;
}

void shard_stop(struct shard *shard)
{
	struct tw_alarm *alarm;

	/* A listener's call may be about to set it. */
	pthread_mutex_lock(&shard->lock);
	alarm = shard->alarm;
	shard->alarm = NULL;
	pthread_mutex_unlock(&shard->lock);
	tw_alarm_destroy(alarm);
}

void shard_close(struct shard *shard)
{
	struct garbage garbage = {NULL, NULL};

	limbo_take_all(&shard->limbo, &garbage);
	garbage_free(&garbage);
	expiry_clear(&shard->expiry);
	table_free(shard_table(shard));
	policy_destroy(&shard->policy);
	pool_close(shard->pool);
	pthread_mutex_destroy(&shard->lock);
}

/* ---- Begin and end ---- */

void shard_begin(struct shard *shard)
{
	pthread_mutex_lock(&shard->lock);
}

void shard_end(struct shard *shard)
{
	struct garbage garbage = {NULL, NULL};
	bool refiles = shard_begin_refiling(shard);
	bool asks;

	limbo_take(&shard->limbo, &shard->domain->epochs, shard->pool, &shard->policy, &garbage);
	/* Something is left, or another pool, or ours after this, may have all its cells. */
	asks = !limbo_is_empty(&shard->limbo) || shard->pool->gave_away || garbage.entries;
	shard->pool->gave_away = false;
	shard->unlinks_to = NULL;
	if (shard->to_tell.count > 0)
		notices_add(shard->notices, &shard->to_tell);
	pthread_mutex_unlock(&shard->lock);

	if (refiles)
		shard_refile(shard);
	/* Late, for it calls users. */
	if (garbage.entries || garbage.tables)
		garbage_free(&garbage);
	if (asks)
		domain_ask_upkeep(shard->domain);
}

/* ---- Changes ---- */

/* Publishes another table with the same entries; the old one goes into limbo. */
static void shard_set_table(struct shard *shard, struct table *table)
{
	struct table *old = shard_table(shard);

	/* seq_cst: publishes the copy, before the stamp is taken; pairs with shard_table(). */
	atomic_store_explicit(&shard->table, table, memory_order_seq_cst);
	/* seq_cst: likewise; pairs with shard_place(). */
	atomic_store_explicit(&shard->place, table_place(table), memory_order_seq_cst);
	shard->tables++;
	limbo_add_table(&shard->limbo, &shard->domain->epochs, old);
}

bool shard_reserve(struct shard *shard)
{
	struct table *table = shard_table(shard);
	struct table *larger;

	if (!table_is_full(table))
		return true;
	larger = table_copy(table, (table->mask + 1) * BUCKET_SLOTS);
	if (!larger)
		return table_has_room(table);
	shard_set_table(shard, larger);
	return true;
}

void shard_try_to_shrink(struct shard *shard)
{
	struct table *table = shard_table(shard);
	struct table *smaller;

	if (!table_is_sparse(table))
		return;
	smaller = table_copy(table, table->count * 2);
	if (smaller)
		shard_set_table(shard, smaller);
}

/* The one place where entries leave. The table and the policy know it no more. */
static void shard_drop(struct shard *shard, struct tw_cache_entry *entry, enum tw_cache_cause cause,
		       tw_duration now)
{
	if (cause != TW_CAUSE_SHUTDOWN && entry_try_to_expire(entry, now))
		cause = TW_CAUSE_EXPIRED;
	entry_set_state(entry, (entry_state(entry) & ~(unsigned)ENTRY_LINKED) |
				       (unsigned)cause << ENTRY_CAUSE_SHIFT);
	shard->removed[cause]++;
	if (shard->notices->on_remove && !(entry->kind & ENTRY_ABSENT)) {
		entry_pin(entry);
		notice_list_add(&shard->to_tell, entry);
	}
	limbo_add(shard->unlinks_to && entry_is_small(entry) ? shard->unlinks_to : &shard->limbo,
		  entry);
}

void shard_unlink(struct shard *shard, struct tw_cache_entry *entry, enum tw_cache_cause cause,
		  tw_duration now)
{
	table_remove(shard_table(shard), entry);
	policy_remove(&shard->policy, entry);
	domain_count(shard->domain, -1, -(int64_t)entry_weight(entry));
	shard_drop(shard, entry, cause, now);
}

unsigned shard_evict(struct shard *shard, unsigned most, const struct tw_cache_entry *spared,
		     tw_duration now)
{
	unsigned count = 0;

	while (count < most && domain_is_over_limit(shard->domain)) {
		struct tw_cache_entry *victim = policy_victim(&shard->policy, spared);

		if (!victim)
			break;
		shard_unlink(shard, victim, TW_CAUSE_SIZE, now);
		count++;
	}
	return count;
}

void shard_link(struct shard *shard, uint64_t hash, struct tw_cache_entry *entry, tw_duration now)
{
	domain_count(shard->domain, 1, (int64_t)entry_weight(entry));
	shard_evict(shard, SHARD_STEP, NULL, now);
	entry_set_state(entry, entry_state(entry) | ENTRY_LINKED);
	policy_add(&shard->policy, entry);
	table_add(shard_table(shard), hash, entry);
}

void shard_replace(struct shard *shard, _Atomic uint64_t *slot, struct tw_cache_entry *old,
		   struct tw_cache_entry *entry, tw_duration now)
{
	int64_t heavier = (int64_t)entry_weight(entry) - (int64_t)entry_weight(old);
	bool should_settle;

	entry_set_state(entry, entry_state(entry) | ENTRY_LINKED);
	should_settle = policy_replace(&shard->policy, old, entry);
	table_replace(slot, entry);
	domain_count(shard->domain, 0, heavier);
	shard_drop(shard, old, TW_CAUSE_REPLACED, now);
	if (should_settle)
		policy_settle(&shard->policy);
}

/* ---- Whole steps ---- */

void shard_reclaim(struct shard *shard)
{
	shard_begin(shard);
	if (!limbo_is_empty(&shard->limbo))
		shard->limbo.is_urgent = true;
	else
		pool_trim(shard->pool); /* others may have returned the last cell */
	shard_end(shard);
}

size_t shard_walk_on(struct shard *shard, struct shard_walk *walk, struct tw_cache_entry **entries)
{
	/* In another table everything stands elsewhere. */
	if (walk->tables != shard->tables)
		walk->position = 0;
	walk->tables = shard->tables;
	return table_list(shard_table(shard), &walk->position, entries, SHARD_STEP);
}

void shard_clear(struct shard *shard, enum tw_cache_cause cause)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	struct shard_walk walk = {0, 0};
	size_t count;

	do {
		tw_duration now;

		shard_begin(shard);
		now = tw_now(shard->domain->wheel);
		flights_override_all(shard->flights);
		count = shard_walk_on(shard, &walk, entries);
		for (size_t i = 0; i < count; i++)
			shard_unlink(shard, entries[i], cause, now);
		if (count == 0)
			shard_try_to_shrink(shard);
		shard_end(shard);
	} while (count > 0);
}

void shard_turn_policy_on(struct shard *shard)
{
	struct tw_cache_entry *entries[SHARD_STEP];
	size_t position = 0;
	size_t count;

	shard_begin(shard);
	if (!policy_is_on(&shard->policy)) {
		while ((count = table_list(shard_table(shard), &position, entries, SHARD_STEP)) > 0)
			for (size_t i = 0; i < count; i++)
				policy_add_early(&shard->policy, entries[i]);
		policy_turn_on(&shard->policy);
	}
	shard_end(shard);
}

void shard_try_settle(struct shard *shard)
{
	if (pthread_mutex_trylock(&shard->lock) != 0)
		return;
	policy_settle(&shard->policy);
	pthread_mutex_unlock(&shard->lock);
}
