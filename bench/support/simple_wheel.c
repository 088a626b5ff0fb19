/* SPDX-License-Identifier: MIT */
/*
 * After core/collection/timingwheel.go of go-zero, step by step:
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
 * The lists and entries belong to the owner; the channel, the map, the runner's list and the
 * counts each have their lock.
 */
#include "simple_wheel.h"

#include "process.h"
#include "stopwatch.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <uthash.h>

enum command_kind { COMMAND_SET, COMMAND_MOVE, COMMAND_REMOVE };

struct command {
	enum command_kind kind;
	struct random_key key;
	void *value;
	int64_t delay;
};

/* A timer in its slot: go-zero's timingEntry with its list element. */
struct entry {
	struct entry *next;
	struct entry *previous;
	struct random_key key;
	void *value;
	int64_t circle; /* rounds to wait */
	int64_t diff;   /* slots to go on by when its slot comes up */
	bool removed;
};

/* Where a key's timer is: go-zero's positionEntry with its place in the map. */
struct position {
	struct random_key key;
	struct entry *entry;
	size_t slot;
	UT_hash_handle hh;
};

struct slot {
	struct entry *first;
	struct entry *last;
};

struct channel {
	pthread_mutex_t lock;
	pthread_cond_t not_empty;
	pthread_cond_t moved_on; /* commands were taken */
	struct command *commands;
	size_t size;
	bool rendezvous; /* a sender waits until its command is taken */
	bool owner_waits;
	int senders_wait;
	uint64_t sent;
	uint64_t taken;
	uint64_t applied;
};

struct runner {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t done;
	struct slot tasks;
	int64_t ran;
};

struct simple_wheel {
	/* Constant. */
	int64_t interval;
	size_t slot_count;
	simple_execute_fn *execute;
	pthread_t thread;
	struct channel channel;
	struct runner runner;
	/* Under the channel's lock. */
	bool ticking;
	bool stopping;
	bool tick_was_last;
	int64_t next_tick;
	int64_t wakeups;
	/* Under the map's lock. */
	pthread_mutex_t map_lock;
	struct position *map;
	/* The owner's. */
	struct slot *slots;
	size_t hand;
	/* The owner's, read by others after a flush. */
	int64_t longest_turn;
	int64_t longest_turn_wall;
};

/* --- Lists ------------------------------------------------------------------------------------ */

static void slot_append(struct slot *slot, struct entry *entry)
{
	entry->next = NULL;
	entry->previous = slot->last;
	if (slot->last)
		slot->last->next = entry;
	else
		slot->first = entry;
	slot->last = entry;
}

static void slot_remove(struct slot *slot, struct entry *entry)
{
	if (entry->previous)
		entry->previous->next = entry->next;
	else
		slot->first = entry->next;
	if (entry->next)
		entry->next->previous = entry->previous;
	else
		slot->last = entry->previous;
}

static void slot_free(struct slot *slot)
{
	while (slot->first) {
		struct entry *entry = slot->first;

		slot_remove(slot, entry);
		free(entry);
	}
}

/* --- The map ---------------------------------------------------------------------------------- */

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		process_fail("out of memory in the baseline");
	return memory;
}

static struct position *map_find(struct simple_wheel *wheel, const struct random_key *key)
{
	struct position *position;

	pthread_mutex_lock(&wheel->map_lock);
	HASH_FIND(hh, wheel->map, key, sizeof(*key), position);
	pthread_mutex_unlock(&wheel->map_lock);
	return position;
}

static void map_add(struct simple_wheel *wheel, struct entry *entry, size_t slot)
{
	struct position *position = allocate(sizeof(*position));

	position->key = entry->key;
	position->entry = entry;
	position->slot = slot;
	pthread_mutex_lock(&wheel->map_lock);
	HASH_ADD(hh, wheel->map, key, sizeof(position->key), position);
	pthread_mutex_unlock(&wheel->map_lock);
}

static void map_delete(struct simple_wheel *wheel, struct position *position)
{
	pthread_mutex_lock(&wheel->map_lock);
	HASH_DEL(wheel->map, position);
	pthread_mutex_unlock(&wheel->map_lock);
	free(position);
}

static void map_free(struct simple_wheel *wheel)
{
	struct position *position, *next;

	HASH_ITER (hh, wheel->map, position, next) {
		HASH_DEL(wheel->map, position);
		free(position);
	}
}

/* --- Commands --------------------------------------------------------------------------------- */

static struct entry *entry_create(const struct random_key *key, void *value, int64_t circle)
{
	struct entry *entry = allocate(sizeof(*entry));

	*entry = (struct entry){.key = *key, .value = value, .circle = circle};
	return entry;
}

/* The slot that a delay leads to, and how many rounds the hand makes before. */
static size_t slot_after(const struct simple_wheel *wheel, int64_t delay, int64_t *circle)
{
	int64_t steps = delay / wheel->interval;

	*circle = (steps - 1) / (int64_t)wheel->slot_count;
	return (wheel->hand + (size_t)steps) % wheel->slot_count;
}

static void run_tasks(struct runner *runner, struct slot *tasks);

