/* SPDX-License-Identifier: MIT */
/*
 * LRU. Lookups take no lock, so they only note what they used, in a small ring; the thread that
 * holds the lock next, and before any eviction, moves those entries to the front. A lookup that has
 * half filled the ring tries the lock to do so. So the order is exact for one thread at a time, and
 * loses a use only where a ring is overrun while another holds the lock, or where the order is
 * brought up to date between a lookup's two steps: it takes a place in the ring, and notes the use.
 *
 * The ring holds hashes, which the table knows: so no thread has the address of what was unlinked.
 *
 * S3-FIFO (Yang et al., 2023). New keys enter the small queue, a tenth of the entries. At its end,
 * what was used twice goes on to the main queue, others are evicted and their hashes remembered; a
 * key that comes back while it is remembered enters the main queue at once. At the end of the main
 * queue, what was used goes round again with one use less.
 *
 * Under both, absences stand in a queue of their own, and values kept for stale_if_error in another
 * once they have expired. The shard keeps the absences to a quarter of its limits; expired values
 * make room before all others. A use puts an absence to the end of its queue, and an expired value
 * back into the order.
 *
 * Invariants, under the shard's lock: an entry is in one queue at most; once all are known, each
 * entry of the table is in one. A queue's count is the number of its entries.
 */
#include "policy.h"

#include <assert.h>
#include <string.h>

enum { SMALL_SHARE = 10, MAIN_AFTER_USES = 2 };

void policy_init(struct policy *policy, enum tw_cache_policy kind)
{
	memset(policy, 0, sizeof(*policy));
	policy->kind = kind;
	list_init(&policy->main.entries);
	list_init(&policy->small.entries);
	list_init(&policy->light.entries);
	list_init(&policy->past.entries);
	list_init(&policy->absences.entries);
	ghost_init(&policy->ghost);
}

void policy_forget(struct policy *policy)
{
	ghost_forget(&policy->ghost);
}

size_t policy_bytes(const struct policy *policy)
{
	return ghost_bytes(&policy->ghost);
}

void policy_turn_on(struct policy *policy)
{
	/* relaxed: see policy_is_on(). */
	atomic_store_explicit(&policy->is_on, true, memory_order_relaxed);
}

/* ---- Queues ---- */

static bool entry_is_known(const struct tw_cache_entry *entry)
{
	return entry->policy_link.next;
}

static void queue_push(struct policy_queue *queue, struct tw_cache_entry *entry)
{
	list_append(&queue->entries, &entry->policy_link);
	queue->count++;
}

static void queue_remove(struct policy_queue *queue, struct tw_cache_entry *entry)
{
	list_remove(&entry->policy_link);
	queue->count--;
}

/* The first entry that is not `spared` (or NULL); NULL: there is none. */
static struct tw_cache_entry *queue_first(const struct policy_queue *queue,
					  const struct tw_cache_entry *spared)
{
	const struct list *first = queue->entries.next;

	if (spared && first == &spared->policy_link)
		first = first->next;
	return first == &queue->entries ? NULL
					: list_entry(first, struct tw_cache_entry, policy_link);
}

/* These bits name the places outside the order of uses, and all places. */
enum { ENTRY_APART = ENTRY_LIGHT | ENTRY_PAST, ENTRY_PLACE = ENTRY_MAIN | ENTRY_APART };

/* Returns the queue of a place, ENTRY_SMALL and so on, whatever the other bits. */
static inline struct policy_queue *policy_queue(struct policy *policy, unsigned place)
{
	if (__builtin_expect(place & ENTRY_APART, 0)) {
		if ((place & ENTRY_APART) == ENTRY_ABSENCES)
			return &policy->absences;
		return place & ENTRY_LIGHT ? &policy->light : &policy->past;
	}
	return place & ENTRY_MAIN ? &policy->main : &policy->small;
}

static void policy_enter(struct policy *policy, struct tw_cache_entry *entry, unsigned place)
{
	unsigned state = entry_state(entry) & ~(unsigned)ENTRY_PLACE;

	entry_set_state(entry, state | place);
	queue_push(policy_queue(policy, place), entry);
}

static void policy_enter_absence(struct policy *policy, struct tw_cache_entry *entry)
{
	policy_enter(policy, entry, ENTRY_ABSENCES);
	policy->absence_bytes += entry_weight(entry);
}

