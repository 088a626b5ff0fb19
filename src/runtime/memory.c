/* SPDX-License-Identifier: MIT */
/*
 * Once a second of the wheel's clock, where there is a turn or it may be worth waking for one, the
 * owner looks at what memory is free.
 *
 * The wheel is quiet while no more memory is taken and given back in a second than is free: giving
 * it to the system costs little compared with the timers. After a while of that all that is free
 * goes back. A load that comes and goes faster is never quiet, and keeps its pages.
 *
 * A pass goes through slabs and index, and does a step in each turn.
 */
#include "memory.h"

enum {
	SLABS = TIMER_SIZE_CLASSES + 1,
	PART_INDEX = SLABS, /* a pass's part after the slabs */
	PARTS
};

static const tw_duration look_period = TW_SECOND;
static const tw_duration quiet_period = 6 * TW_SECOND;
/* Less is not worth a pass, or a wake. */
static const uint64_t least_surplus = (uint64_t)1 << 20;
/* Blocks that are out, and no timer pending: more than stripes and bins ever have. */
static const uint64_t least_expected = 4096;

/* The handles' comes last. */
static struct slab *owner_slab(struct owner *owner, unsigned number)
{
	return number < TIMER_SIZE_CLASSES ? &owner->out.store.slabs[number]
					   : &owner->out.handles.slab;
}

/* Bytes. */
struct memory_sums {
	uint64_t held;
	uint64_t in_use;  /* by timers */
	uint64_t surplus; /* what a pass may find: the owner's to ask, as is the next */
	uint64_t traffic;
};

/* Any thread. */
static struct memory_sums owner_sum_memory(struct owner *owner)
{
	struct memory_sums sums = {0};

	for (unsigned i = 0; i < SLABS; i++) {
		const struct slab *slab = owner_slab(owner, i);
		struct slab_use use = slab_use(slab);

		sums.held += use.held;
		sums.in_use += use.in_use;
	}
	sums.held += counter_read(&owner->memory.index) + command_queue_memory(&owner->queue);
	return sums;
}

static struct timer_index *owner_index(struct owner *owner)
{
	return owner->is_stopped ? NULL : &owner->pending.index;
}

static void owner_publish_index(struct owner *owner)
{
	const struct timer_index *index = owner_index(owner);

	counter_set(&owner->memory.index, index ? timer_index_memory(index) : 0);
}

/* All of them. */
static struct memory_sums owner_sum_surplus(struct owner *owner)
{
	struct timer_index *index = owner_index(owner);
	struct memory_sums sums;

	owner_publish_index(owner);
	sums = owner_sum_memory(owner);
	for (unsigned i = 0; i < SLABS; i++) {
		sums.surplus += slab_surplus(owner_slab(owner, i));
		sums.traffic += slab_traffic(owner_slab(owner, i));
	}
	sums.surplus += index ? timer_index_surplus(index) : 0;
	return sums;
}

void owner_init_memory(struct owner *owner)
{
	owner->memory.part = PARTS;
}

/* ---- A pass ---- */

static void owner_begin_pass(struct owner *owner)
{
	struct owner_memory *memory = &owner->memory;

	job_flush(&owner->out.target, &owner->out.bin);
	memory->part = 0;
}

static void owner_end_pass(struct owner *owner)
{
	struct owner_memory *memory = &owner->memory;
	struct memory_sums sums = owner_sum_surplus(owner);

	/* What the pass has moved is no load. The next look sees a second of it. */
	memory->traffic = sums.traffic;
	memory->next_look = time_add(clock_now(&owner->clock), look_period);
}

/* Does a step in a part of the pass. Returns whether it has more. */
static bool owner_trim_part(struct owner *owner, unsigned part)
{
	struct timer_index *index = owner_index(owner);

	if (part == PART_INDEX)
		return index && timer_index_trim(index);
	return slab_trim(owner_slab(owner, part));
}

static void owner_trim_some(struct owner *owner)
{
	struct owner_memory *memory = &owner->memory;

	if (owner_trim_part(owner, memory->part))
		return;
	if (++memory->part == PARTS)
		owner_end_pass(owner);
}

bool owner_is_trimming(const struct owner *owner)
{
	return owner->memory.part < PARTS;
}

/* ---- When ---- */

static void owner_look_at_memory(struct owner *owner, tw_duration now)
{
	struct owner_memory *memory = &owner->memory;
	struct memory_sums sums = owner_sum_surplus(owner);

	memory->next_look = time_add(now, look_period);
	if (sums.traffic - memory->traffic > sums.surplus)
		memory->quiet_since = now;
	memory->traffic = sums.traffic;
	if (sums.surplus >= least_surplus && now - memory->quiet_since >= quiet_period)
		owner_begin_pass(owner);
}

void owner_tend_memory(struct owner *owner)
{
	struct owner_memory *memory = &owner->memory;
	tw_duration now;

	if (memory->part < PARTS) {
		owner_trim_some(owner);
		return;
	}
	now = clock_now(&owner->clock);
	if (now >= memory->next_look)
		owner_look_at_memory(owner, now);
}

/* Whether timers have left the wheel whose memory is still to come back: their tasks last. */
static bool owner_expects_memory(struct owner *owner)
{
	uint64_t pending = counter_read(&owner->pending_count);
	uint64_t taken = 0;

	for (unsigned i = 0; i < SLABS; i++) {
		const struct slab *slab = owner_slab(owner, i);

		taken += slab_use(slab).in_use / slab->block_size;
	}
	return taken >= pending + least_expected;
}

tw_duration owner_memory_time(struct owner *owner)
{
	const struct owner_memory *memory = &owner->memory;
	struct memory_sums sums = owner_sum_surplus(owner);
	tw_duration quiet_end = time_add(memory->quiet_since, quiet_period);

	if (owner_expects_memory(owner))
		return memory->next_look;
	if (sums.surplus < least_surplus)
		return TW_FOREVER;
	if (sums.traffic != memory->traffic || quiet_end < memory->next_look)
		return memory->next_look;
	return quiet_end;
}

void owner_count_memory(struct owner *owner, struct tw_stats *stats)
{
	struct memory_sums sums = owner_sum_memory(owner);

	stats->memory = sums.held;
	stats->memory_in_use = sums.in_use;
}
