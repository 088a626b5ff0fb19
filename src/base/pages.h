/* SPDX-License-Identifier: MIT */
/*
 * Zeroed memory straight from the kernel. Taking much of it touches it all, and is for a thread
 * that may take its time; giving it back, a millisecond for some 10 MiB, is done in steps.
 */
#ifndef PAGES_H
#define PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct pages {
	char *memory;
	size_t size; /* 0: all was given back */
};

/* With its pages there, if it is more than 256 KiB. False: out of memory. */
bool pages_map(struct pages *pages, size_t size);
/* Gives some of it back, from the end; true: there is nothing left. */
bool pages_unmap_some(struct pages *pages);

/* Zeroed and untouched; NULL: out of memory. */
void *pages_map_untouched(size_t size);
/* The same, aligned to its size, which is a power of two. */
void *pages_map_aligned(size_t size);
/* Likewise at a multiple of `alignment`, a power of two. */
void *pages_map_at(size_t alignment, size_t size);
/* Gives back what any of them has returned. */
void pages_unmap_aligned(void *memory, size_t size);
/* Whether the kernel is to use huge pages for it; before it is touched. */
void pages_use_huge(void *memory, size_t size, bool huge);
/* Has it in huge pages, also where it was touched before, as far as the system can: at once, which
 * takes some 0.4 ms each, or some time later. */
void pages_make_huge(void *memory, size_t size);
/* The size of a page. */
size_t pages_size(void);
/* Gives whole pages back to the system; from then on they read as zero. False: they stay. */
bool pages_release(void *memory, size_t size);
/* Has its pages there now, as far as the system can. */
void pages_populate(void *memory, size_t size);

#endif
