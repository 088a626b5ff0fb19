/* SPDX-License-Identifier: MIT */
/*
 * How precise are timers, and what does precision cost?
 *
 * Wheels with ticks of 1 ms to 10 us hold a million timers by handle that are due in an hour. Each
 * is first left alone. Then one thread sets timers of 1 to 10 ms by handle, 10,000 a second and
 * 100,000 a second: it sleeps until the next set is due, and catches up when it is late. Each task
 * records its lateness after the deadline that the setter meant. Processor time and context
 * switches are those of the process without the setter; the time of a set has a column of its own.
 * The setter does not spin: on two cores it would take one from the measured threads.
 *
 * The baseline has no tick and no pool: one thread sleeps until a timerfd rings for the earliest
 * deadline of a binary heap, and runs what is due itself. Every run is a process of its own, and
 * fails unless each timer has run exactly once and none early.
 */
#include "support/csv.h"
#include "support/expect.h"
#include "support/figures.h"
#include "support/format.h"
#include "support/generator.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/stopwatch.h"
#include "support/timerfd_timers.h"

#include <timingwheel/timingwheel.h>

#include <inttypes.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { SLOTS = 512, PHASES_MOST = 3, CONTENDERS_MOST = 5 };

/* The first IDLE_MEASURES are also those of an idle wheel. */
enum measure { CPU, SWITCHES, LATE_P50, LATE_P99, LATE_MAX, CALL_P50, REACHED, MEASURES };

enum { IDLE_MEASURES = LATE_P50 };

static const struct {
	const char *name; /* in CSV files */
	const char *title;
	int decimals;
} measures[MEASURES] = {
	[CPU] = {"cpu_percent", "% of a core", 3},
	[SWITCHES] = {"switches_per_second", "switches/s", 0},
	[LATE_P50] = {"lateness_p50_us", "late us, p50", 1},
	[LATE_P99] = {"lateness_p99_us", "p99", 1},
	[LATE_MAX] = {"lateness_max_us", "max", 1},
	[CALL_P50] = {"call_p50_ns", "set ns, p50", 0},
	[REACHED] = {"reached_per_second", "sets/s", 0},
};

/* A run's figures are all doubles. */
struct result {
	double phases[PHASES_MOST][MEASURES];
};

struct plan {
	int64_t interval; /* the run's; the baseline has 0 */
	int64_t resident;
	int64_t idle;
	int64_t duration;
	int64_t rates[PHASES_MOST]; /* timers a second in each phase, 0 when idle */
	int phases;
	int64_t intervals[CONTENDERS_MOST];
	int contenders;
	uint64_t seed;
};

struct timer {
	struct trial *trial;
	int64_t deadline; /* the one that the setter meant, on the stopwatch */
	int64_t lateness; /* nanoseconds, in its last run */
	atomic_int runs;
};

struct trial {
	/* Constant while timers run. */
	const struct plan *plan;
	struct timer *timers;
	size_t count; /* timers in all phases */
	struct tw_wheel *wheel;
	struct timerfd_timers *baseline; /* NULL if the trial is the wheel's */
	/* Only the setter uses this. */
	struct generator generator;
	/* Any thread may write this, on its own cache line: timers left in this phase. */
	_Alignas(64) atomic_size_t left;
	sem_t all_ran; /* posted when `left` becomes 0 */
};

/* --- Timers ----------------------------------------------------------------------------------- */

static void timer_run(void *argument)
{
	struct timer *timer = argument;

	timer->lateness = stopwatch_now() - timer->deadline;
	/* relaxed: read when all threads have ended */
	atomic_fetch_add_explicit(&timer->runs, 1, memory_order_relaxed);
	/* acq_rel: the last run has the lateness of all, and publishes it with the semaphore */
	if (atomic_fetch_sub_explicit(&timer->trial->left, 1, memory_order_acq_rel) == 1)
		sem_post(&timer->trial->all_ran);
}

static void baseline_run(void *argument, size_t i)
{
	struct trial *trial = argument;

	timer_run(&trial->timers[i]);
}

static void resident_run(void *argument)
{
	(void)argument;
	process_fail("a timer ran that was not due");
}

static void trial_open(struct trial *trial)
{
	const struct tw_options options = {.max_workers = 2};
	size_t resident = (size_t)trial->plan->resident;

	if (trial->plan->interval == 0)
		trial->baseline =
			timerfd_timers_create(trial->count + resident, baseline_run, trial);
	else
		expect_ok(tw_create(&trial->wheel, trial->plan->interval, SLOTS, NULL, &options),
			  "tw_create");
	for (size_t i = 0; i < resident; i++) {
		int64_t delay = generator_range(&trial->generator, TW_HOUR, 2 * TW_HOUR);

		if (trial->baseline)
			timerfd_timers_set(trial->baseline, trial->count + i,
					   stopwatch_now() + delay);
		else
			expect_ok(tw_after_func(trial->wheel, delay, resident_run, NULL, NULL),
				  "tw_after_func");
	}
	/* The wheel now does the work that it deferred while timers were set. */
	stopwatch_sleep(NANOSECONDS_PER_SECOND);
}

