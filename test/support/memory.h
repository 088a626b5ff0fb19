/* SPDX-License-Identifier: MIT */
/* How much memory the program has. */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

/* Bytes of resident memory. */
long resident_memory(void);

#endif
