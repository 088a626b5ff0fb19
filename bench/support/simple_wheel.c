/* SPDX-License-Identifier: MIT */
/*
 * This follows core/collection/timingwheel.go of go-zero step by step:
 *
 *   go-zero                           here
 *   ticker, set/move/remove channels  one bounded channel under a lock, a timed wait for the tick
 *   select                            next_event(): a tick and a command that are both ready take
 *                                     turns
 *   SafeMap of positionEntry          uthash under a lock, struct position
 *   list.List of timingEntry          doubly linked list, struct entry
 *   circle, diff, removed             the same, with go-zero's rules (and its fault: a move across
 *                                     the hand may fire a lap early or late)
 *   a goroutine for a tick's tasks    one runner thread that is handed a tick's list
 *   ticks dropped by a slow owner     dropped as well
 *
 * The lists and entries (simple_timers.h) belong to the owner; the channel, the map and the runner
 * each have their lock.
 */
#include "simple_wheel.h"

#include "process.h"
#include "simple_runner.h"
#include "stopwatch.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { CHANNEL_CAPACITY = 1024 };

enum command_kind { COMMAND_SET, COMMAND_MOVE, COMMAND_REMOVE };

struct command {
	enum command_kind kind;
	struct random_key key;
	int64_t delay;
};

struct channel {
	pthread_mutex_t lock;
	pthread_cond_t not_empty;
	pthread_cond_t moved_on; /* commands were taken */
	struct command commands[CHANNEL_CAPACITY];
	bool owner_waits;
	int senders_wait;
	uint64_t sent;
	uint64_t taken;
	uint64_t applied;
};

struct simple_wheel {
	/* These are constant. */
	int64_t interval;
	size_t slot_count;
	pthread_t thread;
	struct channel channel;
	struct runner runner;
	/* These are under the channel's lock. */
	bool ticking;
	bool stopping;
	bool tick_was_last;
	int64_t next_tick;
	/* It has its own lock. */
	struct map map;
	/* Only the owner uses these. */
	struct slot *slots;
	size_t hand;
};

/* --- Commands --------------------------------------------------------------------------------- */

/* Returns the slot of a delay, and in *circle the rounds of the hand before it. */
static size_t slot_after(const struct simple_wheel *wheel, int64_t delay, int64_t *circle)
{
	int64_t steps = delay / wheel->interval;

	*circle = (steps - 1) / (int64_t)wheel->slot_count;
	return (wheel->hand + (size_t)steps) % wheel->slot_count;
}

static void run_now(struct simple_wheel *wheel, struct position *position)
{
	struct slot tasks = {NULL, NULL};

	slot_append(&tasks, entry_create(&position->key, 0));
	runner_give(&wheel->runner, &tasks);
}

static void move_timer(struct simple_wheel *wheel, struct position *position, int64_t delay)
{
	struct entry *entry = position->entry;
	int64_t circle;
	size_t slot;

	if (delay < wheel->interval) {
		run_now(wheel, position);
		return;
	}
	slot = slot_after(wheel, delay, &circle);
	if (slot >= position->slot) {
		entry->circle = circle;
		entry->diff = (int64_t)(slot - position->slot);
	} else if (circle > 0) {
		entry->circle = circle - 1;
		entry->diff = (int64_t)(wheel->slot_count + slot - position->slot);
	} else {
		entry->removed = true;
		position->entry = entry_create(&entry->key, 0);
		position->slot = slot;
		slot_append(&wheel->slots[slot], position->entry);
	}
}

static void set_timer(struct simple_wheel *wheel, const struct command *command)
{
	int64_t delay = command->delay < wheel->interval ? wheel->interval : command->delay;
	struct position *position = map_find(&wheel->map, &command->key);
	struct entry *entry;
	int64_t circle;
	size_t slot;

	if (position) {
		move_timer(wheel, position, delay);
		return;
	}
	slot = slot_after(wheel, delay, &circle);
	entry = entry_create(&command->key, circle);
	slot_append(&wheel->slots[slot], entry);
	map_add(&wheel->map, entry, slot);
}