static __attribute__((noinline)) void policy_remove_apart(struct policy *policy,
							  struct tw_cache_entry *entry)
{
	queue_remove(policy_queue(policy, entry_state(entry)), entry);
	if (entry->kind & ENTRY_ABSENT)
		policy->absence_bytes -= entry_weight(entry);
}

void policy_remove(struct policy *policy, struct tw_cache_entry *entry)
{
	unsigned state = entry_state(entry);

	if (!entry_is_known(entry))
		return;
	if (__builtin_expect(state & ENTRY_APART, 0))
		policy_remove_apart(policy, entry);
	else
		queue_remove(state & ENTRY_MAIN ? &policy->main : &policy->small, entry);
}

/* Puts the entry to the end of its queue outside the order if it is an absence, else into the
 * order: it was used. */
static __attribute__((noinline)) void policy_use_apart(struct policy *policy,
						       struct tw_cache_entry *entry)
{
	policy_remove(policy, entry);
	if (entry->kind & ENTRY_ABSENT)
		policy_enter_absence(policy, entry);
	else
		policy_enter(policy, entry, ENTRY_MAIN);
}

/* ---- LRU ---- */

bool policy_touch(struct policy *policy, uint64_t hash)
{
	/* relaxed: only a place in the ring. */
	uint32_t place = atomic_fetch_add_explicit(&policy->touched, 1, memory_order_relaxed);

	/* relaxed: a number by itself. */
	atomic_store_explicit(&policy->touches[place % POLICY_TOUCHES], hash, memory_order_relaxed);
	return place % (POLICY_TOUCHES / 2) == POLICY_TOUCHES / 2 - 1;
}

static void policy_move_to_end(struct policy *policy, const struct table *table, uint64_t hash)
{
	struct table_walk walk = table_walk_begin(table, hash);
	struct tw_cache_entry *entry;

	while ((entry = table_walk_on(table, &walk))) {
		if (!entry_is_known(entry) || policy->main.entries.previous == &entry->policy_link)
			continue;
		if (__builtin_expect(entry_state(entry) & ENTRY_APART, 0)) {
			policy_use_apart(policy, entry);
			continue;
		}
		queue_remove(&policy->main, entry);
		queue_push(&policy->main, entry);
	}
}

/* Takes what has come into the ring since the last time, oldest first; how many. */
static unsigned policy_take_touches(struct policy *policy, uint64_t *hashes)
{
	/* relaxed: where the youngest is; a race with a touch costs order, nothing else. */
	uint32_t touched = atomic_load_explicit(&policy->touched, memory_order_relaxed);
	uint32_t place = policy->settled;
	unsigned count = 0;

	if (touched - place > POLICY_TOUCHES)
		place = touched - POLICY_TOUCHES;
	for (; place != touched; place++) {
		_Atomic uint64_t *touch = &policy->touches[place % POLICY_TOUCHES];

		/* relaxed: a number by itself. Of a touch that comes in between, one is lost. */
		hashes[count] = atomic_load_explicit(touch, memory_order_relaxed);
		if (hashes[count] == 0)
			continue;
		/* relaxed: as above. */
		atomic_store_explicit(touch, 0, memory_order_relaxed);
		count++;
	}
	policy->settled = touched;
	return count;
}

void policy_settle(struct policy *policy, struct table *table)
{
	uint64_t hashes[POLICY_TOUCHES];
	unsigned count;

	assert(policy->kind == TW_POLICY_LRU);
	count = policy_take_touches(policy, hashes);
	/* What the moves will touch is fetched side by side. */
	for (unsigned i = 0; i < count; i++)
		__builtin_prefetch(table_guess(table, hashes[i]), 1);
	for (unsigned i = 0; i < count; i++)
		policy_move_to_end(policy, table, hashes[i]);
}

/* ---- S3-FIFO ---- */

/* Returns that the first entry of a queue with entries has to go, or takes it on to the end of the
 * main queue: NULL. A call of it would be 13 instructions. */
