/* SPDX-License-Identifier: MIT */
/* How much memory the program has. */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

#include <stddef.h>

/* Bytes of resident memory. */
long resident_memory(void);
/* Bytes mapped, touched or not: a leak detector does not know of what mmap gave. */
long mapped_memory(void);
/* How many of the pages that this memory lies in are resident; it begins at a page. */
size_t resident_pages(const void *memory, size_t size);

#endif
