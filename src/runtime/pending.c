/* SPDX-License-Identifier: MIT */
/*
 * Memory is what a million timers cost: each find, link and unlink touches lines that are in no
 * cache, and a miss that others wait for costs 130 to 290 ns, sixteen at a time 15 to 26 ns each.
 * So commands are taken in batches, and what a batch will touch is fetched in steps. A step
 * needs only what the step before has fetched: bucket, first timer of the chain, second timer, the
 * wheel's part of the timer, and its neighbours in the slot if it will leave it. Nothing is decided
 * on the way; a command applied in the meantime may make a fetch useless, not wrong.
 *
 * Invariants: a keyed timer is in the wheel and in the index, or in neither; one without a key is
 * in the wheel and has the set's number.
 */
#include "pending.h"

#include <string.h>

#include "base/prefetch.h"

bool pending_init(struct pending *pending, const struct pending_plan *plan)
{
	pending->count = 0;
	if (!timer_index_init(&pending->index))
		return false;
	pending->wheel =
		wheel_create(plan->layout, plan->slots, plan->ticks, plan->ordered, plan->patience);
	while (!pending->wheel && !timer_index_discard(&pending->index))
		continue;
	return pending->wheel;
}

void pending_destroy(struct pending *pending)
{
	while (!pending_discard(pending))
		continue;
}

bool pending_discard(struct pending *pending)
{
	return timer_index_discard(&pending->index) && wheel_discard(pending->wheel);
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
}

void pending_add(struct pending *pending, struct keyed_timer *timer)
{
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

void pending_add_without_key(struct pending *pending, struct timer *timer)
{
	timer->pending_set = pending->number;
	pending->count += !timer_is_alarm(timer);
	wheel_add(pending->wheel, timer);
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
