/* SPDX-License-Identifier: MIT */
/*
 * Ids of handles, while the table grows: one thread makes timers, the last of them in a
 * new chunk, and passes its id on without any order; another asks for it. It finds nothing, or the
 * timer: never memory that is not written yet.
 */
#include <assert.h>
#include <genmc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/slab.h"

/* A chunk holds two handles. */
#undef SLAB_CHUNK
#define SLAB_CHUNK ((size_t)256)

void *calloc(size_t count, size_t size);

#include "base/slab.c"
#include "runtime/handle.c"

enum { HANDLES = 4, CHUNKS = 4 };

static struct handle_table table;
static _Atomic uint64_t passed_id;

/* No magazine is filled here, nor taken. */
void *memcpy(void *to, const void *from, size_t size)
{
	(void)from;
	(void)size;
	assert(false);
	return to;
}

void thread_back_off(unsigned *tries)
{
	++*tries;
	__VERIFIER_assume(false);
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until)
{
	(void)until;
	return pthread_cond_wait(condition, lock) == 0;
}

/* Zeroed by the thread that maps it, as under a sanitizer. */
void *pages_map_aligned(size_t size)
{
	char *memory = aligned_alloc(size, size);
	struct handle *handles = (struct handle *)(void *)(memory + CACHE_LINE);

	for (size_t i = 0; i < chunk_handles(); i++)
		atomic_init(&handles[i].state, 0);
	return memory;
}

void pages_unmap_aligned(void *memory, size_t size)
{
	(void)size;
	free(memory);
}

void pages_use_huge(void *memory, size_t size, bool huge)
{
	(void)memory;
	(void)size;
	(void)huge;
}

void pages_populate(void *memory, size_t size)
{
	(void)memory;
	(void)size;
}

static void *maker_run(void *argument)
{
	uint64_t id = 0;

	for (int i = 0; i < HANDLES; i++) {
		struct handle *handle = handle_new(&table, &id);

		assert(handle && handle_find(&table, id) == handle);
	}
	/* relaxed: the table alone must see to it that the id can be used. */
	atomic_store_explicit(&passed_id, id, memory_order_relaxed);
	return argument;
}

static void *asker_run(void *argument)
{
	/* relaxed: as above. */
	uint64_t id = atomic_load_explicit(&passed_id, memory_order_relaxed);
	enum tw_status status;

	if (id == 0)
		return argument;
	status = handle_stop(&table, id);
	assert(status == TW_OK || status == TW_NOT_FOUND);
	return argument;
}

int main(void)
{
	static _Atomic(struct slab_chunk *) chunks[CHUNKS];
	pthread_t threads[2];

	table.chunks = chunks;
	table.slab.block_size = sizeof(struct handle);
	table.slab.magazine = 1;
	table.slab.recycles = true;
	table.slab.hook = handle_table_add_chunk;
	table.slab.hook_argument = &table;
	pthread_create(&threads[0], NULL, maker_run, NULL);
	pthread_create(&threads[1], NULL, asker_run, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	slab_destroy(&table.slab);
	return 0;
}
