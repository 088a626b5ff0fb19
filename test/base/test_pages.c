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

static bool is_resident(const struct pages *pages, size_t offset)
{
	unsigned char resident;

	offset -= offset % page_size();
	assert_int_equal(mincore(pages->memory + offset, 1, &resident), 0);
	return resident & 1;
}

TEST(once, memory_is_zero_and_there)
{
	struct pages pages;

	assert_true(pages_map(&pages, SIZE));
	/* qemu ignores MAP_POPULATE. */
	for (size_t i = 0; i < SIZE && !TEST_IS_EMULATED; i += page_size())
		assert_true(is_resident(&pages, i));
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(pages.memory[i], 0);
	while (!pages_unmap_some(&pages))
		continue;
}

TEST(once, memory_is_given_back_in_steps_from_the_end)
{
	struct pages pages;
	size_t before = SIZE;
	unsigned char resident;
	char *memory;
	int steps = 1;

	assert_true(pages_map(&pages, SIZE));
	memory = pages.memory;
	memset(memory, 1, SIZE);
	for (; !pages_unmap_some(&pages); steps++) {
		assert_in_range(before - pages.size, 1, 256 << 10);
		before = pages.size;
		assert_int_equal(memory[before - 1], 1);
		assert_int_equal(mincore(memory + before, 1, &resident), -1);
	}
	assert_int_equal(steps, (SIZE + (256 << 10) - 1) / (256 << 10));
	assert_int_equal(mincore(memory, 1, &resident), -1);
	assert_true(pages_unmap_some(&pages));
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
	pages_unmap_aligned(memory, 4 * page);
}

TEST(once, more_than_there_is_is_refused)
{
	struct pages pages;

	assert_null(pages_map_untouched((size_t)1 << 62));
	assert_false(pages_map(&pages, (size_t)1 << 62));
}
