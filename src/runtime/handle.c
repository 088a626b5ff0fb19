/* SPDX-License-Identifier: MIT */
/*
 * A handle's life is a word: its generation above, phase and flags below. To stop, reset or run it
 * is to change the word by compare-and-swap; of a stop and the firing, the one whose exchange
 * succeeds wins. The owner is not asked; it learns of a stop, and of a reset to an earlier
 * deadline, through an inbox.
 *
 *   pending   set, and not begun; wherever it is: in the command queue, the wheel or the pool
 *   running   its function is being called
 *   stopped   will not run; not free yet
 *   free      in the slab, or about to be
 *
 *   LISTED    it is in an inbox of the table; the thread that sets the flag adds it, the owner
 *             clears it
 *   RESET     `deadline` is its deadline from now on; so it must not run at the old one
 *   NOW       that had passed at the reset
 *   BACK      the pool, which had it, passes it on to the owner, which is to file it; LISTED, too
 *   LEFT      the pool or the command queue, which had it, has let go
 *   LAST      running, and will not again
 *   BUSY      a thread has locked it: only that one changes the word, and writes `deadline`; the
 *             others wait those few instructions
 *   PERIODIC  it has a schedule
 *
 * What happens to a handle, one function each. Where a row does not apply, nothing changes.
 *
 *   event            from     if                 to                    answer; what comes next
 *   handle_stop      pending                     stopped, LISTED       TW_OK; owner: apply_stop
 *                    running  LAST               -                     TW_RUNNING
 *                    running  RESET or PERIODIC  LAST, not RESET       TW_REARMED
 *                    running  else               LAST                  TW_RUNNING
 *                    others                      -                     TW_NOT_FOUND
 *   handle_take_val. as handle_stop
 *   handle_reset     pending  sooner             RESET, LISTED         owner: apply_change
 *                    pending  later              RESET                 owner: is_due; or begin
 *                    running  not LAST           RESET                 handle_end
 *   handle_is_due    pending  RESET              not RESET             owner: into the wheel
 *                    else                        -                     handed over to run
 *   handle_begin     pending  RESET              BACK, LISTED          owner: apply_change
 *                    pending  else               running               its job: the function
 *                    stopped                     LEFT                  freed, unless LISTED
 *   handle_end       running  it goes on         pending, BACK,        owner: apply_change
 *                                                LISTED
 *                    running  else               stopped, LEFT         freed, unless LISTED
 *   handle_claim     pending                     stopped               drain or release, let_go
 *   handle_let_go    stopped                     LEFT                  freed, unless LISTED
 *   apply_set        pending                     not RESET             owner: into the wheel
 *                    stopped                     LEFT                  freed by apply_stop
 *   apply_change     pending  BACK               not LISTED, BACK,     owner: into the wheel
 *                                                RESET
 *                    pending  RESET, in wheel    not LISTED, RESET     owner: filed again
 *                    stopped                     as apply_stop
 *                    else                        not LISTED
 *   apply_stop       stopped  BACK or in wheel   not LISTED            counted as removed, freed
 *                    stopped  LEFT               not LISTED            freed
 *                    stopped  else               not LISTED            freed by its holder
 *
 * The argument goes with the answer: TW_OK gives it to the caller at once, TW_REARMED once the run
 * has ended (whatever `next` may be about to say), TW_RUNNING to the run; after LAST an earlier
 * stop has decided.
 *
 * A run goes on if not LAST, and RESET or by its schedule. It ends if its `next` said so: a reset
 * that came while `next` was asked has moved a run that does not come.
 *
 * A handle that is pending, and neither BACK nor LISTED, has `deadline`, and where it is in the
 * wheel, it is filed by that deadline or an earlier one. So the owner need not know of one that
 * moves later: it finds out when the earlier deadline comes.
 *
 * Ownership. The wheel's part belongs to the owner while it is in the wheel, to a worker while it
 * is away. A stopped handle is freed by the later of two events: it was let go (LEFT), the owner
 * took it from its inbox (not LISTED). Both are changes of the same word, so each sees whether it
 * is the later one. What is reset or has come back has an inbox of its own, which a million stops
 * don't hold up.
 *
 * A handle's memory is never anything else, so an old id may look at its state and its place for
 * ever. Each use has a generation of its own, from 1 on; a handle that has had its 2^36 generations
 * is not used again. Pages of free handles that were given back to the system read as 0, which is
 * no generation; their chunk's floor remembers the generations that are used up.
 *
 * Invariants: LISTED means that it is in one inbox, once. Only the owner takes it from there. RESET
 * and LAST are not set together while it runs. Only a timer that is pending or runs is BUSY. One
 * thread gives a handle back to the slab: it has seen it LEFT, or had it, and not LISTED.
 *
 * Linearization of a stop and the beginning of a run: their exchange of the state. Of a reset:
 * the exchange that locks it.
 */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pages.h"