static void trial_set(struct trial *trial, size_t i, int64_t delay)
{
	if (trial->baseline)
		timerfd_timers_set(trial->baseline, i, trial->timers[i].deadline);
	else
		expect_ok(tw_after_func(trial->wheel, delay, timer_run, &trial->timers[i], NULL),
			  "tw_after_func");
}

static void trial_close(struct trial *trial)
{
	if (trial->baseline)
		timerfd_timers_destroy(trial->baseline);
	tw_destroy(trial->wheel);
	for (size_t i = 0; i < trial->count; i++) {
		/* relaxed: all threads have ended */
		int runs = atomic_load_explicit(&trial->timers[i].runs, memory_order_relaxed);

		if (runs != 1)
			process_fail("a timer ran %d times", runs);
	}
}

/* --- One run ---------------------------------------------------------------------------------- */

static size_t timers_in(const struct plan *plan, int phase)
{
	return (size_t)((double)plan->rates[phase] * seconds_of(plan->duration));
}

static void set_timers(struct trial *trial, size_t first, size_t count, struct percentiles *calls)
{
	double step = (double)trial->plan->duration / (double)count;
	int64_t overhead = stopwatch_overhead(), start = stopwatch_now();

	for (size_t i = 0; i < count; i++) {
		int64_t delay =
			generator_range(&trial->generator, TW_MILLISECOND, 10 * TW_MILLISECOND);
		int64_t now;

		stopwatch_sleep(start + (int64_t)((double)i * step) - stopwatch_now());
		now = stopwatch_now();
		trial->timers[first + i].deadline = now + delay;
		trial_set(trial, first + i, delay);
		percentiles_record(calls, stopwatch_now() - now - overhead);
	}
}

/* Waits at most 10 s. */
static void wait_until_all_ran(struct trial *trial)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	if (sem_timedwait(&trial->all_ran, &until) != 0)
		process_fail("not all timers have run");
}

static void run_load(struct trial *trial, size_t first, size_t count, double result[MEASURES])
{
	struct percentiles *calls = percentiles_create(), *lateness = percentiles_create();
	int64_t start = stopwatch_now();

	/* relaxed: runs come after a set, which publishes it */
	atomic_store_explicit(&trial->left, count, memory_order_relaxed);
	set_timers(trial, first, count, calls);
	result[REACHED] = (double)count / seconds_of(stopwatch_now() - start);
	wait_until_all_ran(trial);
	for (size_t i = first; i < first + count; i++)
		percentiles_record(lateness, trial->timers[i].lateness);
	if (percentiles_least(lateness) < 0)
		process_fail("a timer ran early");
	result[LATE_P50] = (double)percentiles_at(lateness, 50) / 1000;
	result[LATE_P99] = (double)percentiles_at(lateness, 99) / 1000;
	result[LATE_MAX] = (double)percentiles_most(lateness) / 1000;
	result[CALL_P50] = (double)percentiles_at(calls, 50);
	percentiles_destroy(calls);
	percentiles_destroy(lateness);
}

static void run_phase(struct trial *trial, size_t first, size_t count, double result[MEASURES])
{
	int64_t start = stopwatch_now(), switches = process_switches_of_others();
	int64_t cpu = stopwatch_process_cpu() - stopwatch_thread_cpu();

	if (count > 0)
		run_load(trial, first, count, result);
	else
		stopwatch_sleep(trial->plan->idle);
	cpu = stopwatch_process_cpu() - stopwatch_thread_cpu() - cpu;
	switches = process_switches_of_others() - switches;
	/* The two clocks are read at slightly different times. */
	cpu = cpu > 0 ? cpu : 0;
	result[CPU] = 100.0 * (double)cpu / (double)(stopwatch_now() - start);
	result[SWITCHES] = (double)switches / seconds_of(stopwatch_now() - start);
}

static void run_trial(const void *argument, void *memory)
{
	const struct plan *plan = argument;
	struct result *result = memory;
	struct trial trial = {.plan = plan, .generator = {plan->seed}};
	size_t first = 0;

	for (int phase = 0; phase < plan->phases; phase++)
		trial.count += timers_in(plan, phase);
	trial.timers = process_allocate(trial.count * sizeof(*trial.timers));
	for (size_t i = 0; i < trial.count; i++)
		trial.timers[i].trial = &trial;
	sem_init(&trial.all_ran, 0, 0);
	trial_open(&trial);
	/* The setter's sleeps end on time; older threads keep their slack. */
	prctl(PR_SET_TIMERSLACK, 1);
	for (int phase = 0; phase < plan->phases; phase++) {
		run_phase(&trial, first, timers_in(plan, phase), result->phases[phase]);
		first += timers_in(plan, phase);
	}
	trial_close(&trial);
	sem_destroy(&trial.all_ran);
	free(trial.timers);
}

