/* SPDX-License-Identifier: MIT */
/* How much memory the program has. */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

/* Bytes of resident memory. */
long resident_memory(void);
/* Bytes mapped, touched or not: a leak detector does not know of what mmap gave. */
long mapped_memory(void);

#endif
