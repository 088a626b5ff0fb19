/* SPDX-License-Identifier: MIT */
/*
 * Memory is what a million timers cost: each find, link and unlink touches lines that are in no
 * cache, and a miss that others wait for costs 130 to 290 ns, sixteen at a time 15 to 26 ns each.
 * So commands are taken in batches, and what a batch will touch is fetched in steps. A step
 * needs only what the step before has fetched: bucket, first timer of the chain, second timer, the
 * wheel's part of the timer, and its neighbours in the slot if it will leave it. Nothing is decided
 * on the way; a command applied in the meantime may make a fetch useless, not wrong.
 *
 * Invariants: a keyed timer is in the wheel and in the index, or in neither; a pending timer has
 * the present epoch or, if it is stale, the one before; no two of an epoch have the same key.
 *
 * A sweep goes down the buckets, because the index shrinks meanwhile: the timers of a bucket that
 * is merged go to one that is still to come. Where it grows, some are left for the next time round.
 */
#include "pending.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* What a step of a sweep or a walk looks at. */
enum { BUCKETS_A_STEP = 512, HANDLES_A_STEP = 2048 };
enum { SWEEP_PREFETCH = 16 }; /* buckets ahead */

bool pending_init(struct pending *pending, size_t slots, const struct ticks *ticks, bool ordered,
		  tw_duration patience)
{
	list_init(&pending->held);
	if (!timer_index_init(&pending->index))
		return false;
	pending->wheel = wheel_create(slots, ticks, ordered, patience);
	if (!pending->wheel)
		timer_index_destroy(&pending->index);
	return pending->wheel;
}

void pending_destroy(struct pending *pending)
{
	timer_index_destroy(&pending->index);
	wheel_destroy(pending->wheel);
}

struct keyed_timer *pending_pass_stale(const struct pending *pending, struct keyed_timer *timer)
{
	while (timer && pending_is_stale(pending, &timer->timer))
		timer = timer_index_find_next(&pending->index, timer);
	return timer;
}

/* Memory of a timer or a handle. */
static void prefetch_both_lines(const void *memory)
{
	prefetch_to_write(memory);
	prefetch_to_write((const char *)memory + CACHE_LINE);
}

/* Whether it has nothing but memory for a timer, which a set of an existing key does not need. */
static bool command_brings_memory(const struct command *command)
{
	return command->kind == COMMAND_SET && command->key_size <= COMMAND_KEY_INLINE;
}

/* Whether the command will take the timer out of its slot: a guess. */
static bool command_unlinks(const struct command *command, const struct keyed_timer *timer)
{
	if (command->kind != COMMAND_SET && command->kind != COMMAND_MOVE)
		return true;
	return command->time < timer->timer.deadline;
}

/*
 * Where most of a batch's sets were of new keys, those of the next will be, too: their memory, two
 * lines each, is fetched a batch ahead.
 */
static void pending_prefetch_next_memory(struct command_queue *queue, size_t count)
{
	size_t end = command_queue_peek(queue, count + PENDING_BATCH);

	for (size_t i = count; i < end; i++)
		if (command_brings_memory(command_queue_at(queue, i)))
			prefetch_both_lines(command_queue_at(queue, i)->timer);
}

/* Fetches what the commands touch of the timers that their keys probably have, or of the memory
 * that they bring. Bit i of *unlinked is set if command i takes its timer out of its slot. Returns
 * by how many more of the sets were of new keys than of others. */
static int pending_prefetch_timers(const struct command_cell *cells, size_t count,
				   struct keyed_timer *const *timers, uint64_t *unlinked)
{
	int new_keys = 0;

