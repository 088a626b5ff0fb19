/* SPDX-License-Identifier: MIT */
/*
 * The default is S3-FIFO (Yang et al., 2023) with a share that adapts. New keys enter the small
 * queue. At its end, what was used twice goes on to the main queue, and the rest is evicted. At the
 * end of the main queue, what was used goes round again with one use less. The hashes of evicted
 * keys are remembered, from either queue, as long as as many evictions follow as there are entries.
 *
 * What comes back says which queue is too short. A key that left the small queue, and would have
 * stayed if that were nine tenths of the shard, enters the main queue and makes the small one's
 * share larger. A key that left the main queue enters the small one, and makes its share smaller.
 * The step is half an entry, times the ratio of the evictions from the other queue to those from
 * this one if that is above 1. The share begins at a tenth and stays between 5 and 90 %. This is
 * the learning rule of ARC (Megiddo and Modha, 2003; US patent 6,996,676, filed in 2002, has ended)
 * on the queues of S3-FIFO. Where main entries that come back entered the main queue at once, as
 * with ARC, a loop slightly larger than the cache would have no hits.
 *
 * All that comes before the first eviction enters the main queue: so a cache that a loop has filled
 * keeps most of that, where it would have no hits as a queue. The queues are measured by the limit
 * that is exceeded: by numbers or by weights.
 *
 * LRU is approximate: second chance, also known as CLOCK, with three uses instead of one. It is the
 * same mechanism, which remembers nothing and so never leaves its first state.
 *
 * Values kept for stale_if_error stay where they are in their queue.
 *
 * Absences are entries as others. A key that is asked for once, as most absent ones, passes through
 * the small queue; under LRU it takes the place of a value.
 *
 * In a cache without a limit entries are in no queue: two links more to write would make its sets a
 * third slower.
 *
 * Ghosts are a hash table of small buckets without links or deletions. A slot holds a hash and the
 * time of its eviction, counted in evictions. It counts only while that time lies within the
 * window, and a new one takes the oldest slot of its bucket. So the queue of ghosts needs no queue.
 * A table that is too small, or much too large, is replaced by an empty one: moving all hashes
 * would take too long. Times begin in the middle of their range, so that an empty slot is old.
 *
 * Invariants, under the shard's lock: if the policy is on, each entry of the table is in one queue,
 * except one for which the shard makes room; else none is. A queue's count is the number of its
 * entries, and its weight the sum of theirs.
 */
#include "policy.h"

#include <stdlib.h>

enum { MAIN_AFTER_USES = 2 };

/* ---- Ghosts ---- */

enum { GHOST_BUCKET = 8 };

/* This is half of the range of times: a ghost that was taken out counts as that old. */
#define GHOST_LONG_AGO (UINT32_C(1) << 31)

void ghost_init(struct ghost *ghost)
{
	*ghost = (struct ghost){.time = GHOST_LONG_AGO};
}

void ghost_forget(struct ghost *ghost)
{
	free(ghost->slots);
	ghost->slots = NULL;
}

size_t ghost_bytes(const struct ghost *ghost)
{
	return ghost->slots ? (ghost->mask + 1) * GHOST_BUCKET * sizeof(*ghost->slots) : 0;
}

static struct ghost_slot *ghost_bucket(const struct ghost *ghost, uint32_t hash)
{
	/* The lowest bits chose the bucket of the table; the mix makes these others. */
	return &ghost->slots[((hash * 0x9e3779b1u) >> 8 & ghost->mask) * GHOST_BUCKET];
}

void ghost_reserve(struct ghost *ghost, size_t entries)
{
	size_t buckets = 1;
	struct ghost_slot *slots;

	entries += entries / 4;
	if (ghost->slots && entries <= (ghost->mask + 1) * GHOST_BUCKET)
		return;
	while (buckets * GHOST_BUCKET < entries)
		buckets *= 2;
	slots = calloc(buckets * GHOST_BUCKET, sizeof(*slots));
	if (!slots)
		return;
	free(ghost->slots);
	ghost->slots = slots;
	ghost->mask = buckets - 1;
}

