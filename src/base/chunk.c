/* SPDX-License-Identifier: MIT */
#include "chunk.h"

#include <assert.h>

#include "pages.h"

/* The value of next_page when all pages have been searched. */
enum { CHUNK_LOOKED_AT = CHUNK_PAGES_MOST + 1 };

/* Returns a mask of the bits from `first` to `last` that lie in word number `word`. */
static uint64_t bits_of_word(size_t word, size_t first, size_t last)
{
	uint64_t mask = UINT64_MAX;

	if (word == first / 64)
		mask &= UINT64_MAX << first % 64;
	if (word == last / 64)
		mask &= UINT64_MAX >> (63 - last % 64);
	return mask;
}

static bool bits_are_set(const uint64_t *words, size_t first, size_t end)
{
	assert(first < end);
	for (size_t word = first / 64; word <= (end - 1) / 64; word++)
		if (~words[word] & bits_of_word(word, first, end - 1))
			return false;
	return true;
}

static void bits_set(uint64_t *words, size_t first, size_t end, bool set)
{
	assert(first <= end && end > 0);
	for (size_t word = first / 64; word <= (end - 1) / 64; word++) {
		uint64_t mask = bits_of_word(word, first, end - 1);

		words[word] = set ? words[word] | mask : words[word] & ~mask;
	}
}

void chunk_init(struct chunk *chunk, size_t number, size_t block_size, bool is_there)
{
	size_t page_size = pages_size();

	chunk->number = number;
	chunk->block_size = (uint32_t)block_size;
	chunk->block_count = (uint32_t)((CHUNK_SIZE - CHUNK_HEADER) / block_size);
	chunk->page_size = (uint32_t)page_size;
	chunk->free_count = chunk->block_count;
	chunk->next_page = CHUNK_LOOKED_AT;
	chunk->held = is_there ? (uint32_t)(CHUNK_SIZE / page_size) : 1;
	bits_set(chunk->free, 0, chunk->block_count, true);
	if (!is_there)
		bits_set(chunk->absent, 1, CHUNK_SIZE / page_size, true);
}

/* Counts the pages of blocks `first` to end - 1 as present: their user will touch them. */
static void chunk_hold(struct chunk *chunk, size_t first, size_t end)
{
	size_t offset = CHUNK_HEADER + first * chunk->block_size;
	size_t last = (CHUNK_HEADER + end * chunk->block_size - 1) / chunk->page_size;

	for (size_t page = offset / chunk->page_size; page <= last; page++) {
		uint64_t bit = (uint64_t)1 << page % 64;

		chunk->held += (chunk->absent[page / 64] & bit) != 0;
		chunk->absent[page / 64] &= ~bit;
	}
}

/* Returns how many bits of `word` are set in a row from bit `first` on, which must be set. */
static unsigned bits_in_a_row(uint64_t word, unsigned first)
{
	uint64_t clear = ~(word >> first);

	return clear ? (unsigned)__builtin_ctzll(clear) : 64;
}

/* Takes whole runs of free blocks: fresh memory is one run, and after a trim most runs are long. */
unsigned chunk_take(struct chunk *chunk, void **blocks, unsigned most)
{
	unsigned count = chunk->free_count < most ? chunk->free_count : most;
	size_t word = chunk->first_word;

	for (size_t left = count; left > 0;) {
		uint64_t free = chunk->free[word];
		unsigned bit;
		size_t run;
		size_t first;
		char *block;

		if (free == 0) {
			word++;
			continue;
		}
		bit = (unsigned)__builtin_ctzll(free);
		run = bits_in_a_row(free, bit);
		run = run < left ? run : left;
		first = word * 64 + bit;
		chunk->free[word] = free & ~bits_of_word(word, first, first + run - 1);
		if (chunk->held < CHUNK_SIZE / chunk->page_size)
			chunk_hold(chunk, first, first + run);
		block = chunk_block(chunk, chunk->block_size, first);
		for (; run > 0; run--, block += chunk->block_size)
			blocks[--left] = block;
	}
	chunk->first_word = (uint32_t)word;
	chunk->free_count -= count;
	return count;
}

void chunk_give(struct chunk *chunk, void *block)
{
	size_t offset = (size_t)((char *)block - (char *)chunk) - CHUNK_HEADER;
	uint32_t number = (uint32_t)offset / chunk->block_size;

	chunk->free[number / 64] |= (uint64_t)1 << number % 64;
	chunk->free_count++;
	if (number / 64 < chunk->first_word)
		chunk->first_word = number / 64;
}

struct chunk_used chunk_find_used(const struct chunk *chunk, size_t number)
{
	struct chunk_used none = {.number = chunk->block_count};

	while (number < chunk->block_count && !chunk_is_unused(chunk)) {
		uint64_t used = ~chunk->free[number / 64] >> number % 64;
		size_t left = chunk->block_count - number;

		if (left < 64)
			used &= ((uint64_t)1 << left) - 1;
		if (used)
			return (struct chunk_used){number, used};
		number = (number / 64 + 1) * 64;
	}
	return none;
}

/* Sets the blocks that lie on `pages`. The header's page must not be one of them. */
static void chunk_find_blocks(const struct chunk *chunk, struct chunk_pages *pages)
{
	size_t from = (size_t)pages->first * chunk->page_size - CHUNK_HEADER;
	size_t last =
		((size_t)pages->end * chunk->page_size - CHUNK_HEADER - 1) / chunk->block_size;

	pages->first_block = (uint32_t)(from / chunk->block_size);
	pages->end_block = last < chunk->block_count ? (uint32_t)last + 1 : chunk->block_count;
}

static bool chunk_has_page_free(const struct chunk *chunk, uint32_t page)
{
	struct chunk_pages pages = {.first = page, .end = page + 1};

	chunk_find_blocks(chunk, &pages);
	return !(chunk->absent[page / 64] >> page % 64 & 1) &&
	       bits_are_set(chunk->free, pages.first_block, pages.end_block);
}

bool chunk_take_pages(struct chunk *chunk, uint32_t most, struct chunk_pages *pages)
{
	uint32_t page = chunk->next_page;
	uint32_t end = (uint32_t)(CHUNK_SIZE / chunk->page_size);

	while (page < end && !chunk_has_page_free(chunk, page))
		page++;
	pages->first = page;
	while (page < end && page - pages->first < most && chunk_has_page_free(chunk, page))
		page++;
	pages->end = page;
	chunk->next_page = page;
	if (pages->first == pages->end) {
		chunk->next_page = CHUNK_LOOKED_AT;
		return false;
	}
	chunk_find_blocks(chunk, pages);
	bits_set(chunk->free, pages->first_block, pages->end_block, false);
	chunk->free_count -= pages->end_block - pages->first_block;
	return true;
}

void chunk_begin_look(struct chunk *chunk)
{
	chunk->next_page = 1;
}

bool chunk_is_looked_at(const struct chunk *chunk)
{
	return chunk->next_page == CHUNK_LOOKED_AT;
}

void chunk_give_pages(struct chunk *chunk, const struct chunk_pages *pages, bool are_gone)
{
	bits_set(chunk->free, pages->first_block, pages->end_block, true);
	chunk->free_count += pages->end_block - pages->first_block;
	if (pages->first_block / 64 < chunk->first_word)
		chunk->first_word = pages->first_block / 64;
	if (!are_gone)
		return;
	bits_set(chunk->absent, pages->first, pages->end, true);
	chunk->held -= pages->end - pages->first;
}