static void apply(struct simple_wheel *wheel, const struct command *command)
{
	struct position *position;

	if (command->kind == COMMAND_SET) {
		set_timer(wheel, command);
		return;
	}
	position = map_find(&wheel->map, &command->key);
	if (!position)
		return;
	if (command->kind == COMMAND_MOVE) {
		move_timer(wheel, position, command->delay);
	} else {
		position->entry->removed = true;
		map_delete(&wheel->map, position);
	}
}

/* --- Ticks ------------------------------------------------------------------------------------ */

/* Takes an entry of the hand's slot that is neither removed nor waiting for its round. */
static void take_entry(struct simple_wheel *wheel, struct entry *entry, struct slot *tasks)
{
	struct position *position = map_find(&wheel->map, &entry->key);

	slot_remove(&wheel->slots[wheel->hand], entry);
	if (entry->diff > 0) {
		size_t slot = (wheel->hand + (size_t)entry->diff) % wheel->slot_count;

		entry->diff = 0;
		position->slot = slot;
		slot_append(&wheel->slots[slot], entry);
		return;
	}
	map_delete(&wheel->map, position);
	slot_append(tasks, entry);
}

static void tick(struct simple_wheel *wheel)
{
	struct slot tasks = {NULL, NULL};
	struct entry *entry, *next;

	wheel->hand = (wheel->hand + 1) % wheel->slot_count;
	for (entry = wheel->slots[wheel->hand].first; entry; entry = next) {
		next = entry->next;
		if (entry->removed) {
			slot_remove(&wheel->slots[wheel->hand], entry);
			free(entry);
		} else if (entry->circle > 0) {
			entry->circle--;
		} else {
			take_entry(wheel, entry, &tasks);
		}
	}
	if (tasks.first)
		runner_give(&wheel->runner, &tasks);
}

/* --- The channel and the owner ---------------------------------------------------------------- */

static void send_command(struct simple_wheel *wheel, const struct command *command)
{
	struct channel *channel = &wheel->channel;

	pthread_mutex_lock(&channel->lock);
	channel->senders_wait++;
	while (channel->sent - channel->taken == CHANNEL_CAPACITY)
		pthread_cond_wait(&channel->moved_on, &channel->lock);
	channel->commands[channel->sent++ % CHANNEL_CAPACITY] = *command;
	if (channel->owner_waits)
		pthread_cond_signal(&channel->not_empty);
	channel->senders_wait--;
	pthread_mutex_unlock(&channel->lock);
}

static void wait_for_event(struct simple_wheel *wheel)
{
	struct channel *channel = &wheel->channel;
	struct timespec until = {
		.tv_sec = (time_t)(wheel->next_tick / NANOSECONDS_PER_SECOND),
		.tv_nsec = (long)(wheel->next_tick % NANOSECONDS_PER_SECOND),
	};

	channel->owner_waits = true;
	if (wheel->ticking)
		pthread_cond_timedwait(&channel->not_empty, &channel->lock, &until);
	else
		pthread_cond_wait(&channel->not_empty, &channel->lock);
	channel->owner_waits = false;
}

enum event { EVENT_TICK, EVENT_COMMAND, EVENT_STOP };

/* A tick during the processing of the last one waits; more are dropped. */
static void schedule_tick(struct simple_wheel *wheel, int64_t now)
{
	wheel->next_tick += wheel->interval;
	if (wheel->next_tick < now)
		wheel->next_tick = now;
}

static enum event next_event(struct simple_wheel *wheel, struct command *command)
{
	struct channel *channel = &wheel->channel;

	for (;;) {
		int64_t now = stopwatch_now();
		bool sent = channel->taken != channel->sent;

		if (wheel->ticking && now >= wheel->next_tick && !(sent && wheel->tick_was_last)) {
			schedule_tick(wheel, now);
			wheel->tick_was_last = true;
			return EVENT_TICK;
		}
		if (sent) {
			*command = channel->commands[channel->taken++ % CHANNEL_CAPACITY];
			wheel->tick_was_last = false;
			return EVENT_COMMAND;
		}
		if (wheel->stopping)
			return EVENT_STOP;
		wait_for_event(wheel);
	}
}

