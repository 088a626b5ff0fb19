/* SPDX-License-Identifier: MIT */
/*
 * Does a crowd of a million stall the wheel?
 *
 * Five storms, each on a fresh wheel in a process of its own: all timers lie in one coarse slot and
 * must come down level by level; all are due in one tick; all are drained; all are stopped one by
 * one; the wheel is stopped. Meanwhile a heartbeat beats on the same wheel each 10 ms: how late is
 * it usually, with the timers resident and nothing else to do, and how late in the storm? A beat
 * that is missed counts with its lateness, and so do those after it. And how long was the owner's
 * longest turn, from the first timer set to the end of the storm? ("Before": until the storm
 * began.) It is told in processor time of the owner's thread, and as wall time, which counts what
 * other threads had of the core meanwhile.
 *
 * As in a process that has run for a while, successive timers do not lie next to each other in
 * memory: the library's were all set and stopped before, in random order.
 *
 * The baseline is the classic wheel that empties a coarse slot at once (support/cascading_wheel.h).
 * Tasks do nothing but count. When the wheel is drained or stopped, the heartbeat is stopped first;
 * after the draining it starts anew.
 */
#include "support/cascading_wheel.h"
#include "support/csv.h"
#include "support/format.h"
#include "support/percentiles.h"
#include "support/keys.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/spread.h"
#include "support/stopwatch.h"

#include "runtime.h" /* the wheel's origin, to know where its slots begin */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND (NANOSECONDS_PER_SECOND / 1000)
#define MINUTE (60 * NANOSECONDS_PER_SECOND)
#define MAX_RUNS 99
#define MAX_BEATS 65536
#define PERIOD (10 * MILLISECOND)
/* What a storm may take, from its last deadline on, before something is taken to hang. */
#define PATIENCE MINUTE
/* Between filling and the calm phase: what a busy wheel puts off, it does now. */
#define REST (100 * MILLISECOND)
#define MAX_COUNTING_THREADS 1024

enum storm { STORM_SLOT, STORM_TICK, STORM_DRAIN, STORM_STOPS, STORM_STOP, STORM_COUNT };

static const struct {
	const char *name;
	const char *title;
} storms[STORM_COUNT] = {
	[STORM_SLOT] = {"slot", "all in one coarse slot"},
	[STORM_TICK] = {"tick", "all due in one tick"},
	[STORM_DRAIN] = {"drain", "all drained"},
	[STORM_STOPS] = {"stops", "all stopped one by one"},
	[STORM_STOP] = {"stop", "wheel stopped"},
};

struct plan {
	const struct rival *rival;
	enum storm storm;
	int64_t count;
	int64_t interval;
	int64_t slots; /* a power of two */
	int64_t calm;
	int64_t workers; /* 0: inline */
	bool keyed;
	int heartbeat; /* 0: by handle, a schedule; 1: keyed, setting itself again */
	uint64_t seed;
};

/* A heartbeat's lateness in one of the phases, nanoseconds. */
struct lateness {
	double p50;
	double p99;
	double most;
};

/* Nanoseconds: processor time of the owner's thread, and by the clock. */
struct turns {
	double work;
	double wall;
};

/* All doubles, one measure each. */
struct result {
	struct turns before; /* the owner's longest until the storm began */
	struct turns turns;  /* and until it ended */
	struct lateness usual;
	struct lateness storm;
	double after; /* from the last deadline, or the call, until all timers were accounted for */
};

enum { MEASURE_COUNT = sizeof(struct result) / sizeof(double) };

static const char *const measure_names[MEASURE_COUNT] = {
	"turn_before_work_ns", "turn_before_wall_ns", "turn_work_ns",  "turn_wall_ns",
	"usual_p50_ns",        "usual_p99_ns",        "usual_max_ns",  "storm_p50_ns",
	"storm_p99_ns",        "storm_max_ns",        "over_after_ns",
};

struct beat {
	int64_t deadline;
	int64_t lateness;
};

/* Whose beat it is writes; read when it has been stopped. */
struct heartbeat {
	const struct trial *trial;
	atomic_bool ending; /* a keyed one is not to set itself again */
	int64_t deadline;   /* of the next beat */
	size_t count;
	struct beat *beats;
};

