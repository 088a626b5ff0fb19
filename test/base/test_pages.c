/* SPDX-License-Identifier: MIT */
/* Pages come straight from the kernel. */
#include "support/test.h"

#include "support/memory.h"

#include <sys/mman.h>

#include "base/pages.h"

enum { SIZE = 3000000 };

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

TEST(once, untouched_memory_is_not_there_before_it_is_touched)
{
	char *memory = pages_map_untouched(SIZE);

	assert_non_null(memory);
	assert_int_equal(resident_pages(memory, SIZE), 0);
	memory[SIZE - 1] = 1;
	assert_int_equal(resident_pages(memory, SIZE), 1);
	pages_unmap_aligned(memory, SIZE);
}

TEST(once, released_memory_is_gone_and_reads_as_zero)
{
	size_t page = page_size();
	char *memory = pages_map_untouched(4 * page);

	assert_non_null(memory);
	memset(memory, 1, 4 * page);
	pages_release(memory + page, 2 * page);
	assert_int_equal(resident_pages(memory, 4 * page), 2);
	for (size_t i = 0; i < 4 * page; i++)
		assert_int_equal(memory[i], i / page == 0 || i / page == 3);
	assert_false(pages_release(memory + 1, page));
	pages_unmap_aligned(memory, 4 * page);
	assert_false(pages_release(memory, page));
}

TEST(once, more_than_there_is_is_refused)
{
	assert_null(pages_map_untouched((size_t)1 << 62));
}
