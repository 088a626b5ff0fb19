/* SPDX-License-Identifier: MIT */
/*
 * The deadline of a call lies between the clock's readings before and after it, so each reading
 * ends one window and begins the next. Between phases the threads meet at a barrier, where the
 * first of them flushes the wheel and notes how long that took.
 */
#include "setter.h"

#include "expect.h"
#include "keys.h"
#include "process.h"
#include "stopwatch.h"

#include <pthread.h>
#include <stdlib.h>

/* One call of this many is timed by itself. */
#define SAMPLE_EVERY 64
/* At a pace, a thread makes this many commands before it checks whether it is ahead. */
#define PACE_EVERY 32

const char *const setter_phase_names[SETTER_PHASES] = {"set", "move", "remove"};

struct setter {
	struct setters *setters;
	pthread_t thread;
	size_t first;
	size_t count;
	uint64_t given[SETTER_PHASES];
	int64_t began[SETTER_PHASES];
	struct generator generator;
	struct percentiles *call_times[SETTER_PHASES];
};

struct setters {
	/* These are constant once the threads run. */
	struct setters_plan plan;
	struct tw_wheel *wheel;
	struct ledger_entry *ledger;
	struct setter *all;
	int64_t call_overhead;
	/* Any thread may use these. */
	pthread_barrier_t barrier;
	/* The first setter writes these; they are read after the join. */
	double seconds[SETTER_PHASES];
	int64_t resident_when_set;
};

/* --- One command ------------------------------------------------------------------------------ */

static enum tw_status call_wheel(const struct setters *setters, enum setter_phase phase,
				 size_t index, tw_duration delay)
{
	struct random_key key = key_of(index, setters->plan.seed);

	switch (phase) {
	case SETTER_SET:
		return tw_set_timer(setters->wheel, &key, sizeof(key), &setters->ledger[index],
				    delay);
	case SETTER_MOVE:
		return tw_move_timer(setters->wheel, &key, sizeof(key), delay);
	default:
		return tw_remove_timer(setters->wheel, &key, sizeof(key));
	}
}

static void give_command(struct setter *setter, enum setter_phase phase, size_t index,
			 tw_duration delay)
{
	bool sampled = setter->given[phase]++ % SAMPLE_EVERY == 0;
	int64_t start = sampled ? stopwatch_now() : 0;
	enum tw_status status = call_wheel(setter->setters, phase, index, delay);

	if (sampled)
		percentiles_record(setter->call_times[phase],
				   stopwatch_now() - start - setter->setters->call_overhead);
	expect_ok(status, setter_phase_names[phase]);
}

/* Makes the command and notes its possible effects. `now` was just read. Returns a new reading. */
static tw_duration note_command(struct setter *setter, enum setter_phase phase, size_t index,
				tw_duration now)
{
	const struct setters *setters = setter->setters;
	struct ledger_entry *entry = &setters->ledger[index];
	tw_duration delay = generator_range(&setter->generator, setters->plan.shortest_delay,
					    setters->plan.longest_delay + 1);

	if (phase == SETTER_SET)
		ledger_ask_set(entry, now, delay);
	else if (phase == SETTER_MOVE)
		ledger_ask_move(entry, now, delay);
	else
		ledger_ask_remove(entry);
	give_command(setter, phase, index, delay);
	now = tw_now(setters->wheel);
	if (phase == SETTER_SET)
		ledger_asked_set(entry, now, delay);
	else if (phase == SETTER_MOVE)
		ledger_asked_move(entry, now, delay);
	return now;
}

/* --- One thread ------------------------------------------------------------------------------- */

/* Returns a step through a share, coprime to its size, for another order than that of the sets. */
static size_t stride_of(size_t count)
{
	return count % 611953 ? 611953 : 1;
}

/* Sleeps if the thread is ahead of its share of the rate. */
static void keep_pace(const struct setter *setter, enum setter_phase phase)
{
	const struct setters_plan *plan = &setter->setters->plan;
	uint64_t given = setter->given[phase];
	double share;
	int64_t ahead;

	if (plan->rate == 0 || given % PACE_EVERY != 0)
		return;
	share = (double)plan->rate / (double)plan->threads;
	ahead = setter->began[phase] - stopwatch_now() +
		(int64_t)((double)given / share * (double)NANOSECONDS_PER_SECOND);
	if (ahead > 0)
		stopwatch_sleep(ahead);
}

