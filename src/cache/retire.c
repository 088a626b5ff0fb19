/* SPDX-License-Identifier: MIT */
/*
 * A retired list has the entries and tables that a thread unlinked, until no reader can see them.
 *
 * Invariants:
 *   a retired entry is in one list: fresh, stamped, or a retired batch
 *   a fresh entry was unlinked before it came here
 *   a stamped entry was unlinked before a fence, and the era of its stamp was read after that fence
 *   an entry in a retired batch might have been seen by a reader in the batch's era
 *   batched_count is the number of entries in all batches
 *   every retired entry has the reference that the table had
 *
 * Who owns what: all of it is under the lock of its thread. All calls may run together.
 *
 * The fence stands between the stores that unlinked the entries and the loads of the era and of the
 * readers. A reader first enters and then loads a slot. If it found the entry, its load was before
 * the fence in the order of all seq_cst operations, and so was its entering: a look at the readers
 * after the fence sees the reader, and its era is not after the stamp. If it entered in an era
 * after the stamp, it does not find the entry.
 *
 * A stamp costs that fence, and a look at the readers costs a cache line for each, so both are done
 * for several entries at once. All entries unlinked since the last look get one stamp, and the next
 * look examines them, when the readers of this moment and the era have long gone on. A thread that
 * finds the era unchanged since its last look advances it. So the era advances once in a round of
 * the fastest thread, for any number of threads. That is rare enough that lookups, which enter
 * again if the era advanced under them, hardly ever do.
 *
 * An entry that a reader may see is deferred to a retired batch, mostly because the reader lost the
 * processor inside. While the batch's era is among the readers' eras, no entry of the batch is
 * examined; after that some at a time. Each such era has a batch. In one batch for all, entries
 * deferred for a moment would stay as long as those of a reader that sleeps, again and again
 * without end. The entries of a batch share the latest of their stamps, which may keep them for a
 * look longer. If more readers sleep at once than there are batches, some eras share one.
 *
 * A set unlinks an entry and makes another of the same size. Memory from the thread's own spare
 * cells is still in its cache: sets of 128 bytes are a tenth faster than with memory that was last
 * touched thousands of sets ago.
 *
 * A thread that stops setting leaves little here, but that may keep pages from going back. So the
 * cache's maintenance, which runs in the next tick, clears all threads.
 */
#include "retire.h"

#include <stdlib.h>

#include "base/sanitizer.h"
#include "pins.h"

_Static_assert(sizeof(struct retiring_reader) <= READER_BYTES, "a block has room for them");

enum {
	/* The readers are looked at once this many entries are fresh, or RETIRED_FEW with few
	 * readers: a look at a reader takes its cache line away from it. */
	MANY = 32,
	READERS_CROWD = 256, /* with more readers than this, four times as many entries */
	BATCH_STEP = 64,     /* entries of a batch examined in a look */
	/* Bytes that all threads may keep spare, and one thread at most and at least. */
	SPARE_ALL = 1 << 20,
	SPARE_MOST = 32768,
	SPARE_LEAST = 2048
};

/* Takes the first entry of a list that is not empty. */
static struct tw_cache_entry *retired_pop(struct retired_list *list)
{
	struct tw_cache_entry *entry = list->first;

	list->first = entry->retired_next;
	if (!list->first)
		list->last = NULL;
	__builtin_prefetch(list->first);
	list->count--;
	list->bytes -= pool_cell_size(entry_size(entry));
	list->adopted -= (entry->kind & ENTRY_ADOPTED) != 0;
	return entry;
}

static void retired_append(struct retired_list *list, struct retired_list *other)
{
	if (!other->first)
		return;
	if (list->last)
		list->last->retired_next = other->first;
	else
		list->first = other->first;
	list->last = other->last;
	list->count += other->count;
	list->bytes += other->bytes;
	list->adopted += other->adopted;
	retired_empty(other);
}

void retire_add_table(struct retiring_reader *thread, struct table *table)
{
	table->retired_next = thread->tables;
	table->retired_at = 0;
	thread->tables = table;
}

/* ---- Looks ---- */

/* A look is what was seen of the readers, and then of what threads have pinned. */
struct look {
	struct eras eras;
	struct hazards_seen hazards;
};

/* Garbage is what may not be freed under the lock. */
struct garbage {
	struct retired_list entries;
	struct table *tables;
};

static void retire_free(struct retiring_reader *thread, const struct look *look,
			struct tw_cache_entry *entry, struct garbage *garbage)
{
	if (look->hazards.count > 0)
		hazards_count(&look->hazards, entry);
	if (entry->kind & ENTRY_ADOPTED)
		retired_add(&garbage->entries, entry);
	else if (__builtin_expect(entry_is_alone(entry), 1))
		spare_give(&thread->spare, entry, entry_size(entry));
	else
		entry_let_go_to_spare(entry, &thread->spare);
}