static void run_now(struct simple_wheel *wheel, struct position *position)
{
	struct slot tasks = {NULL, NULL};

	slot_append(&tasks, entry_create(&position->key, position->entry->value, 0));
	run_tasks(&wheel->runner, &tasks);
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
		position->entry = entry_create(&entry->key, entry->value, 0);
		position->slot = slot;
		slot_append(&wheel->slots[slot], position->entry);
	}
}

static void set_timer(struct simple_wheel *wheel, const struct command *command)
{
	int64_t delay = command->delay < wheel->interval ? wheel->interval : command->delay;
	struct position *position = map_find(wheel, &command->key);
	struct entry *entry;
	int64_t circle;
	size_t slot;

	if (position) {
		position->entry->value = command->value;
		move_timer(wheel, position, delay);
		return;
	}
	slot = slot_after(wheel, delay, &circle);
	entry = entry_create(&command->key, command->value, circle);
	slot_append(&wheel->slots[slot], entry);
	map_add(wheel, entry, slot);
}

static void apply(struct simple_wheel *wheel, const struct command *command)
{
	struct position *position;

	if (command->kind == COMMAND_SET) {
		set_timer(wheel, command);
		return;
	}
	position = map_find(wheel, &command->key);
	if (!position)
		return;
	if (command->kind == COMMAND_MOVE) {
		move_timer(wheel, position, command->delay);
	} else {
		position->entry->removed = true;
		map_delete(wheel, position);
	}
}

/* --- Ticks ------------------------------------------------------------------------------------ */

/* The slot of the hand has come up and the entry is neither removed nor waiting for its round. */
static void take_entry(struct simple_wheel *wheel, struct entry *entry, struct slot *tasks)
{
	struct position *position = map_find(wheel, &entry->key);

	slot_remove(&wheel->slots[wheel->hand], entry);
	if (entry->diff > 0) {
		size_t slot = (wheel->hand + (size_t)entry->diff) % wheel->slot_count;

		entry->diff = 0;
		position->slot = slot;
		slot_append(&wheel->slots[slot], entry);
		return;
	}
	map_delete(wheel, position);
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
		run_tasks(&wheel->runner, &tasks);
}

/* --- The runner ------------------------------------------------------------------------------- */

static void run_tasks(struct runner *runner, struct slot *tasks)
{
	pthread_mutex_lock(&runner->lock);
	if (runner->tasks.last) {
		runner->tasks.last->next = tasks->first;
		tasks->first->previous = runner->tasks.last;
		runner->tasks.last = tasks->last;
	} else {
		runner->tasks = *tasks;
	}
	pthread_cond_signal(&runner->work);
	pthread_mutex_unlock(&runner->lock);
}

static int64_t run_all(struct simple_wheel *wheel, struct slot *tasks)
{
	int64_t count = 0;

	for (; tasks->first; count++) {
		struct entry *entry = tasks->first;

		slot_remove(tasks, entry);
		wheel->execute(&entry->key, entry->value);
		free(entry);
	}
	return count;
}

static void *runner_run(void *argument)
{
	struct simple_wheel *wheel = argument;
	struct runner *runner = &wheel->runner;

	pthread_mutex_lock(&runner->lock);
	for (;;) {
		struct slot tasks = runner->tasks;
		int64_t count;

		if (!tasks.first) {
			if (wheel->stopping)
				break;
			pthread_cond_wait(&runner->work, &runner->lock);
			continue;
		}
		runner->tasks = (struct slot){NULL, NULL};
		pthread_mutex_unlock(&runner->lock);
		count = run_all(wheel, &tasks);
		pthread_mutex_lock(&runner->lock);
		runner->ran += count;
		pthread_cond_broadcast(&runner->done);
	}
	pthread_mutex_unlock(&runner->lock);
	return NULL;
}

/* --- The channel and the owner ---------------------------------------------------------------- */

static void send_command(struct simple_wheel *wheel, const struct command *command)
{
	struct channel *channel = &wheel->channel;
	uint64_t place;

	pthread_mutex_lock(&channel->lock);
	channel->senders_wait++;
	while (channel->sent - channel->taken == channel->size)
		pthread_cond_wait(&channel->moved_on, &channel->lock);
	place = channel->sent++;
	channel->commands[place % channel->size] = *command;
	if (channel->owner_waits)
		pthread_cond_signal(&channel->not_empty);
	while (channel->rendezvous && channel->taken <= place)
		pthread_cond_wait(&channel->moved_on, &channel->lock);
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
	wheel->wakeups++;
}

enum event { EVENT_TICK, EVENT_COMMAND, EVENT_STOP };

/* A tick that comes while the last one is still being worked off waits; more are dropped. */
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
			*command = channel->commands[channel->taken++ % channel->size];
			wheel->tick_was_last = false;
			return EVENT_COMMAND;
		}
		if (wheel->stopping)
			return EVENT_STOP;
		wait_for_event(wheel);
	}
}

