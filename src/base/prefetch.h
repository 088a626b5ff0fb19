/* SPDX-License-Identifier: MIT */
/*
 * Memory that will be touched soon is asked for now, so that waiting for it overlaps with other
 * work. A prefetch changes nothing and never faults, whatever the address, NULL too.
 *
 * A line that will be written is asked for as this core's own. For x86-64 the compiler has only the
 * prefetch for reading unless told that the processor has the other one; a line that another core
 * wrote last then comes shared, and the write waits for a second trip. The instruction needs no
 * such telling: processors without it take it for a no-op.
 */
#ifndef PREFETCH_H
#define PREFETCH_H

static inline void prefetch_to_read(const void *memory)
{
	__builtin_prefetch(memory, 0);
}

#if defined(__x86_64__)
static inline void prefetch_to_write(const void *memory)
{
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)memory));
}
#else
static inline void prefetch_to_write(const void *memory)
{
	__builtin_prefetch(memory, 1);
}
#endif

#endif
