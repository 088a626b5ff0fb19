/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static atomic_long allocations_left; /* until one fails; 0: none will */
static atomic_bool all_after_it_too;
static atomic_long faults;
static atomic_long threads_left; /* until a thread's creation fails; 0: none will */

void fail_allocation(long number, bool and_all_after_it)
{
	atomic_store(&faults, 0);
	atomic_store(&all_after_it_too, and_all_after_it);
	atomic_store(&allocations_left, number);
}

bool fault_was_met(void)
{
	return atomic_load(&faults) > 0;
}

bool end_faults(void)
{
	atomic_store(&allocations_left, 0);
	return fault_was_met();
}

void fail_thread(long number)
{
	atomic_store(&threads_left, number);
}

long threads_until_fault(void)
{
	return atomic_load(&threads_left);
}

static bool allocation_fails(void)
{
	long left = atomic_load(&allocations_left);

	do {
		if (left == 0)
			return false;
	} while (!(left == 1 && atomic_load(&all_after_it_too)) &&
		 !atomic_compare_exchange_weak(&allocations_left, &left, left - 1));
	if (left != 1)
		return false;
	atomic_fetch_add(&faults, 1);
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *argument);

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return allocation_fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	return allocation_fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
	return allocation_fails() ? MAP_FAILED
				  : __real_mmap(address, size, protection, flags, file, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*start)(void *), void *argument)
{
	if (atomic_load(&threads_left) > 0 && atomic_fetch_sub(&threads_left, 1) == 1)
		return EAGAIN;
	return __real_pthread_create(thread, attributes, start, argument);
}
