/* SPDX-License-Identifier: MIT */
/*
 * Blocks are cut from one range, and go to a list of their size when they are freed. Fresh and
 * freed memory is filled. A block that is taken again must still be filled as it was freed, so that
 * a write after the free is found, and a read gets no sensible value. Mapped memory comes from a
 * range of its own, and faults after it was unmapped.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "scheduler.h"

enum {
	FRESH = 0xa5,
	FREED = 0xdd,
	FILLED_MOST = 512, /* bytes of a freed block */
	ALIGNMENT = 128,
	SIZES = 40
};

static const size_t large = (size_t)2 << 20;
static const size_t range_size = (size_t)4 << 30;
static char *const blocks_at = (char *)0x200000000000;
static char *const pages_at = (char *)0x220000000000;
enum { SIM_PAGE_SIZE = 4096 };

enum block_state { BLOCK_USED = 0x75736564, BLOCK_FREE = 0x66726565 };

/* This precedes the block's memory. */
struct block {
	_Alignas(ALIGNMENT) enum block_state state;
	unsigned class;
	bool is_large;
	size_t size;
	struct block *next;
};

struct block_list {
	struct block *first;
	struct block *last;
};

static struct block_list lists[2][SIZES];
static char *next_block;
static char *next_page;
static size_t used;   /* number of blocks */
static size_t mapped; /* bytes */
static uint64_t refused;
static bool uses_soon;

bool sim_memory_refuses(void)
{
	if (!sim_happens(sim_plan_here()->memory_failures))
		return false;
	refused++;
	errno = ENOMEM;
	return true;
}

static char *range_open(char *address)
{
	char *range = mmap(address, range_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (range != address) {
		fprintf(stderr, "no room for memory at %p\n", (void *)address);
		exit(2);
	}
	return range;
}

void sim_memory_begin(bool soon)
{
	if (!next_block) {
		range_open(blocks_at);
		next_page = range_open(pages_at);
	}
	if (next_page > pages_at) {
		size_t touched = (size_t)(next_page - pages_at);

		mprotect(pages_at, touched, PROT_READ | PROT_WRITE);
		madvise(pages_at, touched, MADV_DONTNEED);
	}
	next_block = blocks_at;
	next_page = pages_at;
	memset(lists, 0, sizeof(lists));
	uses_soon = soon;
	used = 0;
	mapped = 0;
	refused = 0;
}

void sim_memory_end(void)
{
	if (used > 0)
		sim_fail("%zu blocks of memory are left over", used);
	if (mapped > 0)
		sim_fail("%zu mapped bytes are left over", mapped);
}

uint64_t sim_memory_refused(void)
{
	return refused;
}

/* ---- Blocks ---- */

static size_t class_size(unsigned class)
{
	return (size_t)1 << class;
}

static struct block *block_cut(unsigned class, bool is_large)
{
	size_t alignment = is_large ? large : ALIGNMENT;
	uintptr_t memory = (uintptr_t)next_block + sizeof(struct block);
	struct block *block;

	memory = (memory + alignment - 1) & ~(uintptr_t)(alignment - 1);
	if (memory + class_size(class) > (uintptr_t)blocks_at + range_size)
		sim_fail("a case takes more than %zu bytes of memory", range_size);
	next_block = (char *)memory + class_size(class);
	block = (struct block *)memory - 1;
	*block = (struct block){.class = class, .is_large = is_large};
	return block;
}

static void block_check_freed(const struct block *block)
{
	const unsigned char *memory = (const unsigned char *)(block + 1);
	size_t filled = block->size < FILLED_MOST ? block->size : FILLED_MOST;

	for (size_t i = 0; i < filled; i++)
		if (memory[i] != FREED)
			sim_fail("byte %zu of a block of %zu was written after it was freed", i,
				 block->size);
}

static void *block_take(size_t alignment, size_t size)
{
	bool is_large = alignment > ALIGNMENT;
	unsigned class = 6;
	struct block_list *list;
	struct block *block;

	while (class_size(class) < size)
		class ++;
	list = &lists[is_large][class];
	block = list->first;
	if (block) {
		list->first = block->next;
		block_check_freed(block);
	} else {
		block = block_cut(class, is_large);
	}
	block->state = BLOCK_USED;
	block->size = size;
	used++;
	return block + 1;
}

static void block_give(struct block *block)
{
	struct block_list *list = &lists[block->is_large][block->class];

	if (block->state != BLOCK_USED)
		sim_fail("memory is freed that is not in use: %p", (void *)(block + 1));
	memset(block + 1, FREED, block->size < FILLED_MOST ? block->size : FILLED_MOST);
	block->state = BLOCK_FREE;
	used--;
	if (!list->first || uses_soon) {
		block->next = list->first;
		if (!list->first)
			list->last = block;
		list->first = block;
	} else {
		block->next = NULL;
		list->last->next = block;
		list->last = block;
	}
}

/* ---- The calls ---- */

static void *take(size_t alignment, size_t size, int filling)
{
	void *memory;

	sim_point();
	if (sim_memory_refuses())
		return NULL;
	if (!SANITIZER_ADDRESS)
		memory = block_take(alignment, size);
	else if (alignment <= sizeof(max_align_t))
		memory = malloc(size);
	else
		memory = aligned_alloc(alignment, size);
	used += SANITIZER_ADDRESS;
	memset(memory, filling, size);
	return memory;
}

void *sim_malloc(size_t size)
{
	return take(1, size, FRESH);
}

void *sim_calloc(size_t count, size_t size)
{
	return take(1, count * size, 0);
}

void *sim_aligned_alloc(size_t alignment, size_t size)
{
	return take(alignment, size, FRESH);
}

void *sim_realloc(void *memory, size_t size)
{
	void *larger;

	if (SANITIZER_ADDRESS) {
		if (sim_memory_refuses())
			return NULL;
		used += !memory;
		return realloc(memory, size);
	}
	larger = sim_malloc(size);
	if (larger && memory) {
		size_t before = ((struct block *)memory - 1)->size;

		memcpy(larger, memory, before < size ? before : size);
		sim_free(memory);
	}
	return larger;
}

void sim_free(void *memory)
{
	if (!memory)
		return;
	if (SANITIZER_ADDRESS) {
		used--;
		free(memory);
	} else {
		block_give((struct block *)memory - 1);
	}
	sim_point();
}

static size_t whole_pages(size_t size)
{
	return (size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE * SIM_PAGE_SIZE;
}

void *sim_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
	char *memory;

	sim_point();
	if (sim_memory_refuses())
		return MAP_FAILED;
	/* It is read after the point, where threads may switch. */
	memory = next_page;
	size = whole_pages(size);
	if (size > (size_t)(pages_at + range_size - next_page))
		sim_fail("a case maps more than %zu bytes", range_size);
	next_page += size;
	mapped += size;
	return memory;
}

int sim_munmap(void *memory, size_t size)
{
	if (size == 0) {
		errno = EINVAL;
		return -1;
	}
	size = whole_pages(size);
	mapped -= size;
	mprotect(memory, size, PROT_NONE);
	sim_point();
	return 0;
}

int sim_madvise(void *memory, size_t size, int advice)
{
	sim_point();
	return advice == MADV_DONTNEED ? madvise(memory, size, advice) : 0;
}

ssize_t sim_getrandom(void *buffer, size_t size, unsigned flags)
{
	unsigned char *bytes = buffer;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)sim_draw(256);
	return (ssize_t)size;
}
