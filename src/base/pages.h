/* SPDX-License-Identifier: MIT */
/* Pages are zeroed memory from the kernel. */
#ifndef PAGES_H
#define PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns `size` bytes, untouched, or NULL if out of memory. */
void *pages_map_untouched(size_t size);
/* Returns untouched memory aligned to `alignment`, a power of two, or NULL if out of memory. */
void *pages_map_aligned(size_t alignment, size_t size);
/* Gives back memory of the two functions above. 10 MiB take about 1 ms. */
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