	_Static_assert(PENDING_BATCH <= 64, "a bit for each");
	*unlinked = 0;
	for (size_t i = 0; i < count; i++) {
		const struct command *command = &cells[i].command;
		const struct keyed_timer *timer = timers[i];
		bool brings_memory = command_brings_memory(command);
		bool unlinks;

		if (!timer) {
			new_keys += brings_memory;
			if (brings_memory)
				prefetch_both_lines(command->timer);
			continue;
		}
		new_keys -= brings_memory;
		unlinks = command_unlinks(command, timer);
		*unlinked |= (uint64_t)unlinks << i;
		if (unlinks || command->kind == COMMAND_SET)
			prefetch_to_write(&timer->timer.link);
		if (command->kind == COMMAND_REMOVE)
			timer_index_prefetch_neighbour(timer);
	}
	return new_keys;
}

void pending_prefetch(const struct pending *pending, struct command_queue *queue,
		      const struct command_cell *cells, size_t count, struct timer_guesses *guesses)
{
	uint32_t hashes[PENDING_BATCH] = {0};
	uint32_t all = 0;
	uint64_t unlinked;
	int new_keys;

	for (size_t i = 0; i < count; i++) {
		const struct command *command = &cells[i].command;

		hashes[i] = command->hash;
		all |= command->hash;
		if (command->timer && !command_brings_memory(command))
			prefetch_both_lines(command->timer);
	}
	/* They are handles, without keys; or keys of that hash, which are found without a guess. */
	if (all == 0) {
		memset(guesses->timers, 0, count * sizeof(guesses->timers[0]));
		return;
	}
	timer_index_prefetch(&pending->index, hashes, count, guesses);
	new_keys = pending_prefetch_timers(cells, count, guesses->timers, &unlinked);
	for (; unlinked != 0; unlinked &= unlinked - 1)
		wheel_prefetch(&guesses->timers[__builtin_ctzll(unlinked)]->timer);
	if (new_keys > 0)
		pending_prefetch_next_memory(queue, count);
	if (pending->has_stale)
		memset(guesses->timers, 0, count * sizeof(guesses->timers[0]));
}

void pending_begin_epoch(struct pending *pending)
{
	pending->stale_count = pending->count;
	pending->has_stale = true;
	pending->epoch++;
	pending->sweep = (struct pending_sweep){0};
}

void pending_add(struct pending *pending, struct keyed_timer *timer)
{
	timer->timer.epoch = pending->epoch;
	timer_index_add(&pending->index, timer);
	pending->count++;
	wheel_add(pending->wheel, &timer->timer);
}

void pending_remove(struct pending *pending, struct keyed_timer *timer)
{
	timer_index_remove(&pending->index, timer);
	pending->count--;
	wheel_remove(&timer->timer);
}

/* A schedule's next run does not wait, even if it is late: it must not overtake what is due before
 * it. */
static bool pending_must_hold(const struct pending *pending, const struct timer *timer)
{
	return pending->holds && (timer->class != TIMER_PERIODIC || timer->is_for_now) &&
	       wheel_is_due(pending->wheel, timer);
}

INLINED void pending_add_without_key(struct pending *pending, struct timer *timer)
{
	timer->epoch = pending->epoch;
	pending->count += !timer_is_alarm(timer);
	if (pending_must_hold(pending, timer))
		list_append(&pending->held, &timer->link);
	else
		wheel_add(pending->wheel, timer);
}

void pending_release_held(struct pending *pending)
{
	struct list *link;

	while ((link = list_take_first(&pending->held)))
		wheel_add(pending->wheel, timer_of_link(link));
}

void pending_remove_without_key(struct pending *pending, struct timer *timer)
{
	pending->count -= !timer_is_alarm(timer);
	wheel_remove(timer);
}