struct trial {
	const struct plan *plan;
	struct result *result;
	struct generator generator;
	int64_t stopped_before; /* to age the memory */
	int64_t origin;         /* of the wheel's ticks, on the stopwatch */
	int64_t begins;         /* the storm */
	int64_t due;            /* the last deadline, or when to call */
	uint32_t *order;
	struct heartbeat heartbeat;
	/* The library's. */
	struct tw_wheel *wheel;
	struct tw_timer heartbeat_timer;
	struct tw_timer *handles; /* or */
	struct random_key *keys;
	/* The baseline's. */
	struct cascading_wheel *cascading;
	struct cascading_timer heartbeat_beat;
	struct cascading_timer *timers;
};

/* The library or the baseline. */
struct rival {
	const char *name;
	const char *title;
	void (*create)(struct trial *trial);
	void (*destroy)(struct trial *trial);
	/* Mixes up its memory. */
	void (*age)(struct trial *trial);
	void (*set)(struct trial *trial, size_t i, int64_t deadline);
	/* Waits until the wheel has heard of all that were set. */
	void (*flush)(struct trial *trial);
	void (*start_heartbeat)(struct trial *trial);
	void (*stop_heartbeat)(struct trial *trial);
	void (*drain)(struct trial *trial);
	void (*stop_one)(struct trial *trial, size_t i);
	void (*stop)(struct trial *trial);
	/* Whether the wheel, too, has done all that was to be done about one-by-one stops. */
	bool (*has_stopped_all)(struct trial *trial);
	struct turns (*longest_turns)(struct trial *trial);
};

/* --- Counting what comes back ----------------------------------------------------------------- */

enum fate { FATE_RAN, FATE_DRAINED, FATE_STOPPED, FATE_COUNT };

/* One thread's counts; its own to write, anyone's to read. A trial is a process of its own. */
struct counter {
	_Alignas(64) _Atomic int64_t fates[FATE_COUNT];
};

static struct counter counters[MAX_COUNTING_THREADS];
static atomic_int counters_used;
static _Thread_local struct counter *own_counter;

static void count_fate(enum fate fate)
{
	_Atomic int64_t *count;

	if (!own_counter)
		own_counter = &counters[atomic_fetch_add(&counters_used, 1) % MAX_COUNTING_THREADS];
	count = &own_counter->fates[fate];
	/* release: whoever sees the count sees the rest; pairs with the acquire in counted() */
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_release);
}

static int64_t counted(enum fate fate)
{
	int64_t sum = 0;

	for (int i = 0; i < MAX_COUNTING_THREADS; i++)
		sum += atomic_load_explicit(&counters[i].fates[fate], memory_order_acquire);
	return sum;
}

static void on_run(void *argument)
{
	(void)argument;
	count_fate(FATE_RAN);
}

/* --- The heartbeat ---------------------------------------------------------------------------- */

static void beat(void *argument)
{
	struct heartbeat *heartbeat = argument;

	if (heartbeat->count == MAX_BEATS)
		process_fail("the run is too long: more than %d beats", MAX_BEATS);
	heartbeat->beats[heartbeat->count++] =
		(struct beat){heartbeat->deadline, stopwatch_now() - heartbeat->deadline};
}

/* tw_schedule_func asks it once at the start, then after each beat. */
static tw_duration next_beat(void *argument, tw_duration previous)
{
	struct heartbeat *heartbeat = argument;

	if (previous >= heartbeat->deadline)
		heartbeat->deadline = previous + PERIOD;
	return heartbeat->deadline;
}

/* The first tick from `time` on. */
static int64_t tick_from(const struct trial *trial, int64_t time)
{
	int64_t interval = trial->plan->interval;

	return trial->origin + (time - trial->origin + interval - 1) / interval * interval;
}