#include "base/prefetch.h"
#include "base/thread.h"

/* Calls of these would be up to 20 instructions each. */
#define INLINED static inline __attribute__((always_inline))

enum {
	PHASE = 3,
	FREE = 0,
	PENDING = 1,
	RUNNING = 2,
	STOPPED = 3,
	LISTED = 1 << 2,
	RESET = HANDLE_WAS_RESET,
	LEFT = 1 << 4,
	LAST = 1 << 5,
	BUSY = 1 << 6,
	PERIODIC = 1 << 7,
	NOW = 1 << 8,
	BACK = 1 << 9,
	GENERATION_SHIFT = 12,
	INDEX_BITS = 28
};

static const uint64_t last_generation = ((uint64_t)1 << (64 - INDEX_BITS)) - 1;
static const uint64_t last_forgotten = ((uint64_t)1 << (64 - INDEX_BITS - 4)) - 1;

/* ---- Memory and ids ---- */

_Static_assert(offsetof(struct timer, place) > offsetof(struct timer, job) &&
		       offsetof(struct timer, pending_set) > offsetof(struct timer, job) &&
		       offsetof(struct handle, state) > sizeof(struct timer),
	       "the slab leaves alone what an old id may look at");

enum { CHUNK_HANDLES = (CHUNK_SIZE - CHUNK_HEADER) / sizeof(struct handle) };

/* Searching a chunk for memory in use takes as long as looking at this many handles. */
enum { LOOKS_A_CHUNK = 8 };

/* An id's bits can name this many chunks. */
static const size_t most_chunks = (((size_t)1 << INDEX_BITS) - 1) / CHUNK_HANDLES + 1;

static struct handle *chunk_handle(const struct chunk *chunk, size_t number)
{
	return chunk_block(chunk, sizeof(struct handle), number);
}

static uint64_t generation_of(uint64_t state)
{
	return state >> GENERATION_SHIFT;
}

/* The states of a new chunk's handles are 0: free, of no generation yet. */
static bool handle_table_begin_chunk(void *argument, struct chunk *chunk)
{
	struct handle_table *table = argument;

	if ((chunk->number + 1) * CHUNK_HANDLES > (size_t)1 << INDEX_BITS)
		return false;
	/* relaxed: published with the chunk. */
	atomic_store_explicit(&chunk->floor, 1, memory_order_relaxed);
	/* release: publishes the chunk; pairs with the acquire in handle_find(). */
	atomic_store_explicit(&table->chunks[chunk->number], chunk, memory_order_release);
	return true;
}

/*
 * The generations of these handles are about to become 0. Their next ones follow after all that
 * there were. A handle that has had very many keeps its memory: the others would lose as many.
 */
static bool handle_table_forget(void *argument, struct chunk *chunk,
				const struct chunk_pages *pages)
{
	/* relaxed, here and below: the handles are free, and no other thread changes the floor. The
	 * next user of one of them takes it from the slab. */
	uint64_t floor = atomic_load_explicit(&chunk->floor, memory_order_relaxed);

	(void)argument;
	for (size_t i = pages->first_block; i < pages->end_block; i++) {
		struct handle *handle = chunk_handle(chunk, i);
		uint64_t generation =
			generation_of(atomic_load_explicit(&handle->state, memory_order_relaxed));

		floor = generation > floor ? generation : floor;
	}
	if (floor > last_forgotten)
		return false;
	atomic_store_explicit(&chunk->floor, floor, memory_order_relaxed);
	return true;
}

