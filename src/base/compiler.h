/* SPDX-License-Identifier: MIT */
/* This file has what C does not say: which calls are inlined, what memory is fetched ahead, and
 * whether this is compiled for a sanitizer. */
#ifndef COMPILER_H
#define COMPILER_H

/*
 * INLINED has a function's calls inlined, in the one compile unit of its library. It is for
 * functions of other modules, or too large for the compiler to do so by itself, where a call would
 * be a tenth of what they cost (bench/costs). clang warns of an inline function that calls a static
 * one, gcc of one that is not inline.
 */
#ifdef __clang__
#define INLINED __attribute__((always_inline))
#else
#define INLINED inline __attribute__((always_inline))
#endif

/*
 * A prefetch asks for memory that will be touched soon, so that waiting for it overlaps with other
 * work. It changes nothing and never faults, for any address, also NULL.
 *
 * prefetch_to_write() asks for a line in exclusive state. For x86-64 compilers use the prefetch for
 * reading instead, unless a flag promises the instruction prefetchw. A line that another core wrote
 * last then arrives shared, and the write waits a second time. The instruction needs no such flag:
 * processors without it execute it as a no-op.
 */
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

/* gcc defines a macro for a sanitizer, clang has __has_feature(). */
#ifdef __has_feature
#define SANITIZER_HAS_FEATURE(name) __has_feature(name)
#else
#define SANITIZER_HAS_FEATURE(name) 0
#endif

/* AddressSanitizer cannot see a use after free in memory that is recycled. */
#if defined(__SANITIZE_ADDRESS__) || SANITIZER_HAS_FEATURE(address_sanitizer)
#define SANITIZER_ADDRESS 1
#else
#define SANITIZER_ADDRESS 0
#endif

/* ThreadSanitizer knows atomic operations, but no fences and no vector instructions. */
#if defined(__SANITIZE_THREAD__) || SANITIZER_HAS_FEATURE(thread_sanitizer)
#define SANITIZER_THREAD 1
#else
#define SANITIZER_THREAD 0
#endif

#endif
