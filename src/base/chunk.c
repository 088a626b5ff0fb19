/* SPDX-License-Identifier: MIT */
#include "chunk.h"

#include <assert.h>

#include "pages.h"

_Static_assert(sizeof(struct chunk) <= CHUNK_FIRST * CHUNK_PAGE, "the header has its pages");

/* ---- Sets of pages ---- */

static void pages_add(uint64_t *set, size_t page)
{
	set[page / 64] |= (uint64_t)1 << page % 64;
}

static void pages_remove(uint64_t *set, size_t page)
{
	set[page / 64] &= ~((uint64_t)1 << page % 64);
}

/* Returns the first page from `page` on that is in the set, or is not if `flip` is UINT64_MAX; or
 * CHUNK_PAGES. */
static size_t pages_next(const uint64_t *set, size_t page, uint64_t flip)
{
	for (size_t word = page / 64; word < CHUNK_WORDS; word++) {
		uint64_t found = set[word] ^ flip;

		if (word == page / 64)
			found &= UINT64_MAX << page % 64;
		if (found)
			return word * 64 + (size_t)__builtin_ctzll(found);
	}
	return CHUNK_PAGES;
}

/* ---- Chunks ---- */

void chunk_init(struct chunk *chunk, size_t number, size_t block_size)
{
	size_t page_blocks = CHUNK_PAGE / block_size;

	assert(page_blocks >= 1 && page_blocks <= CHUNK_PAGE_BLOCKS);
	chunk->number = number;
	chunk->all = UINT64_MAX >> (64 - page_blocks);
	for (size_t page = CHUNK_FIRST; page < CHUNK_PAGES; page++) {
		chunk->free[page] = chunk->all;
		pages_add(chunk->absent, page);
		pages_add(chunk->unused, page);
	}
}

void chunk_fill(struct chunk *chunk)
{
	assert(chunk->present == 0);
	for (size_t i = 0; i < CHUNK_WORDS; i++) {
		chunk->usable[i] = chunk->absent[i];
		chunk->absent[i] = 0;
	}
	chunk->present = CHUNK_PAGES - CHUNK_FIRST;
	chunk->empty = chunk->present;
	chunk->usable_count = chunk->present;
}

static void chunk_take_page(struct chunk *chunk, size_t page, struct chunk_blocks *blocks)
{
	blocks->page = chunk_page(chunk, page);
	blocks->mask = chunk->free[page];
	chunk->free[page] = 0;
	pages_remove(chunk->unused, page);
}

void chunk_take(struct chunk *chunk, struct chunk_blocks *blocks)
{
	size_t page = pages_next(chunk->usable, 0, 0);

	chunk->empty -= chunk->free[page] == chunk->all;
	chunk->usable_count--;
	pages_remove(chunk->usable, page);
	chunk_take_page(chunk, page, blocks);
}

void chunk_take_absent(struct chunk *chunk, struct chunk_blocks *blocks)
{
	size_t page = pages_next(chunk->absent, 0, 0);

	chunk->present++;
	pages_remove(chunk->absent, page);
	chunk_take_page(chunk, page, blocks);
}

void chunk_give_page(struct chunk *chunk, size_t page)
{
	uint64_t free = chunk->free[page];

	/* It has its first free block. */
	if ((free & (free - 1)) == 0) {
		pages_add(chunk->usable, page);
		chunk->usable_count++;
	}
	if (free == chunk->all) {
		pages_add(chunk->unused, page);
		chunk->empty++;
	}
}

struct chunk_used chunk_find_any(const struct chunk *chunk, size_t number)
{
	size_t page = number / CHUNK_PAGE_BLOCKS;
	uint64_t mask = page < CHUNK_FIRST ? 0 : chunk->all >> number % CHUNK_PAGE_BLOCKS;

	if (mask != 0 || number == CHUNK_NUMBERS)
		return (struct chunk_used){number, number == CHUNK_NUMBERS ? 0 : mask};
	page = page < CHUNK_FIRST ? CHUNK_FIRST : page + 1;
	return (struct chunk_used){page * CHUNK_PAGE_BLOCKS, page < CHUNK_PAGES ? chunk->all : 0};
}

struct chunk_used chunk_find_used(const struct chunk *chunk, size_t number)
{
	struct chunk_used run = chunk_find_any(chunk, number);

	while (run.mask) {
		size_t page = run.number / CHUNK_PAGE_BLOCKS;
		size_t next = pages_next(chunk->unused, page, UINT64_MAX);

		if (next == page) {
			run.mask &= ~(chunk->free[page] >> run.number % CHUNK_PAGE_BLOCKS);
			if (run.mask)
				break;
			next++;
		}
		run = chunk_find_any(chunk, next * CHUNK_PAGE_BLOCKS);
	}
	return run;
}

unsigned chunk_find_rows(const struct chunk *chunk, struct chunk_row *rows, unsigned most)
{
	/* Pages of 4 KiB in one of the system's. */
	size_t step = pages_size() > CHUNK_PAGE ? pages_size() / CHUNK_PAGE : 1;
	unsigned count = 0;
	size_t end;

	for (size_t first = 0; count < most; first = end) {
		size_t empty;

		first = pages_next(chunk->unused, first, 0);
		if (first == CHUNK_PAGES)
			break;
		end = pages_next(chunk->unused, first, UINT64_MAX);
		empty = pages_next(chunk->absent, first, UINT64_MAX);
		first = (first + step - 1) / step * step;
		if (empty < end && first < end / step * step)
			rows[count++] =
				(struct chunk_row){(uint32_t)first, (uint32_t)(end / step * step)};
	}
	return count;
}

void chunk_forget_row(struct chunk *chunk, const struct chunk_row *row)
{
	for (size_t page = row->first; page < row->end; page++) {
		if (!chunk_is_present(chunk, page))
			continue;
		pages_add(chunk->absent, page);
		pages_remove(chunk->usable, page);
		chunk->usable_count--;
		chunk->present--;
		chunk->empty--;
	}
}
