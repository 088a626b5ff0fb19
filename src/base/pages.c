/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include <sys/mman.h>

/* Else the owner would meet a page fault, of 2 us, with the first timer in each page. */
#ifdef MAP_POPULATE
enum { PAGES_FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE };
#else
enum { PAGES_FLAGS = MAP_PRIVATE | MAP_ANONYMOUS };
#endif

static const size_t largest_step = (size_t)256 << 10; /* a multiple of the size of a page */

bool pages_map(struct pages *pages, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, PAGES_FLAGS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	*pages = (struct pages){memory, size};
	return true;
}

bool pages_unmap_some(struct pages *pages)
{
	size_t kept =
		pages->size > largest_step ? (pages->size - 1) / largest_step * largest_step : 0;

	if (pages->size > 0)
		munmap(pages->memory + kept, pages->size - kept);
	pages->size = kept;
	return kept == 0;
}