static void measured_tick(struct simple_wheel *wheel)
{
	int64_t start = stopwatch_now(), cpu_start = stopwatch_thread_cpu();
	int64_t turn, turn_wall;

	tick(wheel);
	turn = stopwatch_thread_cpu() - cpu_start;
	turn_wall = stopwatch_now() - start;
	if (turn > wheel->longest_turn)
		wheel->longest_turn = turn;
	if (turn_wall > wheel->longest_turn_wall)
		wheel->longest_turn_wall = turn_wall;
}

/* Senders that found a buffer full are woken when half of it is free: a wake-up for many commands. */
static void wake_senders(struct channel *channel)
{
	if (channel->senders_wait && channel->sent - channel->taken <= channel->size / 2)
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
			measured_tick(wheel);
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

static void channel_prepare(struct channel *channel, size_t capacity)
{
	channel->rendezvous = capacity == 0;
	channel->size = capacity ? capacity : 1;
	channel->commands = process_allocate(channel->size * sizeof(*channel->commands));
	pthread_mutex_init(&channel->lock, NULL);
	monotonic_condition(&channel->not_empty);
	pthread_cond_init(&channel->moved_on, NULL);
}

static void runner_prepare(struct runner *runner)
{
	pthread_mutex_init(&runner->lock, NULL);
	pthread_cond_init(&runner->work, NULL);
	pthread_cond_init(&runner->done, NULL);
}

struct simple_wheel *simple_wheel_create(int64_t interval, size_t slots, size_t channel_capacity,
					 simple_execute_fn *execute)
{
	struct simple_wheel *wheel = process_allocate(sizeof(*wheel));

	wheel->interval = interval;
	wheel->slot_count = slots;
	wheel->execute = execute;
	wheel->slots = process_allocate(slots * sizeof(*wheel->slots));
	channel_prepare(&wheel->channel, channel_capacity);
	runner_prepare(&wheel->runner);
	pthread_mutex_init(&wheel->map_lock, NULL);
	if (pthread_create(&wheel->thread, NULL, owner_run, wheel) != 0 ||
	    pthread_create(&wheel->runner.thread, NULL, runner_run, wheel) != 0)
		process_fail("the baseline's threads could not be started");
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

static void stop_threads(struct simple_wheel *wheel)
{
	pthread_mutex_lock(&wheel->channel.lock);
	pthread_mutex_lock(&wheel->runner.lock);
	wheel->stopping = true;
	pthread_cond_signal(&wheel->channel.not_empty);
	pthread_cond_signal(&wheel->runner.work);
	pthread_mutex_unlock(&wheel->runner.lock);
	pthread_mutex_unlock(&wheel->channel.lock);
	pthread_join(wheel->thread, NULL);
	pthread_join(wheel->runner.thread, NULL);
}

void simple_wheel_destroy(struct simple_wheel *wheel)
{
	stop_threads(wheel);
	map_free(wheel);
	for (size_t i = 0; i < wheel->slot_count; i++)
		slot_free(&wheel->slots[i]);
	free(wheel->channel.commands);
	free(wheel->slots);
	free(wheel);
}

void simple_wheel_set(struct simple_wheel *wheel, const struct random_key *key, void *value,
		      int64_t delay)
{
	send_command(wheel, &(struct command){COMMAND_SET, *key, value, delay});
}

void simple_wheel_move(struct simple_wheel *wheel, const struct random_key *key, int64_t delay)
{
	send_command(wheel, &(struct command){COMMAND_MOVE, *key, NULL, delay});
}

void simple_wheel_remove(struct simple_wheel *wheel, const struct random_key *key)
{
	send_command(wheel, &(struct command){COMMAND_REMOVE, *key, NULL, 0});
}

void simple_wheel_flush(struct simple_wheel *wheel)
{
	struct channel *channel = &wheel->channel;
	uint64_t sent;

	pthread_mutex_lock(&channel->lock);
	sent = channel->sent;
	while (channel->applied < sent) {
		/* The owner says so when it comes back for the next event, or on its next tick. */
		pthread_mutex_unlock(&channel->lock);
		stopwatch_sleep(10000);
		pthread_mutex_lock(&channel->lock);
	}
	pthread_mutex_unlock(&channel->lock);
}

void simple_wheel_wait_fired(struct simple_wheel *wheel, int64_t count)
{
	struct runner *runner = &wheel->runner;

	pthread_mutex_lock(&runner->lock);
	while (runner->ran < count)
		pthread_cond_wait(&runner->done, &runner->lock);
	pthread_mutex_unlock(&runner->lock);
}

struct simple_wheel_state simple_wheel_state(struct simple_wheel *wheel)
{
	struct simple_wheel_state state = {
		.longest_turn = wheel->longest_turn,
		.longest_turn_wall = wheel->longest_turn_wall,
	};

	pthread_mutex_lock(&wheel->map_lock);
	state.pending = HASH_COUNT(wheel->map);
	pthread_mutex_unlock(&wheel->map_lock);
	pthread_mutex_lock(&wheel->channel.lock);
	state.wakeups = wheel->wakeups;
	pthread_mutex_unlock(&wheel->channel.lock);
	pthread_mutex_lock(&wheel->runner.lock);
	state.fired = wheel->runner.ran;
	pthread_mutex_unlock(&wheel->runner.lock);
	return state;
}