static void garbage_free(struct garbage *garbage)
{
	while (garbage->entries.first)
		entry_let_go(retired_pop(&garbage->entries));
	while (garbage->tables) {
		struct table *table = garbage->tables;

		garbage->tables = table->retired_next;
		table_free(table);
	}
}

/* Returns the batch of that era, or an empty batch, or one to share. */
static struct retired_batch *retire_batch_for(struct retiring_reader *thread, uint64_t era)
{
	struct retired_batch *empty = NULL;

	for (int i = 0; i < RETIRED_BATCHES; i++) {
		struct retired_batch *batch = &thread->batches[i];

		if (batch->list.first && batch->era == era)
			return batch;
		if (!batch->list.first)
			empty = batch;
	}
	return empty ? empty : &thread->batches[era % RETIRED_BATCHES];
}

/* Frees the entry, or defers it to a batch if a reader might see it. */
static void retire_free_or_defer(struct retiring_reader *thread, const struct look *look,
				 uint64_t stamp, struct tw_cache_entry *entry,
				 struct garbage *garbage)
{
	uint64_t era = eras_find(&look->eras, entry_birth(entry), stamp);
	struct retired_batch *batch;

	if (era == 0) {
		retire_free(thread, look, entry, garbage);
		return;
	}
	batch = retire_batch_for(thread, era);
	batch->era = era;
	if (!batch->list.first || batch->stamp < stamp)
		batch->stamp = stamp;
	retired_add(&batch->list, entry);
	thread->batched_count++;
}

/* Empties the stamped list: frees the entries that no reader sees, and keeps the others. */
static void retire_free_stamped(struct retiring_reader *thread, const struct look *look,
				struct garbage *garbage)
{
	/* This is the usual case: no reader was inside. */
	bool is_unseen = look->eras.count == 0;
	struct tw_cache_entry *entry = thread->stamped.first;
	struct tw_cache_entry *next;

	retired_empty(&thread->stamped);
	for (; entry; entry = next) {
		next = entry->retired_next;
		__builtin_prefetch(next);
		if (is_unseen)
			retire_free(thread, look, entry, garbage);
		else
			retire_free_or_defer(thread, look, thread->stamp, entry, garbage);
	}
}

static void retire_free_batch(struct retiring_reader *thread, struct retired_batch *batch,
			      const struct look *look, struct garbage *garbage)
{
	uint64_t count = batch->list.count < BATCH_STEP ? batch->list.count : BATCH_STEP;
	uint64_t stamp = batch->stamp;

	if (batch->era != 0 && eras_find(&look->eras, batch->era, batch->era) != 0)
		return;
	batch->era = 0;
	thread->batched_count -= count;
	while (count-- > 0)
		retire_free_or_defer(thread, look, stamp, retired_pop(&batch->list), garbage);
}

/* Stamps the tables that have no stamp, and frees those that no reader sees, a large one in steps.
 * Returns whether something was freed. */
static bool retire_free_tables(struct retiring_reader *thread, const struct look *look,
			       uint64_t stamp, struct garbage *garbage)
{
	bool has_freed = false;
	struct table **place = &thread->tables;
	struct table *table;

	while ((table = *place)) {
		if (table->retired_at == 0) {
			table->retired_at = stamp;
		} else if (table->retired_at < stamp &&
			   eras_find(&look->eras, table->birth, table->retired_at) == 0) {
			has_freed = true;
			if (table_free_some(table)) {
				*place = table->retired_next;
				table->retired_next = garbage->tables;
				garbage->tables = table;
				continue;
			}
		}
		place = &table->retired_next;
	}
	return has_freed;
}

/* Orders slot_store() before what follows. The thread sanitizer knows no fences: for it each
 * slot_store() is seq_cst. */
