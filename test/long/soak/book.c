/* SPDX-License-Identifier: MIT */
/*
 * An entry's count of uses is odd while its value is out. Only the thread that has the book makes
 * it odd; the first that brings the value back makes it even. So what that thread writes of an
 * entry whose use it knows never meets the next use.
 */
#include "book.h"

#include "checks.h"
#include "support/process.h"

#include <stdlib.h>

enum { INDEX_BITS = 24, PROBES = 64 };

struct book_entry {
	_Atomic uint64_t uses;
	_Atomic int64_t not_before;
	struct account *account; /* written before the use is published */
};

static struct {
	struct book_entry *entries;
	size_t size;
	size_t taken;
} all;

void book_allocate(size_t entries)
{
	all.entries = process_allocate(entries * sizeof(*all.entries));
	all.size = entries;
}

void book_free(void)
{
	free(all.entries);
}

struct book book_take(size_t entries)
{
	struct book book = {all.entries + all.taken, entries, 0};

	all.taken += entries;
	if (all.taken > all.size)
		process_fail("the books want %zu entries", all.taken);
	return book;
}

static struct book_entry *entry_of(void *value)
{
	return &all.entries[(uintptr_t)value & (((uintptr_t)1 << INDEX_BITS) - 1)];
}

static uint64_t uses_of(void *value)
{
	return (uintptr_t)value >> INDEX_BITS;
}

static bool is_out(void *value)
{
	return atomic_load(&entry_of(value)->uses) == uses_of(value);
}

static struct book_entry *find_free(struct book *book)
{
	for (int i = 0; i < PROBES; i++) {
		struct book_entry *entry = &book->entries[book->next];

		book->next = (book->next + 1) % book->size;
		if (atomic_load(&entry->uses) % 2 == 0)
			return entry;
	}
	return NULL;
}

void *book_give(struct book *book, struct account *account, tw_duration not_before)
{
	struct book_entry *entry = find_free(book);
	uint64_t uses;

	if (!entry)
		return NULL;
	uses = atomic_load(&entry->uses) + 1;
	entry->account = account;
	atomic_store(&entry->not_before, not_before);
	atomic_fetch_add(&account->given, 1);
	atomic_store(&entry->uses, uses);
	return (void *)(uintptr_t)(uses << INDEX_BITS | (uint64_t)(entry - all.entries));
}

/* False: the value had come back before. */
static bool close_use(void *value)
{
	uint64_t uses = uses_of(value);

	if (atomic_compare_exchange_strong(&entry_of(value)->uses, &uses, uses + 1))
		return true;
	check_failed("values that came back again");
	return false;
}

void book_refuse(void *value)
{
	struct account *account = entry_of(value)->account;

	if (close_use(value))
		atomic_fetch_sub(&account->given, 1);
}

void book_may_run_from(void *value, tw_duration not_before)
{
	struct book_entry *entry = entry_of(value);

	if (is_out(value) && not_before < atomic_load(&entry->not_before))
		atomic_store(&entry->not_before, not_before);
}

void book_runs_from(void *value, tw_duration not_before)
{
	if (is_out(value))
		atomic_store(&entry_of(value)->not_before, not_before);
}

void book_return(void *value, enum way way, tw_duration now)
{
	struct book_entry *entry = entry_of(value);
	struct account *account = entry->account;
	int64_t not_before = atomic_load(&entry->not_before);

	if (!close_use(value))
		return;
	atomic_fetch_add(&account->back[way], 1);
	if (way == FIRED && now < not_before)
		check_failed("runs before their time");
	if (way == STOPPED && !atomic_load(&account->is_stopping))
		check_failed("values of a wheel that runs, released as stopped");
}

uint64_t account_open(struct account *account)
{
	uint64_t open = atomic_load(&account->given);

	for (int i = 0; i < WAYS; i++)
		open -= atomic_load(&account->back[i]);
	return open;
}