bool handle_table_init(struct handle_table *table)
{
	memset(table, 0, sizeof(*table));
	table->chunks = pages_map_untouched(most_chunks * sizeof(*table->chunks));
	if (!table->chunks)
		return false;
	table->hooks = (struct slab_hooks){handle_table_begin_chunk, handle_table_forget, table};
	slab_init_hooked(&table->slab, sizeof(struct handle), offsetof(struct handle, timer.job),
			 &table->hooks);
	table->slab.fetches = true;
	pthread_mutex_init(&table->lock, NULL);
	pthread_cond_init(&table->run_ended, NULL);
	return true;
}

void handle_table_destroy(struct handle_table *table)
{
	pthread_cond_destroy(&table->run_ended);
	pthread_mutex_destroy(&table->lock);
	slab_destroy(&table->slab);
	pages_unmap_aligned(table->chunks, most_chunks * sizeof(*table->chunks));
}

static uint64_t handle_id(const struct handle *handle, uint64_t generation)
{
	const struct chunk *chunk = chunk_of(handle);
	size_t index = (size_t)(handle - chunk_handle(chunk, 0));

	return generation << INDEX_BITS | (chunk->number * CHUNK_HANDLES + index);
}

/* Returns the handle of an id, whatever it is by now, or NULL if the id is no wheel's. */
static struct handle *handle_find(const struct handle_table *table, uint64_t id)
{
	size_t index = (size_t)(id & (((uint64_t)1 << INDEX_BITS) - 1));
	/* acquire: sees the chunk; pairs with the release in handle_table_begin_chunk(). */
	const struct chunk *chunk =
		atomic_load_explicit(&table->chunks[index / CHUNK_HANDLES], memory_order_acquire);

	return chunk ? chunk_handle(chunk, index % CHUNK_HANDLES) : NULL;
}

struct handle *handle_new(struct handle_table *table, uint64_t *id)
{
	struct handle *handle = slab_take(&table->slab);
	uint64_t generation;
	uint64_t floor;

	if (!handle)
		return NULL;
	/* relaxed, both: no other thread changes a free one; see handle_table_forget(). */
	generation = generation_of(atomic_load_explicit(&handle->state, memory_order_relaxed));
	floor = atomic_load_explicit(&chunk_of(handle)->floor, memory_order_relaxed);
	if (generation < floor)
		generation = floor;
	handle->timer.class = TIMER_HANDLE;
	timer_set_place(&handle->timer, TIMER_IN_QUEUE);
	*id = handle_id(handle, generation);
	/* release: what was done with it before, for those that ask by an old id; pairs with
	 * handle_state() and handle_table_wait(). What is new is published by the command, and to
	 * others by what passes the id on. */
	atomic_store_explicit(&handle->state, generation << GENERATION_SHIFT | PENDING,
			      memory_order_release);
	return handle;
}

void handle_make_periodic(struct handle *handle, struct schedule *schedule)
{
	/* relaxed, both: it is not set yet, and published as the rest of it is. */
	uint64_t state = atomic_load_explicit(&handle->state, memory_order_relaxed);

	handle->schedule = schedule;
	handle->timer.class = TIMER_PERIODIC;
	atomic_store_explicit(&handle->state, state | PERIODIC, memory_order_relaxed);
}

static inline void handle_give(struct handle_table *table, struct slab_bin *bin,
			       struct handle *handle, uint64_t state)
{
	uint64_t generation = generation_of(state) + 1;

	/* release: after what was done with it; pairs with handle_state() called with an old id. */
	atomic_store_explicit(&handle->state, generation << GENERATION_SHIFT, memory_order_release);
	if (generation < last_generation)
		slab_give(&table->slab, bin, handle);
}

/* Not inlined: the other way needs no stack. */
static __attribute__((noinline)) void handle_free_periodic(struct handle_table *table,
							   struct slab_bin *bin,
							   struct handle *handle, uint64_t state)
{
	struct schedule *schedule = handle->schedule;

	handle_give(table, bin, handle, state);
	free(schedule);
}