size_t pending_expire(struct pending *pending, struct timer **expired, size_t most)
{
	size_t count = wheel_expire(pending->wheel, expired, most);
	struct keyed_timer *keyed[PENDING_BATCH];
	struct timer_guesses guesses;
	uint32_t hashes[PENDING_BATCH] = {0};
	size_t keys = 0;

	for (size_t i = 0; i < count; i++) {
		pending->count -= !timer_is_alarm(expired[i]);
		if (!timer_has_key(expired[i]))
			continue;
		keyed[keys] = timer_keyed(expired[i]);
		hashes[keys] = keyed[keys]->hh.hashv;
		keys++;
	}
	timer_index_prefetch(&pending->index, hashes, keys, &guesses);
	for (size_t i = 0; i < keys; i++)
		timer_index_remove(&pending->index, keyed[i]);
	return count;
}

struct timer *pending_expire_next(struct pending *pending)
{
	struct timer *timer = wheel_expire_next(pending->wheel);

	if (!timer)
		return NULL;
	pending->count -= !timer_is_alarm(timer);
	if (timer_has_key(timer))
		timer_index_remove(&pending->index, timer_keyed(timer));
	return timer;
}

/* Notes the bucket's stale timers. Returns how many; `most` where there may be more. */
static size_t pending_sweep_bucket(const struct pending *pending, uint32_t bucket,
				   struct timer **stale, size_t most)
{
	struct keyed_timer *timer = timer_index_first(&pending->index, bucket);
	size_t count = 0;

	for (; timer && count < most; timer = timer_index_next_in_bucket(timer))
		if (pending_is_stale(pending, &timer->timer))
			stale[count++] = &timer->timer;
	return count;
}

/* Fetches the first timer of a bucket that comes soon. */
static void pending_prefetch_bucket(const struct pending *pending, uint32_t bucket)
{
	const struct keyed_timer *timer;

	if (bucket < SWEEP_PREFETCH)
		return;
	timer = timer_index_first(&pending->index, bucket - SWEEP_PREFETCH);
	if (timer)
		prefetch_both_lines(timer);
}

/* Notes stale timers with keys, in the next buckets. */
static size_t pending_sweep_buckets(struct pending *pending, struct timer **stale, size_t most)
{
	struct pending_sweep *sweep = &pending->sweep;
	size_t count = 0;

	if (sweep->buckets > pending->index.buckets)
		sweep->buckets = pending->index.buckets;
	for (int looks = 0; looks < BUCKETS_A_STEP && sweep->buckets > 0; looks++) {
		pending_prefetch_bucket(pending, sweep->buckets - 1);
		count += pending_sweep_bucket(pending, sweep->buckets - 1, stale + count,
					      most - count);
		if (count == most)
			break;
		sweep->buckets--;
	}
	return count;
}

/* Notes stale handles, the next in number. */
static size_t pending_sweep_handles(struct pending *pending, struct handle_table *handles,
				    struct timer **stale, size_t most)
{
	struct handle_scan *scan = &pending->sweep.handles;
	struct alarm *alarm;
	size_t count = 0;

	scan->looks = HANDLES_A_STEP;
	scan->used = 0;
	while (count < most && (alarm = handle_next(handles, scan)))
		if (timer_place(&alarm->timer) == TIMER_IN_WHEEL &&
		    pending_is_stale(pending, &alarm->timer))
			stale[count++] = &alarm->timer;
	return count;
}

static void pending_begin_sweep(struct pending *pending, struct handle_table *handles)
{
	pending->sweep = (struct pending_sweep){.buckets = pending->index.buckets};
	pending->sweep.handles.end = handle_table_end(handles);
}

/* Takes stale timers out that were noted. */
static void pending_take_out(struct pending *pending, struct timer **stale, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		wheel_prefetch(stale[i]);
		if (timer_has_key(stale[i]))
			timer_index_prefetch_neighbour(timer_keyed(stale[i]));
	}
	for (size_t i = 0; i < count; i++) {
		if (timer_has_key(stale[i]))
			pending_remove(pending, timer_keyed(stale[i]));
		else
			pending_remove_without_key(pending, stale[i]);
	}
	pending->stale_count -= count;
}