/* On the beat that was to be the next, or the first that can still be met. */
static void start_heartbeat(struct trial *trial)
{
	struct heartbeat *heartbeat = &trial->heartbeat;
	int64_t soon = stopwatch_now() + MILLISECOND;

	if (heartbeat->deadline == 0)
		heartbeat->deadline = tick_from(trial, soon);
	while (heartbeat->deadline < soon)
		heartbeat->deadline += PERIOD;
	trial->plan->rival->start_heartbeat(trial);
}

/* Of the beats due from `begin` to before `end`. */
static struct lateness heartbeat_lateness(const struct heartbeat *heartbeat, int64_t begin,
					  int64_t end)
{
	struct percentiles *histogram = percentiles_create();
	struct lateness lateness;

	for (size_t i = 0; i < heartbeat->count; i++) {
		const struct beat *one = &heartbeat->beats[i];

		if (one->deadline >= begin && one->deadline < end)
			percentiles_record(histogram, one->lateness);
	}
	lateness = (struct lateness){
		.p50 = (double)percentiles_at(histogram, 50),
		.p99 = (double)percentiles_at(histogram, 99),
		.most = (double)percentiles_most(histogram),
	};
	/* A percentile may be 0.4 % too great. */
	if (lateness.p50 > lateness.most)
		lateness.p50 = lateness.most;
	if (lateness.p99 > lateness.most)
		lateness.p99 = lateness.most;
	percentiles_destroy(histogram);
	return lateness;
}

/* --- The library ------------------------------------------------------------------------------ */

static void expect_ok(enum tw_status status, const char *call)
{
	if (status != TW_OK)
		process_fail("%s answered %s: %s", call, tw_status_name(status),
			     tw_status_text(status));
}

static void set_keyed_heartbeat(struct heartbeat *heartbeat)
{
	expect_ok(tw_set_timer_at(heartbeat->trial->wheel, "heartbeat", sizeof("heartbeat"),
				  heartbeat, heartbeat->deadline),
		  "tw_set_timer_at");
}

/* The heartbeat is the only one that has a value. */
static void on_expiry(void *context, const struct tw_task *task)
{
	struct heartbeat *heartbeat = task->value;

	(void)context;
	if (!heartbeat) {
		count_fate(FATE_RAN);
		return;
	}
	beat(heartbeat);
	heartbeat->deadline += PERIOD;
	/* relaxed: stop_keyed_heartbeat() waits for this task before it relies on it */
	if (!atomic_load_explicit(&heartbeat->ending, memory_order_relaxed))
		set_keyed_heartbeat(heartbeat);
}

static void on_drained(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
	count_fate(FATE_DRAINED);
}

static void on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	(void)context;
	(void)reason;
	if (!task->value)
		count_fate(FATE_STOPPED);
}

static void library_create(struct trial *trial)
{
	const struct plan *plan = trial->plan;
	struct tw_options options = {
		.release = on_release,
		.workers = plan->workers ? (int)plan->workers : TW_WORKERS_INLINE,
	};

	if (plan->keyed)
		trial->keys = keys_create((size_t)plan->count, plan->seed);
	else
		trial->handles = process_allocate((size_t)plan->count * sizeof(*trial->handles));
	expect_ok(
		tw_create(&trial->wheel, plan->interval, (size_t)plan->slots, on_expiry, &options),
		"tw_create");
	trial->origin = trial->wheel->owner.clock.origin;
}

static void library_destroy(struct trial *trial)
{
	tw_destroy(trial->wheel);
	free(trial->keys);
	free(trial->handles);
}

static void library_set(struct trial *trial, size_t i, int64_t deadline)
{
	if (trial->keys)
		expect_ok(tw_set_timer_at(trial->wheel, &trial->keys[i], sizeof(trial->keys[i]),
					  NULL, deadline),
			  "tw_set_timer_at");
	else
		expect_ok(tw_after_func(trial->wheel, deadline - tw_now(trial->wheel), on_run, NULL,
					&trial->handles[i]),
			  "tw_after_func");
}

static void library_flush(struct trial *trial)
{
	expect_ok(tw_flush(trial->wheel), "tw_flush");
}