void handle_free(struct handle_table *table, struct slab_bin *bin, struct handle *handle)
{
	/* relaxed: no other thread may change it any more. */
	uint64_t state = atomic_load_explicit(&handle->state, memory_order_relaxed);

	if (state & PERIODIC)
		handle_free_periodic(table, bin, handle, state);
	else
		handle_give(table, bin, handle, state);
}

/* ---- Changing the state ---- */

/* Not inlined: the other way needs no stack. */
static __attribute__((noinline, cold)) uint64_t handle_wait(struct handle *handle)
{
	unsigned tries = 0;
	uint64_t state;

	do {
		thread_back_off(&tries);
		/* acquire: see handle_state(). */
		state = atomic_load_explicit(&handle->state, memory_order_acquire);
	} while (state & BUSY);
	return state;
}

/* Once no thread is busy with it. acquire: pairs with handle_exchange(), handle_unlock() and
 * handle_give(). */
static inline uint64_t handle_state(struct handle *handle)
{
	uint64_t state = atomic_load_explicit(&handle->state, memory_order_acquire);

	return state & BUSY ? handle_wait(handle) : state;
}

/* seq_cst: publishes what was written to the handle before; pairs with handle_state(). And the end
 * of a run comes before the look for threads that wait for it; pairs with handle_table_wait(). */
INLINED bool handle_exchange(struct handle *handle, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&handle->state, &from, to,
						       memory_order_seq_cst, memory_order_relaxed);
}

/* Sets LEFT, as the next function clears LISTED. Both return the state before. acq_rel, both: the
 * later sees what was done before the other. */
static uint64_t handle_set_left(struct handle *handle)
{
	return atomic_fetch_or_explicit(&handle->state, LEFT, memory_order_acq_rel);
}

static uint64_t handle_clear_listed(struct handle *handle)
{
	return atomic_fetch_and_explicit(&handle->state, ~(uint64_t)LISTED, memory_order_acq_rel);
}

/* Exchanges the state, and passes the handle back to the owner. The inbox may have it already. */
static bool handle_exchange_back(struct handle_table *table, struct handle *handle, uint64_t from,
				 uint64_t to)
{
	if (!handle_exchange(handle, from, to | LISTED | BACK))
		return false;
	if (!(from & LISTED))
		inbox_add(&table->changed, &handle->change);
	return true;
}

/* From a lock that succeeds to the unlock no other thread changes the state, nor `deadline`. Only
 * of a timer that is pending or runs. */
static bool handle_lock(struct handle *handle, uint64_t state)
{
	return handle_exchange(handle, state, state | BUSY);
}

static void handle_unlock(struct handle *handle, uint64_t state)
{
	/* release: publishes the deadline; pairs with handle_state(). */
	atomic_store_explicit(&handle->state, state, memory_order_release);
}

/* release: after BUSY was set; pairs with handle_look(). */
static void handle_set_deadline(struct handle *handle, tw_duration deadline)
{
	atomic_store_explicit(&handle->deadline, deadline, memory_order_release);
}

static uint64_t with_phase(uint64_t state, uint64_t phase)
{
	return (state & ~(uint64_t)PHASE) | phase;
}

/* Whether the id means this use of the handle, and that can still be stopped or reset. */
static bool state_is_live(uint64_t state, uint64_t id)
{
	uint64_t phase = state & PHASE;

	return generation_of(state) == id >> INDEX_BITS && (phase == PENDING || phase == RUNNING);
}

struct handle *handle_fetch(const struct handle_table *table, uint64_t id)
{
	struct handle *handle = handle_find(table, id);

	if (handle)
		prefetch_to_write(&handle->state);
	return handle;
}

/* Passes a handle to the owner that was stopped while pending. */
INLINED void handle_add_stopped(struct handle_table *table, struct handle *handle, uint64_t id)
{
	inbox_add(&table->stopped[id % HANDLE_INBOXES], &handle->change);
}

enum tw_status handle_stop(struct handle_table *table, uint64_t id)
{
	struct handle *handle = handle_find(table, id);