size_t pending_sweep(struct pending *pending, struct handle_table *handles, struct timer **stale,
		     size_t most)
{
	struct pending_sweep *sweep = &pending->sweep;
	size_t count;

	if (sweep->buckets == 0 && sweep->handles.number >= sweep->handles.end)
		pending_begin_sweep(pending, handles);
	count = sweep->buckets > 0 ? pending_sweep_buckets(pending, stale, most)
				   : pending_sweep_handles(pending, handles, stale, most);
	pending_take_out(pending, stale, count);
	return count;
}

/* ---- Walks ---- */

/*
 * The order of a walk is one that no change of the timers changes: a place in it is a number, and
 * is kept by the caller, so the owner remembers nothing of a walk between two steps.
 *
 * Timers with keys come first, by the hash of their key with its bits reversed. The timers of a
 * bucket have the low bits of the hash in common, all or all but the highest of those that
 * select a bucket: reversed, that is an interval, however often the index grows or shrinks. A split
 * cuts the interval in two, a merge joins two. So a step begins in the bucket that has the
 * position, leaves out what is before it, and ends where the bucket's interval ends.
 *
 * Handles come then, by the number of their memory, which is that of their id. A handle stays where
 * it is. Free memory is skipped by the slab's sets of what is free, so a walk costs what is in use,
 * not what once was; handles that are not pending are passed over one by one.
 * The walk ends where the table ended when the walk began: what lies behind came later. So it ends
 * however many come.
 *
 * Invariants: a timer has one place in the order as long as it lives, whatever its deadline; a step
 * meets all that are pending from its first place to its last; positions rise.
 */

enum { TIMERS_A_STEP = 128, KEY_BYTES = 16384 };

/* Where the handles begin. */
static const uint64_t first_handle = (uint64_t)1 << 32;

void walk_destroy(struct walk *walk)
{
	free(walk->timers);
	free(walk->keys);
}

/* Makes room for `count` timers and `bytes` of keys, where none is copied. Returns false if there
 * is no memory; then `room` is 0. */
static bool walk_reserve(struct walk *walk, size_t count, size_t bytes)
{
	walk_destroy(walk);
	walk->room = count > TIMERS_A_STEP ? count : TIMERS_A_STEP;
	walk->bytes = bytes > KEY_BYTES ? bytes : KEY_BYTES;
	walk->timers = calloc(walk->room, sizeof(*walk->timers));
	walk->keys = malloc(walk->bytes);
	if (!walk->timers || !walk->keys)
		walk->room = 0;
	return walk->room > 0;
}

static uint32_t reversed(uint32_t bits)
{
	bits = (bits & 0x55555555) << 1 | (bits >> 1 & 0x55555555);
	bits = (bits & 0x33333333) << 2 | (bits >> 2 & 0x33333333);
	bits = (bits & 0x0f0f0f0f) << 4 | (bits >> 4 & 0x0f0f0f0f);
	return __builtin_bswap32(bits);
}

/* The timers of a bucket from the position on. */
struct stretch {
	struct keyed_timer *first; /* or NULL */
	uint32_t position;
	uint64_t end;
};

/* Returns the first from `timer` on in its chain that is not before the position, or NULL. */
static struct keyed_timer *stretch_from(const struct stretch *stretch, struct keyed_timer *timer)
{
	while (timer && reversed(timer->hh.hashv) < stretch->position)
		timer = timer_index_next_in_bucket(timer);
	return timer;
}

static struct stretch stretch_at(const struct timer_index *index, uint32_t position)
{
	struct stretch stretch = {.position = position};
	unsigned bits;

	stretch.first =
		stretch_from(&stretch, timer_index_bucket(index, reversed(position), &bits));
	stretch.end = (position | (uint64_t)UINT32_MAX >> bits) + 1;
	return stretch;
}

static struct keyed_timer *stretch_next(const struct stretch *stretch,
					const struct keyed_timer *timer)
{
	return stretch_from(stretch, timer_index_next_in_bucket(timer));
}

