/* SPDX-License-Identifier: MIT */
/*
 * A prefetch asks for memory that will be touched soon, so that waiting for it overlaps with other
 * work. It changes nothing and never faults, for any address, also NULL.
 *
 * prefetch_to_write() asks for a line in exclusive state. For x86-64 compilers use the prefetch for
 * reading instead, unless a flag promises the instruction prefetchw. A line that another core wrote
 * last then arrives shared, and the write waits a second time. The instruction needs no such flag:
 * processors without it execute it as a no-op.
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
