/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "inside.h"

#include <assert.h>

#include "runtime/ask.h"

size_t wheel_places_taken(struct tw_wheel *wheel)
{
	return atomic_load(&wheel->owner.out.places.taken);
}

bool wheel_owner_sleeps(struct tw_wheel *wheel)
{
	return atomic_load(&wheel->owner.event.state) == EVENT_COUNT_SLEEPING;
}

tw_duration wheel_patience(const struct tw_wheel *wheel)
{
	return wheel->owner.patience;
}

void wheel_set_clock(struct tw_wheel *wheel, tw_duration now)
{
	clock_set_manual(&wheel->owner.clock, now);
}

void wheel_set_behind_the_stop(struct tw_wheel *wheel, const char *key, void *value,
			       tw_duration deadline)
{
	struct owner *owner = &wheel->owner;
	size_t size = strlen(key);
	uint32_t hash = key_hash(&wheel->seed, key, size);
	struct command command = {.kind = COMMAND_SET,
				  .hash = hash,
				  .key_size = (uint16_t)size,
				  .time = deadline,
				  .value = value};
	uint64_t position;
	struct command_cell *cell;

	assert_true(limit_take(&owner->out.places));
	if (size > COMMAND_KEY_INLINE) {
		command.timer = timer_new(&owner->out.store, key, size, hash);
	} else {
		command.timer = timer_take_memory(&owner->out.store);
		memcpy(command.key, key, size);
	}
	assert_non_null(command.timer);
	cell = command_queue_claim(&owner->queue, &position);
	cell->command = command;
	command_queue_publish(cell, position);
}

struct half_command half_command_begin(struct tw_wheel *wheel)
{
	struct half_command half = {.queue = &wheel->owner.queue};

	half.cell = command_queue_claim(half.queue, &half.position);
	assert(half.cell);
	half.cell->command = (struct command){.kind = COMMAND_REMOVE, .key_size = 1, .key = "x"};
	return half;
}

void half_command_end(const struct half_command *half)
{
	command_queue_publish(half->cell, half->position);
}