static void library_start_heartbeat(struct trial *trial)
{
	atomic_store_explicit(&trial->heartbeat.ending, false, memory_order_relaxed);
	if (trial->plan->heartbeat)
		set_keyed_heartbeat(&trial->heartbeat);
	else
		expect_ok(tw_schedule_func(trial->wheel, next_beat, beat, &trial->heartbeat,
					   &trial->heartbeat_timer),
			  "tw_schedule_func");
}

static void stop_keyed_heartbeat(struct trial *trial)
{
	/* relaxed: once the wheel was idle, no beat is running that has not seen it */
	atomic_store_explicit(&trial->heartbeat.ending, true, memory_order_relaxed);
	expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	expect_ok(tw_remove_timer(trial->wheel, "heartbeat", sizeof("heartbeat")),
		  "tw_remove_timer");
	library_flush(trial);
}

static void library_stop_heartbeat(struct trial *trial)
{
	enum tw_status status;

	if (trial->plan->heartbeat) {
		stop_keyed_heartbeat(trial);
		return;
	}
	status = tw_timer_stop_wait(trial->wheel, trial->heartbeat_timer);
	if (status != TW_RUNNING)
		expect_ok(status, "tw_timer_stop_wait");
}

static void library_drain(struct trial *trial)
{
	expect_ok(tw_drain(trial->wheel, on_drained, NULL), "tw_drain");
}

static void library_stop_one(struct trial *trial, size_t i)
{
	if (trial->keys) {
		expect_ok(tw_remove_timer(trial->wheel, &trial->keys[i], sizeof(trial->keys[i])),
			  "tw_remove_timer");
		return;
	}
	expect_ok(tw_timer_stop(trial->wheel, trial->handles[i]), "tw_timer_stop");
	count_fate(FATE_STOPPED);
}

static void library_stop(struct trial *trial)
{
	expect_ok(tw_stop(trial->wheel), "tw_stop");
}

static struct tw_stats library_stats(struct trial *trial)
{
	struct tw_stats stats;

	expect_ok(tw_get_stats(trial->wheel, &stats), "tw_get_stats");
	return stats;
}

static bool library_has_stopped_all(struct trial *trial)
{
	return library_stats(trial).removed >= (uint64_t)counted(FATE_STOPPED);
}

/* Some at a time, so that this is no storm by itself. */
static void library_age(struct trial *trial)
{
	int64_t count = trial->plan->count;

	for (int64_t i = 0; i < count; i++)
		library_set(trial, (size_t)i, stopwatch_now() + 60 * MINUTE);
	library_flush(trial);
	for (int64_t i = 0; i < count; i++) {
		library_stop_one(trial, trial->order[i]);
		if (i % 256 == 0)
			library_flush(trial);
	}
	do
		expect_ok(tw_wait_idle(trial->wheel), "tw_wait_idle");
	while (!library_has_stopped_all(trial));
	trial->stopped_before = count;
}

static struct turns library_longest_turns(struct trial *trial)
{
	struct tw_stats stats = library_stats(trial);

	return (struct turns){(double)stats.longest_turn, (double)stats.longest_turn_wall};
}

static const struct rival library = {
	.name = "timingwheel",
	.title = "timingwheel",
	.create = library_create,
	.destroy = library_destroy,
	.age = library_age,
	.set = library_set,
	.flush = library_flush,
	.start_heartbeat = library_start_heartbeat,
	.stop_heartbeat = library_stop_heartbeat,
	.drain = library_drain,
	.stop_one = library_stop_one,
	.stop = library_stop,
	.has_stopped_all = library_has_stopped_all,
	.longest_turns = library_longest_turns,
};

/* --- The baseline ----------------------------------------------------------------------------- */

static void baseline_beat(void *argument)
{
	struct trial *trial = argument;

	beat(&trial->heartbeat);
	trial->heartbeat.deadline += PERIOD;
	cascading_wheel_set(trial->cascading, &trial->heartbeat_beat, trial->heartbeat.deadline);
}

static void baseline_each_drained(void *argument)
{
	(void)argument;
	count_fate(FATE_DRAINED);
}

static void baseline_each_stopped(void *argument)
{
	(void)argument;
	count_fate(FATE_STOPPED);
}