/* Wakes senders that found a buffer full when half of it is free: once for many commands. */
static void wake_senders(struct channel *channel)
{
	if (channel->senders_wait && channel->sent - channel->taken <= CHANNEL_CAPACITY / 2)
		pthread_cond_broadcast(&channel->moved_on);
}

static void *owner_run(void *argument)
{
	struct simple_wheel *wheel = argument;
	struct channel *channel = &wheel->channel;
	struct command command;

	for (;;) {
		enum event event;

		pthread_mutex_lock(&channel->lock);
		channel->applied = channel->taken;
		event = next_event(wheel, &command);
		wake_senders(channel);
		pthread_mutex_unlock(&channel->lock);
		if (event == EVENT_STOP)
			return NULL;
		if (event == EVENT_COMMAND)
			apply(wheel, &command);
		else
			tick(wheel);
	}
}

/* --- Calls ------------------------------------------------------------------------------------ */

static void monotonic_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

struct simple_wheel *simple_wheel_create(int64_t interval, size_t slots)
{
	struct simple_wheel *wheel = process_allocate(sizeof(*wheel));

	wheel->interval = interval;
	wheel->slot_count = slots;
	wheel->slots = process_allocate(slots * sizeof(*wheel->slots));
	pthread_mutex_init(&wheel->channel.lock, NULL);
	monotonic_condition(&wheel->channel.not_empty);
	pthread_cond_init(&wheel->channel.moved_on, NULL);
	map_prepare(&wheel->map);
	runner_start(&wheel->runner);
	if (pthread_create(&wheel->thread, NULL, owner_run, wheel) != 0)
		process_fail("the baseline's owner could not be started");
	return wheel;
}

int64_t simple_wheel_start(struct simple_wheel *wheel)
{
	int64_t start;

	pthread_mutex_lock(&wheel->channel.lock);
	start = stopwatch_now();
	wheel->ticking = true;
	wheel->next_tick = start + wheel->interval;
	pthread_cond_signal(&wheel->channel.not_empty);
	pthread_mutex_unlock(&wheel->channel.lock);
	return start;
}

static void stop_owner(struct simple_wheel *wheel)
{
	pthread_mutex_lock(&wheel->channel.lock);
	wheel->stopping = true;
	pthread_cond_signal(&wheel->channel.not_empty);
	pthread_mutex_unlock(&wheel->channel.lock);
	pthread_join(wheel->thread, NULL);
}

void simple_wheel_destroy(struct simple_wheel *wheel)
{
	stop_owner(wheel);
	runner_stop(&wheel->runner);
	map_free(&wheel->map);
	for (size_t i = 0; i < wheel->slot_count; i++)
		slot_free(&wheel->slots[i]);
	free(wheel->slots);
	free(wheel);
}

void simple_wheel_set(struct simple_wheel *wheel, const struct random_key *key, int64_t delay)
{
	send_command(wheel, &(struct command){COMMAND_SET, *key, delay});
}

void simple_wheel_move(struct simple_wheel *wheel, const struct random_key *key, int64_t delay)
{
	send_command(wheel, &(struct command){COMMAND_MOVE, *key, delay});
}

void simple_wheel_remove(struct simple_wheel *wheel, const struct random_key *key)
{
	send_command(wheel, &(struct command){COMMAND_REMOVE, *key, 0});
}

void simple_wheel_flush(struct simple_wheel *wheel)
{
	struct channel *channel = &wheel->channel;
	uint64_t sent;

	pthread_mutex_lock(&channel->lock);
	sent = channel->sent;
	while (channel->applied < sent) {
		/* The owner signals when it returns for the next event, or on its next tick. */
		pthread_mutex_unlock(&channel->lock);
		stopwatch_sleep(10000);
		pthread_mutex_lock(&channel->lock);
	}
	pthread_mutex_unlock(&channel->lock);
}

void simple_wheel_wait_fired(struct simple_wheel *wheel, int64_t count)
{
	runner_wait_ran(&wheel->runner, count);
}

int64_t simple_wheel_pending(struct simple_wheel *wheel)
{
	return map_count(&wheel->map);
}