static inline __attribute__((always_inline)) struct tw_cache_entry *s3fifo_look(
	struct policy *policy, struct policy_queue *queue)
{
	struct tw_cache_entry *entry =
		list_entry(queue->entries.next, struct tw_cache_entry, policy_link);
	bool is_main = queue != &policy->small;
	/* relaxed: a hint. */
	uint8_t uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);

	if (uses < (is_main ? 1 : MAIN_AFTER_USES))
		return entry;
	/* relaxed: a hint. */
	atomic_store_explicit(&entry->uses, is_main ? (uint8_t)(uses - 1) : 0,
			      memory_order_relaxed);
	queue_remove(queue, entry);
	policy_enter(policy, entry, ENTRY_MAIN);
	return NULL;
}

static struct tw_cache_entry *s3fifo_victim(struct policy *policy, unsigned *looks)
{
	struct tw_cache_entry *victim = NULL;
	size_t count = policy->main.count + policy->small.count;

	/* Where all is used, the next has to go: a set does not look through a shard. */
	for (; !victim && *looks > 0; --*looks)
		victim = s3fifo_look(policy, policy->small.count * SMALL_SHARE >= count
						     ? &policy->small
						     : &policy->main);
	if (!victim)
		victim = queue_first(policy->main.count > 0 ? &policy->main : &policy->small, NULL);
	return victim;
}

/* So many evictions back a key is remembered: as many as the main queue has entries. */
static size_t policy_window(const struct policy *policy)
{
	return (policy->main.count + policy->small.count) / SMALL_SHARE * 9 + 1;
}

/* ---- Both ---- */

/* Puts in an entry whose key is not remembered. */
static void policy_begin(struct policy *policy, struct tw_cache_entry *entry)
{
	if (entry->kind & ENTRY_ABSENT)
		policy_enter_absence(policy, entry);
	else
		policy_enter(policy, entry,
			     policy->kind == TW_POLICY_LRU ? ENTRY_MAIN : ENTRY_SMALL);
}

void policy_add_early(struct policy *policy, struct tw_cache_entry *entry)
{
	if (!entry_is_known(entry))
		policy_begin(policy, entry);
}

void policy_add(struct policy *policy, struct table *table, struct tw_cache_entry *entry)
{
	bool main = true;

	if (!policy_is_on(policy))
		return;
	if (policy->kind == TW_POLICY_S3FIFO)
		main = ghost_take(&policy->ghost, entry->hash, policy_window(policy));
	else
		/* What was used before this one came is older. */
		policy_settle(policy, table);
	if (__builtin_expect(entry->kind & ENTRY_ABSENT, 0))
		policy_enter_absence(policy, entry);
	else
		policy_enter(policy, entry, main ? ENTRY_MAIN : ENTRY_SMALL);
}

void policy_pass(struct policy *policy, struct tw_cache_entry *entry)
{
	policy_remove(policy, entry);
	policy_enter(policy, entry, ENTRY_LIGHT);
}

void policy_demote(struct policy *policy, struct table *table, struct tw_cache_entry *entry)
{
	if (!entry_is_known(entry) || entry_state(entry) & ENTRY_PAST)
		return;
	/* Uses before the deadline do not count. */
	if (policy->kind == TW_POLICY_LRU)
		policy_settle(policy, table);
	/* relaxed: a hint. */
	atomic_store_explicit(&entry->uses, 0, memory_order_relaxed);
	policy_remove(policy, entry);
	policy_enter(policy, entry, ENTRY_PAST);
}

/* Replaces an entry outside the order, or by an absence. */
static __attribute__((noinline)) void policy_replace_apart(struct policy *policy,
							   struct tw_cache_entry *old,
							   struct tw_cache_entry *entry)
{
	policy_remove(policy, old);
	if ((old->kind | entry->kind) & ENTRY_ABSENT)
		policy_begin(policy, entry);
	else /* An expired entry has only moved to another block (compact.c). */
		policy_enter(policy, entry, entry_deadline(entry) < 0 ? ENTRY_PAST : ENTRY_MAIN);
}