static void retire_fence(void)
{
	/* seq_cst: pairs with reader_enter(). The stores may be other threads': then the thread's
	 * lock stands between them and this. */
	if (!SANITIZER_THREAD)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Looks at the readers, and then stamps what is fresh. Returns whether something was freed. */
static bool retire_look(struct retiring_reader *thread, struct epochs *epochs,
			struct garbage *garbage)
{
	uint64_t before = thread->stamped.count + thread->batched_count;
	struct look look;
	uint64_t stamp;
	bool has_freed = false;

	retire_fence();
	stamp = epochs_stamp(epochs);
	epochs_gather(epochs, stamp - 1, &look.eras);
	hazards_look(&look.hazards);
	if (thread->stamped.first && thread->stamp < stamp)
		retire_free_stamped(thread, &look, garbage);
	for (int i = 0; thread->batched_count > 0 && i < RETIRED_BATCHES; i++)
		if (thread->batches[i].list.first && thread->batches[i].stamp < stamp)
			retire_free_batch(thread, &thread->batches[i], &look, garbage);
	if (thread->tables)
		has_freed = retire_free_tables(thread, &look, stamp, garbage);
	has_freed |= thread->stamped.count + thread->batched_count < before;
	if (!thread->stamped.first) {
		retired_append(&thread->stamped, &thread->fresh);
		thread->stamp = stamp;
	}
	if (stamp == thread->era)
		epochs_advance(epochs, stamp);
	thread->era = epochs_stamp(epochs);
	return has_freed;
}

/* Looks again as long as that frees something. */
static void retire_look_on(struct retiring_reader *thread, struct epochs *epochs,
			   struct garbage *garbage)
{
	enum { LOOKS = 3 };

	for (unsigned looks = 0; looks < LOOKS && retire_has_some(thread); looks++) {
		/* The look should advance the era. */
		thread->era = epochs_stamp(epochs);
		if (retire_look(thread, epochs, garbage))
			looks = 0;
	}
}

/* Returns whether a look is worth its cost: the more readers there are, the more must be fresh. */
static bool retire_should_look(const struct retiring_reader *thread, unsigned readers)
{
	const struct retired_list *fresh = &thread->fresh;
	unsigned times = readers > READERS_CROWD ? 4 : 1;

	return fresh->count >= times * MANY || fresh->bytes >= times * RETIRED_BYTES ||
	       (fresh->count >= RETIRED_FEW && fresh->count >= readers);
}

/* ---- End ---- */

static __attribute__((noinline)) void retire_look_at_end(struct retiring_reader *thread,
							 struct epochs *epochs,
							 struct garbage *garbage)
{
	*garbage = (struct garbage){.tables = NULL};
	if (thread->fresh.adopted > 0)
		retire_look_on(thread, epochs, garbage);
	else
		(void)retire_look(thread, epochs, garbage);
}

/* Gives back some of the spare memory that is not for the next sets. */
static void retire_trim(struct retiring_reader *thread, struct shared_state *shared)
{
	enum { STEP = 16, BYTES_A_CELL_MORE = 1024 };
	uint64_t most = SPARE_ALL / (epochs_readers(&shared->epochs) + 1);
	uint64_t bytes = thread->spare.bytes;

	if (bytes <= SPARE_LEAST)
		return;
	most = most > SPARE_MOST ? SPARE_MOST : most < SPARE_LEAST ? SPARE_LEAST : most;
	if (bytes > most)
		(void)spare_return_some(&thread->spare, shared->pool,
					STEP + (unsigned)((bytes - most) / BYTES_A_CELL_MORE));
}

void retire_end_due(struct retiring_reader *thread, struct shared_state *shared)
{
	bool looks = thread->fresh.adopted > 0 ||
		     retire_should_look(thread, epochs_readers(&shared->epochs));
	struct garbage garbage;

	if (looks)
		retire_look_at_end(thread, &shared->epochs, &garbage);
	retire_trim(thread, shared);
	thread->spare.has_grown = false;
	retire_unlock(thread, shared);
	if (looks)
		garbage_free(&garbage);
}

bool retire_clear(struct retiring_reader *thread, struct shared_state *shared)
{
	struct garbage garbage = {.tables = NULL};
	bool is_empty;

	if (!own_lock_try(&thread->reader.lock))
		return false;
	retire_look_on(thread, &shared->epochs, &garbage);
	spare_return(&thread->spare, shared->pool);
	is_empty = !retire_has_some(thread);
	own_lock_let_go(&thread->reader.lock);
	garbage_free(&garbage);
	return is_empty;
}

bool retire_is_empty(struct reader *reader)
{
	struct retiring_reader *thread = retiring_reader(reader);

	return !retire_has_some(thread) && thread->spare.bytes == 0;
}

/* ---- Sums ---- */

void retire_sum(struct retiring_reader *thread, uint64_t *retired, uint64_t *spare)
{
	own_lock_take(&thread->reader.lock);
	*retired += thread->fresh.bytes + thread->stamped.bytes;
	for (int i = 0; i < RETIRED_BATCHES; i++)
		*retired += thread->batches[i].list.bytes;
	for (const struct table *table = thread->tables; table; table = table->retired_next)
		*retired += table_bytes(table);
	*spare += thread->spare.bytes;
	own_lock_let_go(&thread->reader.lock);
}

void retire_close(struct retiring_reader *thread, struct shared_state *shared)
{
	struct garbage garbage = {.tables = thread->tables};
	struct hazards_seen seen;
	struct tw_cache_entry *entry;

	thread->tables = NULL;
	retired_append(&garbage.entries, &thread->fresh);
	retired_append(&garbage.entries, &thread->stamped);
	for (int i = 0; i < RETIRED_BATCHES; i++)
		retired_append(&garbage.entries, &thread->batches[i].list);
	hazards_look(&seen);
	for (entry = garbage.entries.first; entry; entry = entry->retired_next)
		hazards_count(&seen, entry);
	garbage_free(&garbage);
	spare_return(&thread->spare, shared->pool);
}
