/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* LeakSanitizer searches for pointers in memory of malloc, and in mapped memory that it is shown. A
 * program may have it, whatever the library is compiled with. Elsewhere these are NULL. */
extern void __lsan_register_root_region(const void *memory, size_t size) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *memory, size_t size) __attribute__((weak));

#ifdef MAP_POPULATE
enum { FLAG_POPULATE = MAP_POPULATE };
#else
enum { FLAG_POPULATE = 0 };
#endif

#ifdef MADV_HUGEPAGE
enum { ADVICE_HUGE = MADV_HUGEPAGE, ADVICE_SMALL = MADV_NOHUGEPAGE };
#else
enum { ADVICE_HUGE = POSIX_MADV_NORMAL, ADVICE_SMALL = POSIX_MADV_NORMAL };
#endif
#if defined(MADV_COLLAPSE)
enum { ADVICE_COLLAPSE = MADV_COLLAPSE };
#elif defined(__linux__)
enum { ADVICE_COLLAPSE = 25 }; /* C libraries learned of it later than kernels, from 6.1 on */
#else
enum { ADVICE_COLLAPSE = POSIX_MADV_NORMAL };
#endif
#ifdef MADV_POPULATE_WRITE
enum { ADVICE_POPULATE = MADV_POPULATE_WRITE };
#else
enum { ADVICE_POPULATE = POSIX_MADV_NORMAL };
#endif

/* Maps of this size or less are not touched at first. The owner then meets a page fault of 2 us
 * with the first timer in each page; these are few, and most of the memory may never be used. */
static const size_t little = (size_t)256 << 10;

static void *pages_map_some(size_t size, int flags)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			    -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Lets LeakSanitizer find pointers in the memory, which is returned. */
static void *pages_show(void *memory, size_t size)
{
	if (__lsan_register_root_region)
		__lsan_register_root_region(memory, size);
	return memory;
}

static void *pages_map_shown(size_t size, int flags)
{
	void *memory = pages_map_some(size, flags);

	return memory ? pages_show(memory, size) : NULL;
}

void *pages_map_touched(size_t size)
{
	return pages_map_shown(size, size > little ? FLAG_POPULATE : 0);
}

void *pages_map_untouched(size_t size)
{
	return pages_map_shown(size, 0);
}

void *pages_map_aligned(size_t alignment, size_t size)
{
	char *all = pages_map_some(size + alignment, 0);
	size_t before;

	if (!all)
		return NULL;
	before = -(uintptr_t)all & (alignment - 1);
	if (before > 0)
		munmap(all, before);
	munmap(all + before + size, alignment - before);
	return pages_show(all + before, size);
}

void pages_unmap_aligned(void *memory, size_t size)
{
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(memory, size);
	munmap(memory, size);
}

void pages_use_huge(void *memory, size_t size, bool huge)
{
	(void)madvise(memory, size, huge ? ADVICE_HUGE : ADVICE_SMALL);
}

/* The first advice is for memory that has some small pages already, the second for the others. */
void pages_make_huge(void *memory, size_t size)
{
	pages_use_huge(memory, size, true);
	(void)madvise(memory, size, ADVICE_COLLAPSE);
	(void)madvise(memory, size, ADVICE_POPULATE);
}

size_t pages_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

bool pages_release(void *memory, size_t size)
{
#ifdef MADV_DONTNEED
	return (((uintptr_t)memory | size) & (pages_size() - 1)) == 0 &&
	       madvise(memory, size, MADV_DONTNEED) == 0;
#else
	(void)memory;
	(void)size;
	return false;
#endif
}