static void baseline_create(struct trial *trial)
{
	const struct plan *plan = trial->plan;

	trial->timers = process_allocate((size_t)plan->count * sizeof(*trial->timers));
	for (int64_t i = 0; i < plan->count; i++)
		trial->timers[i].run = on_run;
	trial->heartbeat_beat.run = baseline_beat;
	trial->heartbeat_beat.argument = trial;
	trial->cascading = cascading_wheel_create(plan->interval, (size_t)plan->slots);
	trial->origin = cascading_wheel_origin(trial->cascading);
}

static void baseline_destroy(struct trial *trial)
{
	cascading_wheel_destroy(trial->cascading);
	free(trial->timers);
}

static void baseline_age(struct trial *trial)
{
	/* Its memory is the caller's array, and that is gone through in random order. */
	(void)trial;
}

static void baseline_set(struct trial *trial, size_t i, int64_t deadline)
{
	cascading_wheel_set(trial->cascading, &trial->timers[i], deadline);
}

static void baseline_flush(struct trial *trial)
{
	(void)trial;
}

static void baseline_start_heartbeat(struct trial *trial)
{
	cascading_wheel_set(trial->cascading, &trial->heartbeat_beat, trial->heartbeat.deadline);
}

static void baseline_stop_heartbeat(struct trial *trial)
{
	/* While it beats, it is not set and will be again. */
	while (!cascading_wheel_stop(trial->cascading, &trial->heartbeat_beat))
		;
}

static void baseline_drain(struct trial *trial)
{
	cascading_wheel_drain(trial->cascading, baseline_each_drained);
}

static void baseline_stop_one(struct trial *trial, size_t i)
{
	if (cascading_wheel_stop(trial->cascading, &trial->timers[i]))
		count_fate(FATE_STOPPED);
}

static void baseline_stop(struct trial *trial)
{
	cascading_wheel_drain(trial->cascading, baseline_each_stopped);
}

static bool baseline_has_stopped_all(struct trial *trial)
{
	(void)trial;
	return true;
}

static struct turns baseline_longest_turns(struct trial *trial)
{
	struct cascading_turns turns = cascading_wheel_longest_turns(trial->cascading);

	return (struct turns){(double)turns.work, (double)turns.wall};
}

static const struct rival baseline = {
	.name = "cascading",
	.title = "cascading wheel",
	.create = baseline_create,
	.destroy = baseline_destroy,
	.age = baseline_age,
	.set = baseline_set,
	.flush = baseline_flush,
	.start_heartbeat = baseline_start_heartbeat,
	.stop_heartbeat = baseline_stop_heartbeat,
	.drain = baseline_drain,
	.stop_one = baseline_stop_one,
	.stop = baseline_stop,
	.has_stopped_all = baseline_has_stopped_all,
	.longest_turns = baseline_longest_turns,
};

/* --- One run ---------------------------------------------------------------------------------- */

/* What it may take to set them all: 2 us a timer, for a slow machine. */
static int64_t filling_time(const struct plan *plan)
{
	return NANOSECONDS_PER_SECOND / 2 + plan->count * 2000;
}

struct deadlines {
	int64_t first;
	int64_t end;
};

/*
 * A slot of level 2 spans slots² ticks. One that begins three such spans after the wheel is filled
 * is out of the reach of level 1, the library's too, and the library takes it up a span before.
 */
static struct deadlines slot_deadlines(struct trial *trial, int64_t ready)
{
	int64_t span = trial->plan->slots * trial->plan->slots * trial->plan->interval;
	int64_t first = ((ready - trial->origin) / span + 3) * span + trial->origin;

	trial->begins = first - span;
	trial->due = first + span - trial->plan->interval;
	return (struct deadlines){first, first + span - trial->plan->interval};
}

/* A random order to set or stop them in. */
static void shuffle_order(struct trial *trial)
{
	for (size_t i = 0; i < (size_t)trial->plan->count; i++) {
		size_t j = (size_t)generator_range(&trial->generator, 0, (int64_t)i + 1);

		trial->order[i] = trial->order[j];
		trial->order[j] = (uint32_t)i;
	}
}

