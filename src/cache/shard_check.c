/* SPDX-License-Identifier: MIT */
#include "shard_check.h"

#include <assert.h>

#ifdef TW_DEBUG
static const bool shard_checks = true;
#else
static const bool shard_checks = false;
#endif

/* Asserts that an entry's hash is filed under the tick of its deadline or an earlier one. */
static void shard_check_filed(const struct shard *shard, const struct tw_cache_entry *entry)
{
	tw_duration deadline = entry_deadline(entry);
	uint64_t tick;

	if (shard->is_refiling || shard->must_refile || deadline_forward(deadline))
		return;
	if (deadline < 0)
		deadline = -deadline;
	if (!(entry->kind & ENTRY_ABSENT))
		deadline = deadline_after(deadline, shard->shared->stale);
	if (deadline == TW_FOREVER)
		return;
	tick = shard_tick_of(shard, deadline);
	if (tick <= shard->expiry.now)
		tick = shard->expiry.now + 1;
	assert(entry_filed(entry) != 0);
	assert(expiry_place_tick(&shard->expiry, entry_filed(entry)) <= tick);
	(void)tick;
}

/* Asserts that the next table has the entry if its bucket was copied. Returns whether it was. */
static bool shard_check_copied(struct shard *shard, const struct tw_cache_entry *entry)
{
	struct table *table = shard_table(shard);
	bool is_copied;

	if (!shard->next || shard->next_copied == 0)
		return false;
	is_copied = table_bucket_number(table, table_slot_of(table, entry)) < shard->next_copied;
	assert(is_copied == (table_slot_of(shard->next, entry) != NULL));
	return is_copied;
}

uint64_t shard_check(struct shard *shard)
{
	struct table *table = shard_table(shard);
	size_t known = policy_check(&shard->policy);
	size_t position = 0;
	size_t copied = 0;
	uint64_t weight = 0;

	table_check(table);
	assert(shard->policy.knows_all ? known == table->count : known <= table->count);
	expiry_check(&shard->expiry);
	loadings_check(&shard->loads, shard);
	while (position <= table->mask) {
		struct tw_cache_entry *entries[SHARD_STEP];
		size_t count = table_list(table, &position, entries, SHARD_STEP);

		for (size_t i = 0; i < count; i++) {
			assert(entry_state(entries[i]) & ENTRY_LINKED);
			shard_check_filed(shard, entries[i]);
			copied += shard_check_copied(shard, entries[i]);
			weight += entry_weight(entries[i]);
		}
	}
	assert(!shard->next || shard->next_copied == 0 || shard->next->count == copied);
	(void)known;
	(void)copied;
	return weight;
}

void shard_check_sometimes(struct shard *shard)
{
	static _Thread_local size_t changes;

	if (!shard_checks || ++changes < table_slots(shard_table(shard)))
		return;
	changes = 0;
	(void)shard_check(shard);
}