	while (handle) {
		uint64_t state = handle_state(handle);

		if (!state_is_live(state, id))
			break;
		if ((state & PHASE) == RUNNING) {
			bool further = !(state & LAST) && (state & (RESET | PERIODIC));

			if (handle_exchange(handle, state, (state | LAST) & ~(uint64_t)RESET))
				return further ? TW_REARMED : TW_RUNNING;
		} else if (handle_exchange(handle, state,
					   with_phase(state | LISTED, STOPPED) &
						   ~(uint64_t)RESET)) {
			if (!(state & LISTED))
				handle_add_stopped(table, handle, id);
			return TW_OK;
		}
	}
	return TW_NOT_FOUND;
}

/* Locks the timer and fills in its state. Returns false if it is done, stopped or unknown. */
INLINED bool handle_lock_live(struct handle *handle, uint64_t id, uint64_t *state)
{
	do {
		*state = handle ? handle_state(handle) : 0;
		if (!state_is_live(*state, id) || (*state & LAST))
			return false;
	} while (!handle_exchange(handle, *state, *state | BUSY));
	return true;
}

enum tw_status handle_reset(struct handle_table *table, struct handle *handle, uint64_t id,
			    tw_duration deadline, bool for_now, bool *changed)
{
	uint64_t state;
	uint64_t to;

	if (!handle_lock_live(handle, id, &state))
		return TW_NOT_FOUND;
	to = (state & ~(uint64_t)NOW) | RESET | (for_now ? NOW : 0);
	/* relaxed: no other thread changes it now. One for now may be after a deadline that has
	 * passed, whose tick is still to come. */
	if ((state & PHASE) == PENDING &&
	    (for_now || deadline < atomic_load_explicit(&handle->deadline, memory_order_relaxed)))
		to |= LISTED;
	handle_set_deadline(handle, deadline);
	handle_unlock(handle, to);
	*changed = to & ~state & LISTED;
	if (*changed)
		inbox_add(&table->changed, &handle->change);
	return TW_OK;
}

/* Stops a timer that is locked. */
static void handle_stop_locked(struct handle_table *table, struct handle *handle, uint64_t id,
			       uint64_t state)
{
	uint64_t to = state & ~(uint64_t)RESET;

	to = (state & PHASE) == RUNNING ? to | LAST : with_phase(to | LISTED, STOPPED);
	handle_unlock(handle, to);
	if (to & ~state & LISTED)
		handle_add_stopped(table, handle, id);
}

/* The answer where a timer can't be stopped any more. */
static enum tw_status handle_too_late(struct handle_table *table, uint64_t id)
{
	struct run run;

	return handle_find_run(table, id, &run) && run_is_under_way(&run) ? TW_RUNNING
									  : TW_NOT_FOUND;
}

enum tw_status handle_take_value(struct handle_table *table, uint64_t id, void **value)
{
	struct handle *handle = handle_find(table, id);
	enum tw_status status = TW_OK;
	uint64_t state;

	if (!handle_lock_live(handle, id, &state))
		return handle_too_late(table, id);
	if ((state & PHASE) == RUNNING)
		status = state & (RESET | PERIODIC) ? TW_REARMED : TW_RUNNING;
	/* Before another thread may free it. */
	if (status != TW_RUNNING)
		*value = handle->timer.value;
	handle_stop_locked(table, handle, id, state);
	return status;
}

/* ---- Waiting for the end of a run ---- */

bool handle_find_run(const struct handle_table *table, uint64_t id, struct run *run)
{
	static const uint64_t mask = ~(((uint64_t)1 << GENERATION_SHIFT) - 1) | PHASE;
	uint64_t generation = id >> INDEX_BITS;
	const struct handle *handle = handle_find(table, id);

	if (!handle)
		return false;
	run->word = &handle->state;
	run->mask = mask;
	run->running = generation << GENERATION_SHIFT | RUNNING;
	return true;
}

void handle_table_wait(struct handle_table *table, const struct run *run)
{
	pthread_mutex_lock(&table->lock);
	/* seq_cst: announces, before the look; pairs with the load in handle_table_tell(). */
	atomic_fetch_add_explicit(&table->waiters, 1, memory_order_seq_cst);
	while (run_is_under_way(run))
		condition_wait(&table->run_ended, &table->lock, TW_FOREVER);
	/* relaxed: a wake too many does no harm. */
	atomic_fetch_sub_explicit(&table->waiters, 1, memory_order_relaxed);
	pthread_mutex_unlock(&table->lock);
}