void policy_replace(struct policy *policy, struct tw_cache_entry *old, struct tw_cache_entry *entry)
{
	unsigned place = entry_state(old) & ENTRY_MAIN;
	/* relaxed: a hint. */
	uint8_t uses = atomic_load_explicit(&old->uses, memory_order_relaxed);

	if (!entry_is_known(old))
		return;
	/* relaxed: as above. */
	atomic_store_explicit(&entry->uses, uses, memory_order_relaxed);
	if (__builtin_expect((entry_state(old) & ENTRY_APART) || (entry->kind & ENTRY_ABSENT), 0)) {
		policy_replace_apart(policy, old, entry);
		return;
	}
	entry_set_state(entry, entry_state(entry) | place);
	list_append(&old->policy_link, &entry->policy_link);
	list_remove(&old->policy_link);
}

static void queue_check(const struct policy_queue *queue, unsigned place)
{
	const struct list *link = queue->entries.next;
	size_t count = 0;

	for (; link != &queue->entries; link = link->next, count++) {
		const struct tw_cache_entry *entry =
			list_entry(link, struct tw_cache_entry, policy_link);

		assert(link->next->previous == link);
		assert((entry_state(entry) & ENTRY_LINKED) &&
		       (entry_state(entry) & ENTRY_PLACE) == place);
		assert(!(entry->kind & ENTRY_ABSENT) == (place != ENTRY_ABSENCES));
		(void)entry;
		(void)place;
	}
	assert(count == queue->count);
	(void)count;
}

size_t policy_check(const struct policy *policy)
{
	queue_check(&policy->main, ENTRY_MAIN);
	queue_check(&policy->small, ENTRY_SMALL);
	queue_check(&policy->light, ENTRY_LIGHT);
	queue_check(&policy->past, ENTRY_PAST);
	queue_check(&policy->absences, ENTRY_ABSENCES);
	return policy->main.count + policy->small.count + policy->light.count + policy->past.count +
	       policy->absences.count;
}

/* Returns the first unused entry of a queue outside the order, or NULL. LRU counts no uses, so its
 * first entry is returned. It is not inlined because most caches have no such entry. */
static __attribute__((noinline)) struct tw_cache_entry *policy_victim_apart(
	struct policy *policy, struct policy_queue *queue, const struct tw_cache_entry *spared,
	unsigned *looks)
{
	for (; queue->count > 0 && *looks > 0; --*looks) {
		struct tw_cache_entry *entry = queue_first(queue, NULL);
		/* relaxed: a hint. */
		uint8_t uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);

		if (uses == 0)
			break;
		/* relaxed: a hint. */
		atomic_store_explicit(&entry->uses, (uint8_t)(uses - 1), memory_order_relaxed);
		policy_use_apart(policy, entry);
	}
	return queue_first(queue, spared);
}

struct tw_cache_entry *policy_absence(struct policy *policy, struct table *table,
				      const struct tw_cache_entry *spared, unsigned *looks)
{
	if (policy->kind == TW_POLICY_LRU)
		policy_settle(policy, table);
	return policy_victim_apart(policy, &policy->absences, spared, looks);
}

struct tw_cache_entry *policy_victim(struct policy *policy, struct table *table, bool by_number,
				     const struct tw_cache_entry *spared, unsigned *looks)
{
	struct tw_cache_entry *victim = NULL;

	if (policy->kind == TW_POLICY_LRU)
		policy_settle(policy, table);
	if (__builtin_expect(policy->past.count > 0, 0))
		victim = policy_victim_apart(policy, &policy->past, spared, looks);
	/* They were old when the others came. */
	else if (by_number && __builtin_expect(policy->light.count > 0, 0))
		victim = policy_victim_apart(policy, &policy->light, spared, looks);
	if (victim)
		return victim;
	if (policy->main.count + policy->small.count <= 1 && !queue_first(&policy->main, spared) &&
	    !queue_first(&policy->small, spared))
		return policy_victim_apart(policy, &policy->absences, spared, looks);
	if (policy->kind == TW_POLICY_LRU)
		return queue_first(&policy->main, spared);
	victim = s3fifo_victim(policy, looks);
	if (victim == spared)
		victim = queue_first(&policy->small, spared);
	if (!victim)
		victim = queue_first(&policy->main, spared);
	if (victim && !(entry_state(victim) & ENTRY_MAIN)) {
		/* Not before it is needed: a cache below its limit has no ghosts. */
		ghost_reserve(&policy->ghost, policy_window(policy));
		ghost_add(&policy->ghost, victim->hash);
	}
	return victim;
}