static struct tw_pending_timer keyed_view(const struct keyed_timer *timer)
{
	return (struct tw_pending_timer){.key = timer->hh.key,
					 .key_size = timer->hh.keylen,
					 .value = timer->timer.value,
					 .deadline = timer->timer.deadline};
}

static struct tw_pending_timer handle_view(const struct alarm *alarm, tw_duration deadline)
{
	struct tw_task task = {0};

	handle_describe(alarm, &task);
	return (struct tw_pending_timer){
		.value = alarm->timer.value,
		.deadline = deadline,
		.timer = task.timer,
		.run = task.run,
		.period = alarm->timer.class == TIMER_PERIODIC ? alarm->schedule->period : 0};
}

/* Returns whether a handle that the owner has is pending: not stopped, nor stale, nor on its way to
 * the wheel. Then *deadline is set. */
static bool handle_is_pending(struct alarm *alarm, const struct pending *pending,
			      tw_duration *deadline)
{
	uint64_t generation;

	return timer_place(&alarm->timer) == TIMER_IN_WHEEL &&
	       !pending_is_stale(pending, &alarm->timer) &&
	       alarm_state(alarm, &generation, deadline) == ALARM_IS_FILED;
}

/* Returns whether there is room for the stretch; where nothing is copied yet, it is made. */
static bool walk_has_room(struct walk *walk, const struct stretch *stretch)
{
	size_t count = walk->count;
	size_t bytes = walk->used;

	for (const struct keyed_timer *timer = stretch->first; timer;
	     timer = stretch_next(stretch, timer)) {
		count++;
		bytes += timer->hh.keylen;
	}
	return (count <= walk->room && bytes <= walk->bytes) ||
	       (walk->count == 0 && walk_reserve(walk, count, bytes));
}

static void walk_copy(struct walk *walk, const struct stretch *stretch,
		      const struct pending *pending)
{
	for (const struct keyed_timer *timer = stretch->first; timer;
	     timer = stretch_next(stretch, timer)) {
		struct tw_pending_timer *copy = &walk->timers[walk->count];

		if (pending_is_stale(pending, &timer->timer))
			continue;
		walk->count++;
		*copy = keyed_view(timer);
		memcpy(walk->keys + walk->used, copy->key, copy->key_size);
		copy->key = walk->keys + walk->used;
		walk->used += copy->key_size;
	}
}

/* Copies timers with keys. Returns false if the step ends here. */
static bool walk_keys(struct walk *walk, const struct pending *pending)
{
	for (int looks = 0; walk->position < first_handle; looks++) {
		struct stretch stretch;

		if (looks == BUCKETS_A_STEP)
			return false;
		stretch = stretch_at(&pending->index, (uint32_t)walk->position);
		if (!walk_has_room(walk, &stretch))
			return false;
		walk_copy(walk, &stretch, pending);
		walk->position = stretch.end;
	}
	return true;
}

static void walk_handles(struct walk *walk, const struct pending *pending,
			 struct handle_table *handles)
{
	struct handle_scan scan = {.number = walk->position - first_handle,
				   .end = walk->handles,
				   .looks = HANDLES_A_STEP};
	struct alarm *alarm;
	tw_duration deadline;

	while (walk->count < walk->room && (alarm = handle_next(handles, &scan)))
		if (handle_is_pending(alarm, pending, &deadline))
			walk->timers[walk->count++] = handle_view(alarm, deadline);
	walk->position = scan.number < scan.end ? first_handle + scan.number : WALK_END;
}

bool walk_step(struct walk *walk, const struct pending *pending, struct handle_table *handles)
{
	walk->count = 0;
	walk->used = 0;
	if (walk->position == 0)
		walk->handles = handle_table_end(handles);
	if ((walk->room > 0 || walk_reserve(walk, 0, 0)) && walk_keys(walk, pending))
		walk_handles(walk, pending, handles);
	return walk->room > 0;
}