void handle_table_tell(struct handle_table *table)
{
	/* seq_cst: after the end of the run; pairs with the addition in handle_table_wait(). */
	if (atomic_load_explicit(&table->waiters, memory_order_seq_cst) == 0)
		return;
	pthread_mutex_lock(&table->lock);
	pthread_cond_broadcast(&table->run_ended);
	pthread_mutex_unlock(&table->lock);
}

/* ---- The owner ---- */

/* The deadline of a locked handle becomes the timer's, or that of a schedule the handle's. Returns
 * its state after that. */
static uint64_t handle_take_deadline(struct handle *handle, uint64_t state)
{
	handle->timer.by_tick = state & NOW;
	if (state & RESET)
		/* relaxed: no other thread changes it now. */
		handle->timer.deadline =
			atomic_load_explicit(&handle->deadline, memory_order_relaxed);
	else
		handle_set_deadline(handle, handle->timer.deadline);
	return state & ~(uint64_t)(RESET | NOW);
}

static struct handle *handle_take(struct inbox *inbox)
{
	struct inbox_link *link = inbox_take(inbox);

	return link ? list_entry(link, struct handle, change) : NULL;
}

/* One of each inbox after the other, so that the look at one link waits for no other. */
size_t handle_take_stopped(struct handle_table *table, struct handle **taken, size_t most)
{
	size_t count = 0;
	size_t before;

	do {
		before = count;
		for (size_t i = 0; i < HANDLE_INBOXES && count < most; i++) {
			taken[count] = handle_take(&table->stopped[i]);
			if (!taken[count])
				continue;
			prefetch_to_write(&taken[count]->timer);
			prefetch_to_write(&taken[count]->state);
			count++;
		}
	} while (count > before);
	return count;
}

struct handle *handle_take_changed(struct handle_table *table)
{
	struct inbox_link *link = inbox_take(&table->changed);

	/* The next one's other line comes meanwhile. */
	if (table->changed.taken)
		prefetch_to_write(&list_entry(table->changed.taken, struct handle, change)->timer);
	return link ? list_entry(link, struct handle, change) : NULL;
}

void handle_table_mark(const struct handle_table *table, struct handle_marks *marks)
{
	for (size_t i = 0; i < HANDLE_INBOXES; i++)
		marks->stopped[i] = inbox_mark(&table->stopped[i]);
	marks->changed = inbox_mark(&table->changed);
}

bool handle_table_is_past(const struct handle_table *table, const struct handle_marks *marks)
{
	for (size_t i = 0; i < HANDLE_INBOXES; i++)
		if (!inbox_is_past(&table->stopped[i], marks->stopped[i]))
			return false;
	return inbox_is_past(&table->changed, marks->changed);
}

bool handle_table_has_some(struct handle_table *table)
{
	for (size_t i = 0; i < HANDLE_INBOXES; i++)
		if (inbox_has_some(&table->stopped[i]))
			return true;
	return inbox_has_some(&table->changed);
}

enum handle_action handle_apply_stop(struct handle *handle, bool is_here)
{
	uint64_t state;

	/* Before it is unlisted: then a worker may free it, and it may be set again at once. */
	if (timer_place(&handle->timer) == TIMER_IN_QUEUE)
		timer_set_place(&handle->timer, TIMER_STOPPED_IN_QUEUE);
	state = handle_clear_listed(handle);
	if (is_here || (state & BACK))
		return HANDLE_REMOVE;
	return state & LEFT ? HANDLE_FREE : HANDLE_KEEP;
}

enum handle_action handle_apply_change(struct handle *handle, bool is_here)
{
	enum handle_action action = HANDLE_KEEP;
	uint64_t state;

	do {
		state = handle_state(handle);
		if ((state & PHASE) == STOPPED)
			return handle_apply_stop(handle, is_here);
	} while (!handle_lock(handle, state));
	if (state & BACK)
		action = HANDLE_FILE;
	else if ((state & RESET) && is_here)
		action = HANDLE_MOVE;
	if (action != HANDLE_KEEP)
		state = handle_take_deadline(handle, state);
	handle_unlock(handle, state & ~(uint64_t)(LISTED | BACK));
	return action;
}

