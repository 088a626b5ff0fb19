/* SPDX-License-Identifier: MIT */
/*
 * stores.c is the runtime of -fsanitize=thread: the functions that gcc and clang have compiled code
 * call at each load, store and atomic operation. Here they carry out the atomic operation and log
 * the stores. This logs every store of the library, including plain ones under a lock, without a
 * change of the sources.
 *
 * Counted as a store: - each store, atomic or plain, and each read-modify-write operation; also a
 * compare-and-exchange
 *    that fails, for which a processor takes the line all the same
 * - memcpy, memmove and memset, by what they write - pthread_mutex_lock, trylock and unlock: one
 * store to the first 16 bytes of the mutex, where
 *    the C library keeps lock, owner and users
 *
 * Not counted: - loads, also of a line that another thread has written - prefetches to write -
 * stores of the C library and the kernel: malloc's lists, condition variables, results of
 *    system calls
 *
 * Memory from mmap, and memory released by MADV_DONTNEED, counts as written by no thread.
 *
 * The log is a hash table by line with linear probing. Entries are never removed.
 */
#include "stores.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, LINES_MOST = 1 << 21, PLACES_MOST = 1 << 10, THREADS_MOST = 255 };

struct line {
	uintptr_t number; /* 0 if the entry is free */
	unsigned period;  /* in which the last store was */
	bool is_shared;   /* two threads have stored in that period */
	uint8_t last;     /* the thread that stored last, or 0 */
};

struct place {
	uintptr_t code;
	unsigned transfers;
};

static struct line lines[LINES_MOST];
static unsigned line_count;
static struct place places[PLACES_MOST];
static unsigned place_count;
static struct stores counted;
static unsigned period; /* number of calls of stores_begin() */
static unsigned threads;
static _Thread_local uint8_t self; /* this thread's number, 0 before its first store */

static void fail(const char *what)
{
	fprintf(stderr, "stores: too many %s\n", what);
	exit(2);
}

/* Returns the line's entry, or the free one for it. */
static struct line *line_find(uintptr_t number)
{
	size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 43);

	while (lines[i].number != number && lines[i].number != 0)
		i = (i + 1) % LINES_MOST;
	return &lines[i];
}

static void place_add(uintptr_t code)
{
	unsigned i = 0;

	while (i < place_count && places[i].code != code)
		i++;
	if (i == place_count) {
		if (place_count++ == PLACES_MOST)
			fail("places");
		places[i] = (struct place){.code = code};
	}
	places[i].transfers++;
}

static void line_store(uintptr_t number, uintptr_t code)
{
	struct line *line = line_find(number);
	bool is_transfer = line->last != 0 && line->last != self;

	if (line->number == 0 && ++line_count > LINES_MOST / 8 * 7)
		fail("lines");
	line->number = number;
	if (line->period != period) {
		line->period = period;
		line->is_shared = false;
	} else if (is_transfer && !line->is_shared) {
		line->is_shared = true;
		counted.lines++;
	}
	if (is_transfer) {
		counted.transfers++;
		place_add(code);
	}
	line->last = self;
}

/* Logs a store of `size` bytes by the code that returns to `code`. */
static void store(const volatile void *memory, size_t size, const void *code)
{
	uintptr_t first = (uintptr_t)memory;

	if (size == 0)
		return;
	if (self == 0) {
		if (threads == THREADS_MOST)
			fail("threads");
		self = (uint8_t)++threads;
	}
	for (uintptr_t i = first / LINE; i <= (first + size - 1) / LINE; i++)
		line_store(i, (uintptr_t)code);
}

/* Logs a store by the caller of the function that contains this. */
#define STORE(memory, size) store(memory, size, __builtin_return_address(0))

/* Marks new memory as written by no thread. */
static void forget(const void *memory, size_t size)
{
	for (uintptr_t i = 0; i < size / LINE; i++)
		line_find((uintptr_t)memory / LINE + i)->last = 0;
}

void stores_begin(void)
{
	period++;
	counted = (struct stores){0};
	place_count = 0;
}

struct stores stores_counted(void)
{
	return counted;
}

static int place_compare(const void *one, const void *other)
{
	const struct place *a = one;
	const struct place *b = other;

	return (a->transfers < b->transfers) - (a->transfers > b->transfers);
}

void stores_print_places(const char *program)
{
	qsort(places, place_count, sizeof(places[0]), place_compare);
	for (unsigned i = 0; i < place_count; i++) {
		char command[512];

		printf("%10u ", places[i].transfers);
		fflush(stdout);
		/* The return address less 1 is in the call, not in the next line of source. */
		snprintf(command, sizeof(command), "addr2line -pfse '%s' %#lx", program,
			 (unsigned long)places[i].code - 1);
		if (system(command) != 0)
			return;
	}
}

