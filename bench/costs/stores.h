/* SPDX-License-Identifier: MIT */
/*
 * A log of which thread stores to which cache line, kept by a library that was compiled with
 * -fsanitize=thread and linked with stores.c in the place of that sanitizer's own library.
 *
 * Only one thread may run at a time: the log has no lock.
 */
#ifndef COSTS_STORES_H
#define COSTS_STORES_H

struct stores {
	unsigned lines;     /* written by two threads or more */
	unsigned transfers; /* stores to a line that another thread wrote last */
};

/* Begins to count from 0. Which thread wrote each line last stays known. */
void stores_begin(void);
/* Returns the counts since stores_begin(). */
struct stores stores_counted(void);
/* Prints the lines of source with the transfers since stores_begin(), by addr2line, those with
 * most first; `program` is the path of this one. */
void stores_print_places(const char *program);

#endif