/* Reads the state and, at the same moment, the deadline of a timer that is pending. */
static uint64_t handle_look(struct handle *handle, tw_duration *deadline)
{
	uint64_t state;

	/* acquire: what is written after BUSY was set is seen with it; pairs with
	 * handle_set_deadline(). relaxed: after it. */
	do {
		state = handle_state(handle);
		*deadline = (state & (BACK | RESET)) == BACK
				    ? handle->timer.deadline
				    : atomic_load_explicit(&handle->deadline, memory_order_acquire);
	} while (atomic_load_explicit(&handle->state, memory_order_relaxed) != state);
	return state;
}

enum tw_status handle_deadline(struct handle_table *table, uint64_t id, uint16_t pending,
			       tw_duration *deadline)
{
	struct handle *handle = handle_find(table, id);
	uint64_t state = handle ? handle_look(handle, deadline) : 0;

	if (!state_is_live(state, id))
		return TW_NOT_FOUND;
	if ((state & PHASE) == RUNNING)
		return TW_RUNNING;
	/* It is elsewhere while it is being drained, or before its command is seen. */
	return timer_place(&handle->timer) == TIMER_AWAY || handle_is_here(handle, pending)
		       ? TW_OK
		       : TW_NOT_FOUND;
}

uint64_t handle_table_end(const struct handle_table *table)
{
	uint64_t end = 0;

	while (handle_find(table, end))
		end += CHUNK_HANDLES;
	return end;
}

/* Finds the next memory that may be in use. Returns false where there is none before the end, or
 * no look is left. */
static bool handle_scan_seek(struct handle_table *table, struct handle_scan *scan)
{
	while (scan->used == 0 && scan->number < scan->end && scan->looks > 0) {
		size_t number = scan->number % CHUNK_HANDLES;
		const struct chunk *chunk = chunk_of(handle_find(table, scan->number));
		struct chunk_used used = slab_find_used(&table->slab, chunk, number);
		size_t looks;

		scan->number += used.number - number;
		scan->used = used.mask;
		looks = LOOKS_A_CHUNK + (size_t)__builtin_popcountll(used.mask);
		scan->looks -= looks < scan->looks ? looks : scan->looks;
	}
	return scan->used != 0;
}

const struct handle *handle_next(struct handle_table *table, struct handle_scan *scan,
				 uint16_t pending)
{
	while (handle_scan_seek(table, scan)) {
		unsigned skipped = (unsigned)__builtin_ctzll(scan->used);
		/* A number is an id of generation 0. */
		struct handle *handle = handle_find(table, scan->number + skipped);
		uint64_t state;

		scan->used = scan->used >> skipped >> 1;
		scan->number += skipped + 1;
		state = handle_look(handle, &scan->deadline);
		if ((state & PHASE) == PENDING && handle_is_here(handle, pending))
			return handle;
	}
	return NULL;
}

tw_duration handle_period(const struct handle *handle)
{
	/* relaxed: whether it is periodic is constant until it is freed. */
	uint64_t state = atomic_load_explicit(&handle->state, memory_order_relaxed);

	return state & PERIODIC ? handle->schedule->period : 0;
}

bool handle_is_due(struct handle *handle)
{
	uint64_t state;

	do {
		state = handle_state(handle);
		if (!(state & RESET))
			return true;
	} while (!handle_lock(handle, state));
	handle_unlock(handle, handle_take_deadline(handle, state));
	return false;
}

enum handle_action handle_apply_set(struct handle *handle)
{
	if (timer_place(&handle->timer) == TIMER_STOPPED_IN_QUEUE)
		return HANDLE_FREE;
	if ((handle_state(handle) & PHASE) == STOPPED) {
		timer_set_place(&handle->timer, TIMER_AWAY);
		/* relaxed: it is listed, so the owner itself finds that in handle_apply_stop(). */
		atomic_fetch_or_explicit(&handle->state, LEFT, memory_order_relaxed);
		return HANDLE_KEEP;
	}
	if (handle_looks_reset(handle))
		(void)handle_is_due(handle);
	return HANDLE_FILE;
}