/* Plans the storm's beginning and the deadlines. */
static struct deadlines plan_deadlines(struct trial *trial)
{
	int64_t filled = stopwatch_now() + filling_time(trial->plan);
	int64_t ready = filled + REST + trial->plan->calm;

	trial->begins = tick_from(trial, ready);
	trial->due = trial->begins;
	switch (trial->plan->storm) {
	case STORM_SLOT:
		return slot_deadlines(trial, ready);
	case STORM_TICK:
		/* From the time on at which the slot of level 1 may come up. */
		trial->due += 2 * trial->plan->slots * trial->plan->interval;
		return (struct deadlines){trial->due, trial->due + 1};
	default:
		return (struct deadlines){filled + MINUTE, filled + 60 * MINUTE};
	}
}

static void fill(struct trial *trial)
{
	int64_t filled = stopwatch_now() + filling_time(trial->plan);
	int64_t interval = trial->plan->interval;
	struct deadlines deadlines = plan_deadlines(trial);

	/* The middle before a tick, so that a call that takes a while still means that tick. */
	for (int64_t i = 0; i < trial->plan->count; i++) {
		int64_t deadline =
			generator_range(&trial->generator, deadlines.first, deadlines.end);

		trial->plan->rival->set(trial, trial->order[i],
					tick_from(trial, deadline) - interval / 2);
	}
	trial->plan->rival->flush(trial);
	if (stopwatch_now() > filled)
		process_fail("the machine is too slow to set %s timers before the storm",
			     format_count(trial->plan->count).characters);
}

static void set_off(struct trial *trial)
{
	const struct rival *rival = trial->plan->rival;

	switch (trial->plan->storm) {
	case STORM_SLOT:
	case STORM_TICK:
		return;
	case STORM_DRAIN:
		rival->stop_heartbeat(trial);
		rival->drain(trial);
		start_heartbeat(trial);
		return;
	case STORM_STOPS:
		for (int64_t i = 0; i < trial->plan->count; i++)
			rival->stop_one(trial, trial->order[i]);
		return;
	default:
		rival->stop_heartbeat(trial);
		rival->stop(trial);
	}
}

static bool storm_is_over(struct trial *trial)
{
	int64_t count = trial->plan->count;

	switch (trial->plan->storm) {
	case STORM_SLOT:
	case STORM_TICK:
		return counted(FATE_RAN) >= count;
	case STORM_DRAIN:
		return counted(FATE_DRAINED) >= count;
	case STORM_STOPS:
		return counted(FATE_STOPPED) - trial->stopped_before >= count &&
		       trial->plan->rival->has_stopped_all(trial);
	default:
		return counted(FATE_STOPPED) - trial->stopped_before >= count;
	}
}

static void expect_counts(struct trial *trial)
{
	static const enum fate fates[STORM_COUNT] = {FATE_RAN, FATE_RAN, FATE_DRAINED, FATE_STOPPED,
						     FATE_STOPPED};

	for (enum fate fate = 0; fate < FATE_COUNT; fate++) {
		int64_t expected = fate == fates[trial->plan->storm] ? trial->plan->count : 0;

		if (fate == FATE_STOPPED)
			expected += trial->stopped_before;
		if (counted(fate) == expected)
			continue;
		process_fail("%s, %s: %s ran, %s drained, %s stopped; there were %s",
			     trial->plan->rival->name, storms[trial->plan->storm].name,
			     format_count(counted(FATE_RAN)).characters,
			     format_count(counted(FATE_DRAINED)).characters,
			     format_count(counted(FATE_STOPPED)).characters,
			     format_count(trial->plan->count).characters);
	}
}

static void wait_until_over(struct trial *trial)
{
	int64_t end = trial->due + PATIENCE;

	while (!storm_is_over(trial)) {
		if (stopwatch_now() > end)
			break; /* expect_counts() tells */
		stopwatch_sleep(MILLISECOND);
	}
}

