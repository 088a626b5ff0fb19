/* SPDX-License-Identifier: MIT */
/*
 * These macros say whether this is compiled for a sanitizer. gcc defines a macro for it, clang has
 * __has_feature().
 */
#ifndef SANITIZER_H
#define SANITIZER_H

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

/* sanitizer_hide() marks recycled memory as free; sanitizer_show() marks it as in use. */
#if SANITIZER_ADDRESS
#include <sanitizer/asan_interface.h>
#define sanitizer_hide(memory, size) __asan_poison_memory_region(memory, size)
#define sanitizer_show(memory, size) __asan_unpoison_memory_region(memory, size)
#else
#define sanitizer_hide(memory, size) ((void)(memory), (void)(size))
#define sanitizer_show(memory, size) ((void)(memory), (void)(size))
#endif

/* ThreadSanitizer knows atomic operations, but no fences and no vector instructions. */
#if defined(__SANITIZE_THREAD__) || SANITIZER_HAS_FEATURE(thread_sanitizer)
#define SANITIZER_THREAD 1
#else
#define SANITIZER_THREAD 0
#endif

#endif