/*
 * ---- What the compiler calls ----
 *
 * The compiler calls one function for each operation and size, and declares them itself.
 */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define PLAIN(size)                                     \
	void __tsan_read##size(void *memory)            \
	{                                               \
		(void)memory;                           \
	}                                               \
	void __tsan_write##size(void *memory)           \
	{                                               \
		STORE(memory, size);                    \
	}                                               \
	void __tsan_unaligned_read##size(void *memory)  \
	{                                               \
		(void)memory;                           \
	}                                               \
	void __tsan_unaligned_write##size(void *memory) \
	{                                               \
		STORE(memory, size);                    \
	}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}

void __tsan_write_range(void *memory, size_t size)
{
	STORE(memory, size);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

/* Orders are seq_cst, whatever the caller asks for: threads take turns anyway. */

#define FETCH(bits, type, change)                                                               \
	type __tsan_atomic##bits##_fetch_##change(volatile type *object, type value, int order) \
	{                                                                                       \
		(void)order;                                                                    \
		STORE(object, sizeof(type));                                                    \
		return __atomic_fetch_##change(object, value, __ATOMIC_SEQ_CST);                \
	}

#define EXCHANGE_IF(bits, type, kind)                                                             \
	bool __tsan_atomic##bits##_compare_exchange_##kind(volatile type *object, type *expected, \
							   type value, int success, int failure)  \
	{                                                                                         \
		(void)success;                                                                    \
		(void)failure;                                                                    \
		STORE(object, sizeof(type));                                                      \
		return __atomic_compare_exchange_n(object, expected, value, false,                \
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
	}

/* clang calls this in place of both. */
#define EXCHANGE_VALUE(bits, type)                                                               \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *object, type expected,    \
							type value, int success, int failure)    \
	{                                                                                        \
		__tsan_atomic##bits##_compare_exchange_strong(object, &expected, value, success, \
							      failure);                          \
		return expected;                                                                 \
	}

#define ATOMIC(bits, type)                                                                \
	type __tsan_atomic##bits##_load(const volatile type *object, int order)           \
	{                                                                                 \
		(void)order;                                                              \
		return __atomic_load_n(object, __ATOMIC_SEQ_CST);                         \
	}                                                                                 \
	void __tsan_atomic##bits##_store(volatile type *object, type value, int order)    \
	{                                                                                 \
		(void)order;                                                              \
		STORE(object, sizeof(type));                                              \
		__atomic_store_n(object, value, __ATOMIC_SEQ_CST);                        \
	}                                                                                 \
	type __tsan_atomic##bits##_exchange(volatile type *object, type value, int order) \
	{                                                                                 \
		(void)order;                                                              \
		STORE(object, sizeof(type));                                              \
		return __atomic_exchange_n(object, value, __ATOMIC_SEQ_CST);              \
	}                                                                                 \
	FETCH(bits, type, add)                                                            \
	FETCH(bits, type, sub)                                                            \
	FETCH(bits, type, and)                                                            \
	FETCH(bits, type, or)                                                             \
	FETCH(bits, type, xor)                                                            \
	EXCHANGE_IF(bits, type, strong)                                                   \
	EXCHANGE_IF(bits, type, weak)                                                     \
	EXCHANGE_VALUE(bits, type)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- Functions of the C library ---- */

enum { MUTEX_WRITTEN = 16 };

/* The linker's --wrap renames the C library's functions __real_NAME; calls of NAME come here. */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int byte, size_t size);
void *__real_mmap(void *at, size_t size, int access, int flags, int file, off_t offset);
int __real_madvise(void *memory, size_t size, int advice);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	STORE(mutex, MUTEX_WRITTEN);
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	STORE(mutex, MUTEX_WRITTEN);
	return __real_pthread_mutex_trylock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	STORE(mutex, MUTEX_WRITTEN);
	return __real_pthread_mutex_unlock(mutex);
}

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	STORE(to, size);
	return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
	STORE(to, size);
	return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size)
{
	STORE(to, size);
	return __real_memset(to, byte, size);
}

void *__wrap_mmap(void *at, size_t size, int access, int flags, int file, off_t offset)
{
	void *memory = __real_mmap(at, size, access, flags, file, offset);

	if (memory != MAP_FAILED)
		forget(memory, size);
	return memory;
}

int __wrap_madvise(void *memory, size_t size, int advice)
{
	if (advice == MADV_DONTNEED)
		forget(memory, size);
	return __real_madvise(memory, size, advice);
}