static void weather_storm(struct trial *trial)
{
	const struct rival *rival = trial->plan->rival;
	struct result *result = trial->result;
	int64_t ended;

	stopwatch_sleep(trial->begins - PERIOD / 2 - stopwatch_now());
	result->before = rival->longest_turns(trial);
	stopwatch_sleep(trial->begins - stopwatch_now());
	set_off(trial);
	wait_until_over(trial);
	ended = stopwatch_now();
	result->after = (double)(ended - trial->due);
	if (trial->plan->storm != STORM_STOP) {
		/* The beat that is due at the end belongs to the storm. */
		stopwatch_sleep(2 * PERIOD);
		rival->stop_heartbeat(trial);
		result->storm =
			heartbeat_lateness(&trial->heartbeat, trial->begins, ended + PERIOD);
	}
	result->turns = rival->longest_turns(trial);
}

static void run_trial(const void *argument, void *result)
{
	const struct plan *plan = argument;
	struct trial trial = {.plan = plan,
			      .heartbeat.trial = &trial,
			      .result = result,
			      .generator = {plan->seed}};
	int64_t calm_end;

	trial.heartbeat.beats = process_allocate(MAX_BEATS * sizeof(struct beat));
	trial.order = process_allocate((size_t)plan->count * sizeof(*trial.order));
	shuffle_order(&trial);
	plan->rival->create(&trial);
	plan->rival->age(&trial);
	shuffle_order(&trial);
	start_heartbeat(&trial);
	fill(&trial);
	shuffle_order(&trial);
	calm_end = trial.begins - PERIOD;
	weather_storm(&trial);
	trial.result->usual =
		heartbeat_lateness(&trial.heartbeat, calm_end - plan->calm + PERIOD, calm_end);
	plan->rival->destroy(&trial);
	expect_counts(&trial);
	free(trial.order);
	free(trial.heartbeat.beats);
}

/* --- All runs --------------------------------------------------------------------------------- */

static void write_run(struct csv csv, const struct plan *plan, int run, const struct result *result)
{
	for (int i = 0; i < MEASURE_COUNT; i++) {
		bool without_heartbeat = plan->storm == STORM_STOP &&
					 i >= (int)(offsetof(struct result, storm) / 8) &&
					 i < (int)(offsetof(struct result, after) / 8);

		if (!without_heartbeat)
			csv_row(csv, "%s,%s,%d,%s,%.0f", plan->rival->name,
				storms[plan->storm].name, run, measure_names[i],
				((const double *)result)[i]);
	}
}

static struct result run_rival(const struct plan *plan, int runs, struct csv csv)
{
	static double values[MEASURE_COUNT][MAX_RUNS];
	struct progress progress = progress_start(stderr, false);
	struct result medians;

	for (int run = 0; run < runs; run++) {
		struct plan own = *plan;
		struct result result;

		progress_show(&progress, "%s, %s: run %d of %d", storms[plan->storm].title,
			      plan->rival->title, run + 1, runs);
		own.seed = plan->seed + (uint64_t)run;
		if (!process_run_trial(run_trial, &own, &result, sizeof(result)))
			exit(1);
		for (int i = 0; i < MEASURE_COUNT; i++)
			values[i][run] = ((double *)&result)[i];
		write_run(csv, plan, run + 1, &result);
	}
	progress_wipe(&progress);
	for (int i = 0; i < MEASURE_COUNT; i++)
		((double *)&medians)[i] = spread_of(values[i], (size_t)runs).median;
	return medians;
}

static void print_duration(double nanoseconds)
{
	printf(" %9s", format_duration((int64_t)nanoseconds).characters);
}

static void print_lateness(const struct lateness *lateness)
{
	printf(" |");
	print_duration(lateness->p50);
	print_duration(lateness->p99);
	print_duration(lateness->most);
}

static void print_row(const struct plan *plan, const struct result *result)
{
	printf("  %-16s", plan->rival->title);
	print_duration(result->before.work);
	print_duration(result->turns.work);
	print_duration(result->turns.wall);
	print_lateness(&result->usual);
	if (plan->storm != STORM_STOP)
		print_lateness(&result->storm);
	else
		printf(" |%10s%10s%10s", "-", "-", "-");
	printf(" |");
	print_duration(result->after);
	printf("\n");
	fflush(stdout);
}