void ghost_add(struct ghost *ghost, uint32_t hash, bool was_main)
{
	struct ghost_slot *bucket;
	struct ghost_slot *oldest;

	if (!ghost->slots)
		return;
	ghost->time += 2;
	bucket = ghost_bucket(ghost, hash);
	oldest = bucket;
	for (int i = 1; i < GHOST_BUCKET; i++)
		if (ghost->time - bucket[i].time > ghost->time - oldest->time)
			oldest = &bucket[i];
	*oldest = (struct ghost_slot){hash, ghost->time | was_main};
}

bool ghost_take(struct ghost *ghost, uint32_t hash, size_t window, struct ghost_memory *memory)
{
	struct ghost_slot *bucket;

	if (!ghost->slots)
		return false;
	bucket = ghost_bucket(ghost, hash);
	for (int i = 0; i < GHOST_BUCKET; i++)
		if (bucket[i].hash == hash) {
			memory->was_main = bucket[i].time & 1;
			memory->age = (ghost->time - (bucket[i].time & ~1u)) / 2;
			bucket[i].time = ghost->time - GHOST_LONG_AGO;
			/* A slot whose ghost was taken may have the same hash as a later one. */
			if (memory->age < window)
				return true;
		}
	return false;
}

/* ---- The policy ---- */

void policy_init(struct policy *policy, enum tw_cache_policy kind, bool is_on)
{
	*policy = (struct policy){
		.is_on = is_on, .is_lru = kind == TW_POLICY_LRU, .share = 0.1, .flow = 0.5};
	list_init(&policy->small.entries);
	list_init(&policy->main.entries);
	ghost_init(&policy->ghost);
}

void policy_forget(struct policy *policy)
{
	ghost_forget(&policy->ghost);
	policy->remembers = false;
}

/* ---- Queues ---- */

/* Returns the first entry that is not `spared` (or NULL), or NULL if there is none. */
static struct tw_cache_entry *queue_first(const struct policy_queue *queue,
					  const struct tw_cache_entry *spared)
{
	const struct list *first = queue->entries.next;

	if (spared && first == &spared->policy_link)
		first = first->next;
	return first == &queue->entries ? NULL
					: list_entry(first, struct tw_cache_entry, policy_link);
}

/* Returns the queue of a place, ENTRY_SMALL or ENTRY_MAIN, whatever the other bits. */
static inline struct policy_queue *policy_queue(struct policy *policy, unsigned place)
{
	return place & ENTRY_MAIN ? &policy->main : &policy->small;
}

/* Puts the entry at the end of the queue of that place. */
static inline void policy_enter(struct policy *policy, struct tw_cache_entry *entry, unsigned place,
				uint64_t weight)
{
	struct policy_queue *queue = policy_queue(policy, place);

	entry_set_state(entry, (entry_state(entry) & ~(unsigned)ENTRY_MAIN) | place);
	list_append(&queue->entries, &entry->policy_link);
	queue->count++;
	queue->weight += weight;
}

void policy_remove(struct policy *policy, struct tw_cache_entry *entry, uint64_t weight)
{
	struct policy_queue *queue;

	if (!entry->policy_link.next)
		return;
	queue = policy_queue(policy, entry_state(entry));
	list_remove(&entry->policy_link);
	queue->count--;
	queue->weight -= weight;
}

/* ---- The share ---- */

/* Converts a count or a weight. An unsigned number would take six instructions instead of one. */
static double as_real(uint64_t number)
{
	return (double)(int64_t)number;
}

static size_t policy_count(const struct policy *policy)
{
	return policy->small.count + policy->main.count;
}

/* Returns whether the small queue has its share, or more. */
static bool policy_small_is_full(const struct policy *policy, bool by_number)
{
	double small = as_real(by_number ? policy->small.count : policy->small.weight);
	double main = as_real(by_number ? policy->main.count : policy->main.weight);

	return small >= policy->share * (small + main);
}

/* Returns the ratio of two parts, or 1 if it is less. */
static double ratio(double part, double of)
{
	return part > of ? part / (of + 1e-9) : 1;
}

