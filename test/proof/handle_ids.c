/* SPDX-License-Identifier: MIT */
/*
 * In this harness one thread makes timers and passes their ids on without any memory order, and
 * another asks for one of them. Bounds:
 *
 *   SHOWS   GROWTH: the last timer made lies in a new chunk. The other thread finds nothing, or
 *           the timer: never memory that is not written yet
 *           RETURN: each timer ends before the next is made, and its page goes back to the
 *           system, so that the next lies in memory that reads as zero. Ids are unique, and a stop
 *           takes no timer but its own
 *   TURNS   timers made, for RETURN
 */
#ifndef SHOWS
#define SHOWS GROWTH
#endif
#ifndef TURNS
#define TURNS 2
#endif

/* A chunk holds two handles, each on a page. */
#define PAGE 128
#include "proof_slab.h"
#include "proof_threads.h"

void *calloc(size_t count, size_t size);

#include "runtime/alarm.c"
#include "runtime/handle.c"

enum shows { GROWTH, RETURN };
enum { HANDLES = 4, CHUNKS = 4 };

static struct handle_table table;
static struct alarm_table alarms;
static uint64_t ids[TURNS];
static _Atomic uint64_t passed_id;
/* A stop came before this timer's end. */
static uint64_t lost_id;
static uint64_t stopped_id;

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, tw_duration until)
{
	(void)until;
	return pthread_cond_wait(condition, lock) == 0;
}

static void blocks_clear(void *memory, size_t size)
{
	char *handles = memory;

	for (size_t i = 0; i < size / PAGE; i++) {
		struct alarm *handle = (struct alarm *)(handles + i * PAGE);

		handle->timer.value = NULL;
		handle->timer.deadline = 0;
		/* relaxed: the kernel orders nothing. */
		atomic_store_explicit(&handle->word, 0, memory_order_relaxed);
	}
}

static uint64_t handle_make(struct alarm **handle)
{
	uint64_t id;

	*handle = handle_new(&table, &id);
	(*handle)->timer.class = TIMER_HANDLE;
	alarm_begin_life(*handle, 1, false);
	assert(*handle && handle_find(&table, id) == *handle && handle_generation(id) != 0);
	/* relaxed: the table alone must make the id usable. */
	atomic_store_explicit(&passed_id, id, memory_order_relaxed);
	return id;
}

/* Does what a drain does. Returns false if the timer was stopped. */
static bool handle_end_use(struct alarm *handle)
{
	static struct slab_bin bin;
	bool was_filed;

	if (alarm_apply_change(handle, &was_filed) != ALARM_FILE || !alarm_take(handle))
		return false;
	handle->timer.value = NULL;
	if (alarm_end(&alarms, handle, ALARM_NOT_RUN, NULL) == ALARM_GONE)
		handle_free(&table, &bin, handle);
	slab_flush(&table.slab, &bin);
	return true;
}

static void handles_make_and_finish(void)
{
	struct alarm *handle;

	for (int i = 0; i < TURNS; i++) {
		ids[i] = handle_make(&handle);
		for (int j = 0; j < i; j++)
			assert(ids[i] != ids[j]);
		if (!handle_end_use(handle)) {
			lost_id = ids[i];
			return;
		}
	}
}

static void *maker_run(void *argument)
{
	struct alarm *handle;

	if (SHOWS == RETURN)
		handles_make_and_finish();
	else
		for (int i = 0; i < HANDLES; i++)
			(void)handle_make(&handle);
	return argument;
}

static void *asker_run(void *argument)
{
	/* relaxed: see handle_make(). */
	uint64_t id = atomic_load_explicit(&passed_id, memory_order_relaxed);
	struct alarm *alarm;
	enum tw_status status;
	bool changed;
	void *value;

	if (id == 0)
		return argument;
	alarm = handle_find(&table, id);
	status = alarm ? alarm_end_life(&alarms, alarm, handle_generation(id), &value, &changed)
		       : TW_NOT_FOUND;
	assert(status == TW_OK || status == TW_NOT_FOUND);
	if (status == TW_OK)
		stopped_id = id;
	return argument;
}

static void *(*const runs[])(void *) = {maker_run, asker_run};

int main(void)
{
	static _Atomic(struct chunk *) chunks[CHUNKS];
	static const struct slab_hooks hooks = {handle_table_begin_chunk, handle_table_forget,
						&table};

	table.chunks = chunks;
	table.slab.block_size = sizeof(struct alarm);
	table.slab.reciprocal = 65535 / sizeof(struct alarm) + 1;
	table.slab.unit = 1;
	table.slab.recycles = true;
	table.slab.hooks = &hooks;
	for (int i = 0; i < SLAB_LISTS; i++)
		list_init(&table.slab.chunks[i]);
	proof_run(runs, 2);
	assert(SHOWS != RETURN || lost_id == stopped_id);
	slab_destroy(&table.slab);
	assert(chunks_mapped() == 0);
	return 0;
}
