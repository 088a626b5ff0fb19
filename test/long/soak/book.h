/* SPDX-License-Identifier: MIT */
/*
 * Values given to wheels, accounted for: each must come back once, and run no earlier than was
 * asked for. A value is the number of an entry with the count of its uses, so a value that comes
 * back a second time is known for what it is, also when its entry is in use again; whatever is
 * wrong is a failed check at once. What has not come back, the wheel's account tells.
 */
#ifndef SOAK_BOOK_H
#define SOAK_BOOK_H

#include <stddef.h>
#include <timingwheel/timingwheel.h>

#include <stdatomic.h>
#include <stdbool.h>

enum way { FIRED, DRAINED, REPLACED, REMOVED, STOPPED, TAKEN, WAYS };

/* Of one wheel: what it has been given, and what came back. Any thread. */
struct account {
	_Atomic uint64_t given;
	_Atomic uint64_t back[WAYS];
	atomic_bool is_stopping; /* set before tw_stop: nothing else stops a timer */
};

struct book_entry;

/* The entries from which one thread at a time makes values. */
struct book {
	struct book_entry *entries;
	size_t size;
	size_t next;
};

/* For all books together; once. */
void book_allocate(size_t entries);
void book_free(void);
/* Entries for a book, that no other has. */
struct book book_take(size_t entries);

/* A value that may run from then on, on its wheel's clock. NULL: all entries are in use. */
void *book_give(struct book *book, struct account *account, tw_duration not_before);
/* The call failed: the value is the caller's again, as if it had never been given. */
void book_refuse(void *value);

/* Before the timer moves, the thread that set it: may it run sooner than before, it may from now
 * on. Nothing happens when the value has come back. */
void book_may_run_from(void *value, tw_duration not_before);
/* The value is pending and its last move was to this time. */
void book_runs_from(void *value, tw_duration not_before);

/* Any thread. `now` counts where it has fired. */
void book_return(void *value, enum way way, tw_duration now);

/* How many values have not come back. */
uint64_t account_open(struct account *account);

#endif
