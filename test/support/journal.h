/* SPDX-License-Identifier: MIT */
/* A journal is a list of elements of one size, from any thread to the main thread. */
#ifndef SUPPORT_JOURNAL_H
#define SUPPORT_JOURNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct journal {
	size_t size;          /* element size */
	pthread_mutex_t lock; /* guards all below */
	unsigned char *elements;
	size_t capacity;
	atomic_size_t count; /* read without the lock too */
};

void journal_init(struct journal *journal, size_t size);
void journal_destroy(struct journal *journal);

void journal_append(struct journal *journal, const void *element);

size_t journal_count(struct journal *journal);
/* Copies the element; the test fails if there is none. */
void journal_get(struct journal *journal, size_t index, void *element);
/* Returns the number of matching elements; *last, unless it is NULL, is the index of the last. */
size_t journal_find(struct journal *journal,
		    bool (*is_wanted)(const void *element, const void *wanted), const void *wanted,
		    size_t *last);

#endif
