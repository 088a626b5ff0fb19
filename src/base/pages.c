/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* LeakSanitizer searches for pointers in memory of malloc, and in mapped memory that it is shown. A
 * program may have it, whatever the library is compiled with. Elsewhere these are NULL. */
extern void __lsan_register_root_region(const void *memory, size_t size) __attribute__((weak));
extern void __lsan_unregister_root_region(const void *memory, size_t size) __attribute__((weak));

#ifdef __linux__
enum {
	ADVICE_HUGE = MADV_HUGEPAGE,
	ADVICE_SMALL = MADV_NOHUGEPAGE,
	ADVICE_POPULATE = 23, /* C libraries learned of these two later than kernels, which have */
	ADVICE_COLLAPSE = 25  /* them from 5.14 and 6.1 on */
};
#else
/* These do nothing, as on a kernel that does not know an advice. */
enum { ADVICE_HUGE = -1, ADVICE_SMALL = -1, ADVICE_POPULATE = -1, ADVICE_COLLAPSE = -1 };
#endif

static void *pages_map_some(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Lets LeakSanitizer find pointers in the memory, which is returned. */
static void *pages_show(void *memory, size_t size)
{
	if (memory && __lsan_register_root_region)
		__lsan_register_root_region(memory, size);
	return memory;
}

void *pages_map_untouched(size_t size)
{
	return pages_show(pages_map_some(size), size);
}

void *pages_map_aligned(size_t alignment, size_t size)
{
	char *all = pages_map_some(size + alignment);
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
