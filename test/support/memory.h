/* SPDX-License-Identifier: MIT */
/* How much memory the program has. */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

#include <stddef.h>

/* Bytes of resident memory. */
long resident_memory(void);
/* Bytes mapped, touched or not: a leak detector does not know of what mmap gave. */
long mapped_memory(void);
/* Of whole pages from `memory` on: how many are there. */
size_t resident_pages(const void *memory, size_t size);

#endif
