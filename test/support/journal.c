/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "journal.h"

void journal_init(struct journal *journal, size_t size)
{
	/* The first ones have room, also where a test lets allocations fail. */
	*journal = (struct journal){.size = size, .capacity = 16, .elements = malloc(16 * size)};
	assert_non_null(journal->elements);
	assert_int_equal(pthread_mutex_init(&journal->lock, NULL), 0);
}

void journal_destroy(struct journal *journal)
{
	pthread_mutex_destroy(&journal->lock);
	free(journal->elements);
}

void journal_append(struct journal *journal, const void *element)
{
	size_t count;

	pthread_mutex_lock(&journal->lock);
	count = atomic_load(&journal->count);
	if (count == journal->capacity) {
		journal->capacity *= 2;
		journal->elements = realloc(journal->elements, journal->capacity * journal->size);
		if (journal->elements == NULL)
			abort();
	}
	memcpy(journal->elements + count * journal->size, element, journal->size);
	atomic_store(&journal->count, count + 1);
	pthread_mutex_unlock(&journal->lock);
}

size_t journal_count(struct journal *journal)
{
	return atomic_load(&journal->count);
}

void journal_get(struct journal *journal, size_t index, void *element)
{
	size_t count = journal_count(journal);

	if (index >= count)
		fail_msg("number %zu was asked for, there are %zu", index, count);
	pthread_mutex_lock(&journal->lock);
	memcpy(element, journal->elements + index * journal->size, journal->size);
	pthread_mutex_unlock(&journal->lock);
}

size_t journal_find(struct journal *journal,
		    bool (*is_wanted)(const void *element, const void *wanted), const void *wanted,
		    size_t *last)
{
	size_t found = 0;

	pthread_mutex_lock(&journal->lock);
	for (size_t i = 0; i < journal_count(journal); i++) {
		if (!is_wanted(journal->elements + i * journal->size, wanted))
			continue;
		found++;
		if (last != NULL)
			*last = i;
	}
	pthread_mutex_unlock(&journal->lock);
	return found;
}