struct settings {
	struct plan plan;
	int64_t runs;
	int64_t baseline_runs;
	int only; /* 0: all; or a storm's number + 1 */
	const char *csv_path;
};

static void print_head(const struct settings *settings)
{
	const struct plan *plan = &settings->plan;

	printf("%s\n%s timers %s, tick %s, %s slots; medians of %" PRId64 " runs (baseline %" PRId64
	       ")\n\n",
	       machine_description(), format_count(plan->count).characters,
	       plan->keyed ? "with keys" : "by handle", format_duration(plan->interval).characters,
	       format_count(plan->slots).characters, settings->runs, settings->baseline_runs);
	printf("  %-16s %-29s | %-29s | %-29s |\n", "", "longest turn", "heartbeat late, usually",
	       "heartbeat late, in the storm");
	printf("  %-16s %9s %9s %9s | %9s %9s %9s | %9s %9s %9s | %9s\n", "", "before", "in all",
	       "wall", "p50", "p99", "max", "p50", "p99", "max", "over after");
}

static void run_storm(struct settings *settings, enum storm storm, struct csv csv)
{
	const struct rival *const rivals[] = {&library, &baseline};
	const int64_t runs[] = {settings->runs, settings->baseline_runs};

	printf("%s\n", storms[storm].title);
	settings->plan.storm = storm;
	for (int i = 0; i < 2; i++) {
		struct result result;

		settings->plan.rival = rivals[i];
		if (runs[i] == 0)
			continue;
		result = run_rival(&settings->plan, (int)runs[i], csv);
		print_row(&settings->plan, &result);
	}
}

static void parse(int argc, char **argv, struct settings *settings)
{
	struct plan *plan = &settings->plan;
	const struct program_option options[] = {
		{"count", OPTION_COUNT, &plan->count, 1, 100000000, .help = "timers"},
		{"slots", OPTION_COUNT, &plan->slots, 32, 256,
		 .help = "of a level, rounded up to 2^n; the coarse slot takes their square in ticks"},
		{"interval", OPTION_DURATION, &plan->interval, 1000, 10 * MILLISECOND,
		 .help = "the tick"},
		{"calm", OPTION_SECONDS, &plan->calm, NANOSECONDS_PER_SECOND / 2, MINUTE,
		 .help = "how long to watch before the storm"},
		{"keyed", OPTION_FLAG, &plan->keyed, .help = "timers with keys, not by handle"},
		{"heartbeat", OPTION_CHOICE, &plan->heartbeat, .choices = "handle,keyed",
		 .help = "the library's"},
		{"workers", OPTION_COUNT, &plan->workers, 0, TW_WORKERS_MAX / 2,
		 .help = "the library's; 0: tasks run on the owner"},
		{"storm", OPTION_CHOICE, &settings->only,
		 .choices = "all,slot,tick,drain,stops,stop", .help = "which"},
		{"runs", OPTION_COUNT, &settings->runs, 0, MAX_RUNS,
		 .help = "runs; medians are printed"},
		{"baseline-runs", OPTION_COUNT, &settings->baseline_runs, 0, MAX_RUNS,
		 .help = "runs of the baseline"},
		{"csv", OPTION_TEXT, &settings->csv_path,
		 .help = "every run's figures to this file"},
		{0},
	};

	options_parse(argc, argv, "Does a crowd of a million stall the wheel?", options);
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.plan = {.count = 1000000,
			 .interval = MILLISECOND,
			 .slots = 64,
			 .calm = 2 * NANOSECONDS_PER_SECOND,
			 .workers = 2,
			 .seed = 1},
		.runs = 5,
		.baseline_runs = 3,
	};
	struct csv csv;

	parse(argc, argv, &settings);
	while (settings.plan.slots & (settings.plan.slots - 1))
		settings.plan.slots += settings.plan.slots & -settings.plan.slots;
	csv = csv_open(settings.csv_path, "contender,storm,run,measure,value");
	print_head(&settings);
	for (enum storm storm = 0; storm < STORM_COUNT; storm++) {
		if (settings.only == 0 || settings.only == (int)storm + 1)
			run_storm(&settings, storm, csv);
	}
	csv_close(csv);
	return 0;
}
