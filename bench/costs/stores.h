/* SPDX-License-Identifier: MIT */
/*
 * The log records which thread stores to which cache line, in a library that was compiled with
 * -fsanitize=thread and linked with stores.c in place of the sanitizer's library.
 *
 * Only one thread may run at a time: the log has no lock.
 */
#ifndef COSTS_STORES_H
#define COSTS_STORES_H

struct stores {
	unsigned lines;     /* written by two threads or more */
	unsigned transfers; /* stores to a line that another thread wrote last */
};

/* Starts counting from 0. The last writer of each line stays known. */
void stores_begin(void);
/* Returns the counts since stores_begin(). */
struct stores stores_counted(void);
/* Prints the lines of source with the transfers since stores_begin(), by addr2line, the most
 * frequent first; `program` is its own path. */
void stores_print_places(const char *program);

#endif
