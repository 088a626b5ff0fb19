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

#include <string.h>

#include "base/compiler.h"

enum { SWEEP_PREFETCH = 16 }; /* buckets ahead */

bool pending_init(struct pending *pending, enum tw_layout layout, size_t slots,
		  const struct ticks *ticks, bool ordered, tw_duration patience)
{
	list_init(&pending->held);
	if (!timer_index_init(&pending->index))
		return false;
	pending->wheel = wheel_create(layout, slots, ticks, ordered, patience);
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

void pending_add_without_key(struct pending *pending, struct timer *timer)
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

/* Takes those of the timers that have keys out of the index. */
static void pending_unindex(struct pending *pending, struct timer **timers, size_t count)
{
	struct keyed_timer *keyed[PENDING_BATCH];
	struct timer_guesses guesses;
	uint32_t hashes[PENDING_BATCH] = {0};
	size_t keys = 0;

	for (size_t i = 0; i < count; i++) {
		if (!timer_has_key(timers[i]))
			continue;
		keyed[keys] = timer_keyed(timers[i]);
		hashes[keys] = keyed[keys]->hh.hashv;
		keys++;
	}
	timer_index_prefetch(&pending->index, hashes, keys, &guesses);
	for (size_t i = 0; i < keys; i++)
		timer_index_remove(&pending->index, keyed[i]);
}

size_t pending_expire(struct pending *pending, struct timer **expired, size_t most)
{
	size_t count = wheel_expire(pending->wheel, expired, most);

	for (size_t i = 0; i < count; i++)
		pending->count -= !timer_is_alarm(expired[i]);
	pending_unindex(pending, expired, count);
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
