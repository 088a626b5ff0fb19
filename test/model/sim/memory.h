/* SPDX-License-Identifier: MIT */
/*
 * This is the library's memory in a simulated run: at the same addresses in each run of a seed,
 * counted, and refused now and then. Under AddressSanitizer it is malloc's.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
void *sim_realloc(void *memory, size_t size);
void *sim_aligned_alloc(size_t alignment, size_t size);
void sim_free(void *memory);
void *sim_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int sim_munmap(void *memory, size_t size);
int sim_madvise(void *memory, size_t size, int advice);
ssize_t sim_getrandom(void *buffer, size_t size, unsigned flags);

/* Returns whether an allocation is refused, and counts it. */
bool sim_memory_refuses(void);
/* Frees all memory before each case. With `soon`, the last freed block is used again first. */
void sim_memory_begin(bool soon);
/* Fails if memory is left after the case. */
void sim_memory_end(void);
/* Returns the number of refused allocations in this case. */
uint64_t sim_memory_refused(void);

#endif
