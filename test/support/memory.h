/* SPDX-License-Identifier: MIT */
/* This reports the program's memory. */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

#include <stddef.h>

/* Returns the bytes of resident memory. */
long resident_memory(void);
/* Returns the mapped bytes, touched or not: a leak detector does not track mmap. */
long mapped_memory(void);
/* Returns how many pages of this memory are resident; it begins at a page. */
size_t resident_pages(const void *memory, size_t size);

#endif