/* Moves the share if the key is remembered. Returns whether the key enters the main queue. */
static bool policy_learn(struct policy *policy, uint32_t hash)
{
	double count = as_real(policy_count(policy) + 1);
	double small = policy->flow;
	double main = 1 - policy->flow;
	struct ghost_memory memory;

	if (!ghost_take(&policy->ghost, hash, policy_count(policy) + 1, &memory))
		return false;
	if (memory.was_main)
		policy->share -= ratio(small, main) / count / 2;
	else if (as_real(memory.age + policy->small.count) <= 0.9 * count)
		policy->share += ratio(main, small) / count / 2;
	policy->share = policy->share < 0.05 ? 0.05 : policy->share > 0.9 ? 0.9 : policy->share;
	return !memory.was_main;
}

/* Remembers a victim. */
static void policy_note(struct policy *policy, const struct tw_cache_entry *victim)
{
	bool was_main = entry_state(victim) & ENTRY_MAIN;
	size_t count = policy_count(policy) + 1;

	if (!policy->remembers)
		policy->remembers = true;
	policy->flow += ((was_main ? 0 : 1) - policy->flow) / as_real(count);
	/* Memory is taken when it is needed: a cache below its limit remembers nothing. */
	ghost_reserve(&policy->ghost, count);
	ghost_add(&policy->ghost, victim->hash, was_main);
}

/* ---- Changes ---- */

void policy_add(struct policy *policy, struct tw_cache_entry *entry, uint64_t weight)
{
	bool is_main = !policy->remembers || policy_learn(policy, entry->hash);

	policy_enter(policy, entry, is_main ? ENTRY_MAIN : ENTRY_SMALL, weight);
}

void policy_replace(struct policy *policy, struct tw_cache_entry *old, uint64_t old_weight,
		    struct tw_cache_entry *entry, uint64_t weight)
{
	unsigned place = entry_state(old) & ENTRY_MAIN;

	entry_set_uses(entry, entry_uses(old));
	if (!old->policy_link.next)
		return;
	entry_set_state(entry, entry_state(entry) | place);
	list_append(&old->policy_link, &entry->policy_link);
	list_remove(&old->policy_link);
	policy_queue(policy, place)->weight += weight - old_weight;
}

/* ---- Making room ---- */

/* Returns the queue whose first entry is the next to leave, unless it was used. */
static struct policy_queue *policy_next_queue(struct policy *policy, bool by_number)
{
	if (policy->main.count == 0)
		return &policy->small;
	return policy->small.count > 0 && policy_small_is_full(policy, by_number) ? &policy->small
										  : &policy->main;
}

/* Returns the entry that has to leave, or NULL for the main queue's first. Where all are used, the
 * small queue's first leaves in the end: a set does not look through a shard. There is an entry. */
static struct tw_cache_entry *policy_look(struct policy *policy, bool by_number, unsigned *looks)
{
	for (; *looks > 0; --*looks) {
		struct policy_queue *queue = policy_next_queue(policy, by_number);
		struct tw_cache_entry *entry =
			list_entry(queue->entries.next, struct tw_cache_entry, policy_link);
		bool is_main = queue == &policy->main;
		unsigned uses = entry_uses(entry);

		if (uses < (is_main ? 1 : MAIN_AFTER_USES))
			return entry;
		entry_set_uses(entry, is_main ? uses - 1 : 0);
		if (is_main) {
			list_remove(&entry->policy_link);
			list_append(&queue->entries, &entry->policy_link);
		} else {
			uint64_t weight = entry_weight(entry);

			policy_remove(policy, entry, weight);
			policy_enter(policy, entry, ENTRY_MAIN, weight);
		}
	}
	return queue_first(&policy->small, NULL);
}

struct tw_cache_entry *policy_victim(struct policy *policy, bool by_number,
				     const struct tw_cache_entry *spared, unsigned *looks)
{
	struct tw_cache_entry *victim;

	if (policy_count(policy) == 0)
		return NULL;
	victim = policy_look(policy, by_number, looks);
	if (victim && victim == spared)
		victim = queue_first(&policy->small, spared);
	if (!victim)
		victim = queue_first(&policy->main, spared);
	if (victim && !policy->is_lru)
		policy_note(policy, victim);
	return victim;
}
