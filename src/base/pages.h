/* SPDX-License-Identifier: MIT */
/*
 * Pages are zeroed memory from the kernel. pages_map() touches all of a large map, so the caller
 * must be a thread that may take long. Giving memory back takes 1 ms for about 10 MiB, so it is
 * done in steps.
 */
#ifndef PAGES_H
#define PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct pages {
	char *memory;
	size_t size; /* bytes; 0 when all are given back */
};

/* Maps `size` bytes, and touches them if they are more than 256 KiB. Returns false if out of
 * memory. */
bool pages_map(struct pages *pages, size_t size);
/* Gives up to 256 KiB back, from the end. Returns true when nothing is left. */
bool pages_unmap_some(struct pages *pages);

/* Returns `size` bytes, untouched, or NULL if out of memory. */
void *pages_map_untouched(size_t size);
/* Returns untouched memory aligned to `size`, a power of two, or NULL if out of memory. */
void *pages_map_aligned(size_t size);
/* Returns untouched memory aligned to `alignment`, a power of two, or NULL if out of memory. */
void *pages_map_at(size_t alignment, size_t size);
/* Gives back memory of the three functions above. */
void pages_unmap_aligned(void *memory, size_t size);
/* Sets whether the kernel uses huge pages for the memory when it is touched. */
void pages_use_huge(void *memory, size_t size, bool huge);
/* Returns the size of a page in bytes. */
size_t pages_size(void);
/* Gives whole pages back to the system; after that they read as zero. Returns false if they
 * stay. */
bool pages_release(void *memory, size_t size);
/* Touches all pages of the memory, and makes them huge, as far as the system can. */
void pages_make_huge(void *memory, size_t size);

#endif