bool handle_claim(struct handle *handle)
{
	uint64_t state;

	do {
		state = handle_state(handle);
		if ((state & PHASE) != PENDING)
			return false;
	} while (!handle_exchange(handle, state, with_phase(state, STOPPED)));
	/* relaxed: no other thread changes it any more. */
	if (state & RESET)
		handle->timer.deadline =
			atomic_load_explicit(&handle->deadline, memory_order_relaxed);
	return true;
}

void handle_let_go(struct handle_table *table, struct slab_bin *bin, struct handle *handle)
{
	uint64_t before = handle_set_left(handle);

	if (!(before & LISTED))
		handle_free(table, bin, handle);
}

/* ---- Running ---- */

enum handle_start handle_begin(struct handle_table *table, struct slab_bin *bin,
			       struct handle *handle)
{
	for (;;) {
		uint64_t state = handle_state(handle);

		if ((state & PHASE) == STOPPED) {
			handle_let_go(table, bin, handle);
			return HANDLE_STOPPED;
		}
		if (state & RESET) {
			if (handle_exchange_back(table, handle, state, state))
				return HANDLE_RESET;
		} else if (handle_exchange(handle, state, with_phase(state, RUNNING))) {
			return HANDLE_BEGUN;
		}
	}
}

void handle_describe(const struct handle *handle, struct tw_task *task)
{
	/* relaxed: the generation, and whether it is periodic, are constant until it is freed. */
	uint64_t state = atomic_load_explicit(&handle->state, memory_order_relaxed);

	task->timer.id = handle_id(handle, generation_of(state));
	task->run = state & PERIODIC ? handle->schedule->run : handle->run;
}

/* The deadline after `deadline` that is due at all, for a run that began at `now`. */
static tw_duration schedule_next(const struct schedule *schedule, void *argument,
				 tw_duration deadline, tw_duration now)
{
	tw_duration next;
	uint64_t since;

	if (schedule->next)
		return schedule->next(argument, deadline);
	next = time_add(deadline, schedule->period);
	if (next > now || schedule->missed == TW_MISSED_BURST)
		return next;
	if (schedule->missed == TW_MISSED_DELAY)
		return time_add(now, schedule->period);
	/* Unsigned: the two may be as far apart as the clock is long. */
	since = (uint64_t)now - (uint64_t)deadline;
	return time_add(now, schedule->period - (tw_duration)(since % (uint64_t)schedule->period));
}

/* Ends the last run of a handle, which is locked: gives back its place, and lets go of it. */
static void handle_end_last(struct handle_table *table, struct slab_bin *bin, struct handle *handle,
			    uint64_t state, struct limit *places)
{
	limit_give(places);
	/* seq_cst: publishes the run and that the place is back; pairs with run_is_under_way() and
	 * handle_state(). Before the look for threads that wait for the run; pairs with
	 * handle_table_wait(). */
	atomic_store_explicit(&handle->state, with_phase(state, STOPPED) | LEFT,
			      memory_order_seq_cst);
	if (!(state & LISTED))
		handle_free(table, bin, handle);
}

bool handle_end(struct handle_table *table, struct slab_bin *bin, struct handle *handle,
		struct limit *places, tw_duration began)
{
	uint64_t state = handle_state(handle);
	tw_duration deadline = handle->timer.deadline;
	bool asked = (state & PERIODIC) && !(state & (LAST | RESET));
	bool ended = false;

	if (asked) {
		/* That is part of the run. No other thread looks at its deadline while it runs. */
		handle->timer.deadline =
			schedule_next(handle->schedule, handle->timer.value, deadline, began);
		ended = handle->timer.deadline <= deadline;
	}
	for (;;) {
		state = handle_state(handle);
		if ((state & LAST) || ended || !(asked || (state & RESET))) {
			if (handle_lock(handle, state))
				break;
		} else if (handle_exchange_back(table, handle, state, with_phase(state, PENDING))) {
			return true;
		}
	}
	handle_end_last(table, bin, handle, state, places);
	return false;
}