/* --- All runs --------------------------------------------------------------------------------- */

static int measures_in(const struct plan *plan, int phase)
{
	return plan->rates[phase] > 0 ? MEASURES : IDLE_MEASURES;
}

static void write_run(const struct plan *plan, int run, const struct result *result, struct csv csv)
{
	for (int phase = 0; phase < plan->phases; phase++) {
		for (int i = 0; i < measures_in(plan, phase); i++)
			csv_row(csv, "%s,%" PRId64 ",%" PRId64 ",%d,%s,%.4f",
				plan->interval > 0 ? "timingwheel" : "timerfd", plan->interval,
				plan->rates[phase], run + 1, measures[i].name,
				result->phases[phase][i]);
	}
}

static struct text title_of(int64_t interval)
{
	struct text title = {"bare timerfd"};

	if (interval > 0)
		snprintf(title.characters, sizeof(title.characters), "tick %.32s",
			 format_duration(interval).characters);
	return title;
}

/* The contenders take turns, so that a noisy time affects all. */
static void run_all(struct plan plan, int runs, struct csv csv,
		    struct figures *const contenders[CONTENDERS_MOST])
{
	struct progress progress = progress_start(stderr, false);
	struct result result;

	for (int run = 0; run < runs; run++, plan.seed++) {
		for (int i = 0; i < plan.contenders; i++) {
			plan.interval = plan.intervals[i];
			progress_show(&progress, "%s: run %d of %d",
				      title_of(plan.interval).characters, run + 1, runs);
			figures_run(contenders[i], run_trial, &plan, &result, sizeof(result));
			write_run(&plan, run, &result, csv);
		}
	}
	progress_wipe(&progress);
}

static void print_phase(const struct plan *plan, int phase,
			struct figures *const contenders[CONTENDERS_MOST])
{
	struct text rate = format_count(plan->rates[phase]);

	printf("\n%10s %-15s", plan->rates[phase] > 0 ? rate.characters : "idle",
	       plan->rates[phase] > 0 ? "timers a second" : "");
	for (int i = 0; i < measures_in(plan, phase); i++)
		printf(" %12s", measures[i].title);
	for (int contender = 0; contender < plan->contenders; contender++) {
		printf("\n%-26s", title_of(plan->intervals[contender]).characters);
		for (int i = 0; i < measures_in(plan, phase); i++)
			printf(" %12.*f", measures[i].decimals,
			       figures_median(contenders[contender],
					      FIGURE(struct result, phases[phase][i])));
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct plan plan = {
		.resident = 1000000,
		.idle = 3 * NANOSECONDS_PER_SECOND,
		.duration = 3 * NANOSECONDS_PER_SECOND,
		.rates = {0, 10000, 100000},
		.phases = PHASES_MOST,
		.intervals = {TW_MILLISECOND, 100 * TW_MICROSECOND, 50 * TW_MICROSECOND,
			      10 * TW_MICROSECOND, 0},
		.contenders = CONTENDERS_MOST,
		.seed = 1,
	};
	struct figures *contenders[CONTENDERS_MOST];
	const char *csv_path = NULL;
	int64_t runs = 3, interval = 0, rate = 0;
	const struct program_option options[] = {
		{"interval", OPTION_DURATION, &interval, 1000, TW_MINUTE, .help = "one tick alone"},
		{"rate", OPTION_COUNT, &rate, 1000, 1000000, .help = "one rate alone"},
		{"resident", OPTION_COUNT, &plan.resident, 0, 100000000, .help = "idle timers"},
		{"idle", OPTION_SECONDS, &plan.idle, TW_MILLISECOND, TW_MINUTE,
		 .help = "how long to leave them alone"},
		{"duration", OPTION_SECONDS, &plan.duration, 10 * TW_MILLISECOND, TW_MINUTE,
		 .help = "how long to set timers, at each rate"},
		FIGURES_OPTIONS(&runs, 1, &csv_path),
		{0},
	};
	struct csv csv;

	options_parse(argc, argv, "How precise are timers, and what does precision cost?", options);
	csv = csv_open(csv_path, "contender,interval_ns,rate,run,measure,value");
	if (interval > 0) {
		plan.intervals[0] = interval;
		plan.intervals[1] = 0;
		plan.contenders = 2;
	}
	if (rate > 0) {
		plan.rates[1] = rate;
		plan.phases = 2;
	}
	for (int i = 0; i < plan.contenders; i++)
		contenders[i] = figures_create(NULL);
	printf("%s\n%s timers an hour away, %d slots; medians of %" PRId64 " runs\n",
	       machine_description(), format_count(plan.resident).characters, SLOTS, runs);
	run_all(plan, (int)runs, csv, contenders);
	for (int phase = 0; phase < plan.phases; phase++)
		print_phase(&plan, phase, contenders);
	for (int i = 0; i < plan.contenders; i++)
		figures_destroy(contenders[i]);
	csv_close(csv);
	return 0;
}