static void run_share(struct setter *setter, enum setter_phase phase)
{
	static const size_t quarters[SETTER_PHASES] = {[SETTER_MOVE] = 1, [SETTER_REMOVE] = 3};
	size_t stride = phase == SETTER_SET ? 1 : stride_of(setter->count);
	tw_duration now = tw_now(setter->setters->wheel);

	for (size_t i = 0; i < setter->count; i++) {
		size_t index = i * stride % setter->count;

		if (phase != SETTER_SET && index % 4 != quarters[phase])
			continue;
		now = note_command(setter, phase, setter->first + index, now);
		keep_pace(setter, phase);
	}
}

static void end_phase(struct setters *setters, enum setter_phase phase)
{
	int64_t end, start = INT64_MAX;

	expect_ok(tw_flush(setters->wheel), "tw_flush");
	end = stopwatch_now();
	for (int64_t i = 0; i < setters->plan.threads; i++) {
		if (setters->all[i].began[phase] < start)
			start = setters->all[i].began[phase];
	}
	setters->seconds[phase] = seconds_of(end - start);
	if (phase == SETTER_SET)
		setters->resident_when_set = process_resident();
	if (phase == SETTER_REMOVE)
		witnesses_begin_after(setters->plan.witnesses);
}

static void *setter_run(void *argument)
{
	struct setter *setter = argument;
	struct setters *setters = setter->setters;

	for (enum setter_phase phase = 0; phase < SETTER_PHASES; phase++) {
		pthread_barrier_wait(&setters->barrier);
		setter->began[phase] = stopwatch_now();
		run_share(setter, phase);
		pthread_barrier_wait(&setters->barrier);
		if (setter == setters->all)
			end_phase(setters, phase);
	}
	return NULL;
}

static void setter_start(struct setters *setters, size_t number)
{
	struct setter *setter = &setters->all[number];
	size_t count = (size_t)setters->plan.count, threads = (size_t)setters->plan.threads;

	setter->setters = setters;
	setter->first = count * number / threads;
	setter->count = count * (number + 1) / threads - setter->first;
	setter->generator.state = scramble(setters->plan.seed + number);
	for (enum setter_phase phase = 0; phase < SETTER_PHASES; phase++)
		setter->call_times[phase] = percentiles_create();
	if (pthread_create(&setter->thread, NULL, setter_run, setter) != 0)
		process_fail("thread %zu could not be started", number + 1);
}

/* --- All of them ------------------------------------------------------------------------------ */

struct setters *setters_start(const struct setters_plan *plan)
{
	struct setters *setters = process_allocate(sizeof(*setters));

	setters->plan = *plan;
	setters->wheel = plan->witnesses->wheel;
	setters->ledger = plan->witnesses->ledger;
	setters->all = process_allocate((size_t)plan->threads * sizeof(*setters->all));
	setters->call_overhead = stopwatch_overhead();
	pthread_barrier_init(&setters->barrier, NULL, (unsigned)plan->threads);
	for (int64_t i = 0; i < plan->threads; i++)
		setter_start(setters, (size_t)i);
	return setters;
}

void setters_join(struct setters *setters)
{
	for (int64_t i = 0; i < setters->plan.threads; i++)
		pthread_join(setters->all[i].thread, NULL);
}

struct setters_phase setters_phase(const struct setters *setters, enum setter_phase phase)
{
	struct setters_phase all = {.call_times = percentiles_create()};

	for (int64_t i = 0; i < setters->plan.threads; i++) {
		percentiles_merge(all.call_times, setters->all[i].call_times[phase]);
		all.given += setters->all[i].given[phase];
	}
	all.per_second = (double)all.given / setters->seconds[phase];
	return all;
}

int64_t setters_resident_when_set(const struct setters *setters)
{
	return setters->resident_when_set;
}

void setters_destroy(struct setters *setters)
{
	for (int64_t i = 0; i < setters->plan.threads; i++) {
		for (enum setter_phase phase = 0; phase < SETTER_PHASES; phase++)
			percentiles_destroy(setters->all[i].call_times[phase]);
	}
	pthread_barrier_destroy(&setters->barrier);
	free(setters->all);
	free(setters);
}
