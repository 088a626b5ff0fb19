/* SPDX-License-Identifier: MIT */
/*
 * Which queue of many producers and one consumer should carry the commands?
 *
 * Producers push commands as fast as they can, and a run ends when the consumer has read all of
 * them. It reads batches, and checks of each command that it comes in its producer's order, and of
 * all together a sum of their payloads. After a batch that came up short it polls on, pauses for a
 * few microseconds, or naps as the owner does. Then one producer pushes a million a second, and what
 * its calls take is sampled. Every run is a process of its own, and the queues take turns, so that
 * what disturbs the machine disturbs all alike.
 *
 * How far apart the cores are decides most of it, and a virtual machine's cores may move. So threads
 * stay on their cores, the consumer on the first, the producers from the second on, round and round;
 * each run measures how long a cache line takes from the first core to the second and back, before
 * and after; and near and far runs have tables of their own.
 *
 * The designs are in support/queue_designs.c; the baseline is a mutex.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/generator.h"
#include "support/percentiles.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/progress.h"
#include "support/queue_designs.h"
#include "support/spread.h"
#include "support/stopwatch.h"
#include "thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_RUNS 99
#define MAX_DESIGNS 16
#define ATTEMPTS 5 /* at a run in which the cores don't move */
#define PACED_COMMANDS 200000
#define PACE 1000 /* nanoseconds from one command to the next */
#define PAUSE 3000
#define NAP 50000
#define FAR 150 /* nanoseconds that a line's round trip takes at least between far cores */
#define VOLLEYS 200
#define RALLIES 20

enum rest { REST_NONE, REST_PAUSE, REST_NAP };

struct setting {
	const char *name; /* in the CSV file */
	enum rest rest;   /* of the consumer, after a batch that came up short */
	size_t producers;
	bool is_paced;
};

/* Three and three make a table. */
enum { SETTINGS_A_TABLE = 3, TABLES = 3, PACED = TABLES * SETTINGS_A_TABLE, SETTINGS };

static const struct setting settings[SETTINGS] = {
	{"polls_1", REST_NONE, 1, false},   {"polls_2", REST_NONE, 2, false},
	{"polls_4", REST_NONE, 4, false},   {"pauses_1", REST_PAUSE, 1, false},
	{"pauses_2", REST_PAUSE, 2, false}, {"pauses_4", REST_PAUSE, 4, false},
	{"naps_1", REST_NAP, 1, false},     {"naps_2", REST_NAP, 2, false},
	{"naps_4", REST_NAP, 4, false},     [PACED] = {"paced", REST_NAP, 1, true},
};

/* All in nanoseconds; of the calls only in the paced setting. */
enum measure { MEASURE_COMMAND, MEASURE_P50, MEASURE_P99, MEASURE_P999, MEASURE_TRIP, MEASURES };

static const char *const measure_names[MEASURES] = {"ns_per_command", "call_p50_ns", "call_p99_ns",
						    "call_p999_ns", "line_round_trip_ns"};

enum distance { DISTANCE_NEAR, DISTANCE_FAR, DISTANCE_UNSETTLED };

struct result {
	double values[MEASURES];
	enum distance distance;
};

struct plan {
	const struct queue_design *design;
	const struct setting *setting;
	size_t capacity;
	size_t count; /* commands of each producer; a multiple of the group */
};

struct producer {
	pthread_t thread;
	const struct plan *plan;
	void *queue;
	pthread_barrier_t *start;
	const cpu_set_t *cores;
	uint32_t number;
	struct percentiles *calls; /* of a paced one */
};

/* What the consumer has seen. */
struct tally {
	size_t commands;
	uint64_t sequences[QUEUE_PRODUCERS]; /* the next of each producer */
	uint64_t sum;
};

/* --- How far apart the cores are -------------------------------------------------------------- */

/* Those that the process may use. */
static cpu_set_t all_cores(void)
{
	cpu_set_t cores;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		process_fail("the system doesn't tell its cores");
	return cores;
}

/* The calling thread, and those that it starts, on one core; counting begins again after the last. */
static void stay_on_core(const cpu_set_t *cores, size_t number)
{
	size_t passed = number % (size_t)CPU_COUNT(cores);
	cpu_set_t own;
	int core = 0;

	while (!CPU_ISSET(core, cores) || passed-- > 0)
		core++;
	CPU_ZERO(&own);
	CPU_SET(core, &own);
	sched_setaffinity(0, sizeof(own), &own);
}

struct court {
	_Alignas(CACHE_LINE) _Atomic uint32_t ball;
	const cpu_set_t *cores;
};

static void court_await(struct court *court, uint32_t stroke)
{
	/* acquire: pairs with the release in court_hit(); nothing else is published. */
	for (int spins = 1; atomic_load_explicit(&court->ball, memory_order_acquire) != stroke;
	     spins++) {
		/* Both threads may be on one core. */
		if (spins % 1024 == 0)
			sched_yield();
	}
}

static void court_hit(struct court *court, uint32_t stroke)
{
	/* release: pairs with the acquire in court_await(). */
	atomic_store_explicit(&court->ball, stroke, memory_order_release);
}

static void *court_return(void *argument)
{
	struct court *court = argument;

	stay_on_core(court->cores, 1);
	for (uint32_t volley = 0; volley < RALLIES * VOLLEYS; volley++) {
		court_await(court, 2 * volley + 1);
		court_hit(court, 2 * volley + 2);
	}
	return NULL;
}

/* What a volley took in the best of a few rallies: the others may have been disturbed. */
static double court_play(struct court *court)
{
	double least = 1e9;

	for (uint32_t rally = 0; rally < RALLIES; rally++) {
		int64_t start = stopwatch_now();
		double trip;

		for (uint32_t i = rally * VOLLEYS; i < (rally + 1) * VOLLEYS; i++) {
			court_hit(court, 2 * i + 1);
			court_await(court, 2 * i + 2);
		}
		trip = (double)(stopwatch_now() - start) / VOLLEYS;
		least = trip < least ? trip : least;
	}
	return least;
}

/* From the caller's core, the first, to the second and back. */
static double measure_trip(const cpu_set_t *cores)
{
	struct court court = {.cores = cores};
	pthread_t partner;
	double trip;

	if (pthread_create(&partner, NULL, court_return, &court) != 0)
		process_fail("a thread could not be started");
	trip = court_play(&court);
	pthread_join(partner, NULL);
	return trip;
}

static enum distance distance_of(double trip_before, double trip_after)
{
	if ((trip_before < FAR) != (trip_after < FAR))
		return DISTANCE_UNSETTLED;
	return trip_before < FAR ? DISTANCE_NEAR : DISTANCE_FAR;
}

/* --- Producers -------------------------------------------------------------------------------- */

static uint64_t payload_of(uint32_t producer, uint64_t sequence)
{
	return scramble(sequence * QUEUE_PRODUCERS + producer);
}

static void producer_push(struct producer *producer, struct command *commands, uint64_t sequence)
{
	const struct queue_design *design = producer->plan->design;

	for (size_t i = 0; i < design->group; i++) {
		uint64_t payload = payload_of(producer->number, sequence + i);

		commands[i].hash = producer->number;
		commands[i].expiry = sequence + i;
		commands[i].timer = (void *)(uintptr_t)payload;
	}
	design->push(producer->queue, commands, design->group);
}

static void producer_push_all(struct producer *producer)
{
	struct command commands[QUEUE_GROUP] = {0};
	size_t group = producer->plan->design->group;

	for (uint64_t sequence = 0; sequence < producer->plan->count; sequence += group)
		producer_push(producer, commands, sequence);
}

static void producer_push_paced(struct producer *producer)
{
	struct command commands[QUEUE_GROUP] = {0};
	size_t group = producer->plan->design->group;
	int64_t overhead = stopwatch_overhead(), due = stopwatch_now();

	for (uint64_t sequence = 0; sequence < producer->plan->count; sequence += group) {
		int64_t start;

		for (due += (int64_t)group * PACE; (start = stopwatch_now()) < due;)
			;
		producer_push(producer, commands, sequence);
		percentiles_record(producer->calls, stopwatch_now() - start - overhead);
	}
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	stay_on_core(producer->cores, producer->number + 1);
	pthread_barrier_wait(producer->start);
	if (producer->plan->setting->is_paced)
		producer_push_paced(producer);
	else
		producer_push_all(producer);
	return NULL;
}

static struct producer *producers_start(const struct plan *plan, void *queue,
					const cpu_set_t *cores, pthread_barrier_t *start)
{
	size_t count = plan->setting->producers;
	struct producer *producers = process_allocate(count * sizeof(*producers));

	for (size_t i = 0; i < count; i++) {
		producers[i] = (struct producer){.plan = plan,
						 .queue = queue,
						 .start = start,
						 .cores = cores,
						 .number = (uint32_t)i,
						 .calls = percentiles_create()};
		if (pthread_create(&producers[i].thread, NULL, producer_run, &producers[i]) != 0)
			process_fail("a producer could not be started");
	}
	return producers;
}

static void producers_join(struct producer *producers, size_t count, struct percentiles *calls)
{
	for (size_t i = 0; i < count; i++) {
		pthread_join(producers[i].thread, NULL);
		percentiles_merge(calls, producers[i].calls);
		percentiles_destroy(producers[i].calls);
	}
	free(producers);
}

/* --- The consumer ----------------------------------------------------------------------------- */

static void consumer_pause(void)
{
	int64_t end = stopwatch_now() + PAUSE;

	while (stopwatch_now() < end)
		;
}

static void consumer_rest(enum rest rest)
{
	if (rest == REST_PAUSE)
		consumer_pause();
	else if (rest == REST_NAP)
		stopwatch_sleep(NAP);
}

static void tally_add(struct tally *tally, const struct command *command)
{
	if (command->hash >= QUEUE_PRODUCERS || command->expiry != tally->sequences[command->hash])
		process_fail("a command is lost, doubled or out of order");
	tally->sequences[command->hash]++;
	tally->sum += (uintptr_t)command->timer;
	tally->commands++;
}

static void consume(const struct plan *plan, void *queue, struct tally *tally)
{
	const struct command *commands[QUEUE_BATCH];
	size_t all = plan->count * plan->setting->producers;

	while (tally->commands < all) {
		size_t count = plan->design->peek(queue, commands);

		for (size_t i = 0; i < count; i++)
			tally_add(tally, commands[i]);
		if (count > 0)
			plan->design->pop(queue, count);
		if (count < QUEUE_BATCH && tally->commands < all)
			consumer_rest(plan->setting->rest);
	}
}

static void tally_check(const struct tally *tally, const struct plan *plan)
{
	uint64_t sum = 0;

	for (uint32_t producer = 0; producer < plan->setting->producers; producer++) {
		for (uint64_t sequence = 0; sequence < plan->count; sequence++)
			sum += payload_of(producer, sequence);
	}
	if (sum != tally->sum)
		process_fail("%s: the commands are not those that were pushed", plan->design->name);
}

/* --- One run ---------------------------------------------------------------------------------- */

static void run_queue(const struct plan *plan, const cpu_set_t *cores, struct percentiles *calls,
		      struct result *result)
{
	size_t producer_count = plan->setting->producers;
	void *queue = plan->design->create(plan->capacity, producer_count);
	struct tally tally = {0};
	struct producer *producers;
	pthread_barrier_t barrier;
	int64_t start;

	pthread_barrier_init(&barrier, NULL, (unsigned)producer_count + 1);
	producers = producers_start(plan, queue, cores, &barrier);
	thread_be_prompt();
	/* Before the barrier: after it the producers may run and this thread may not. */
	start = stopwatch_now();
	pthread_barrier_wait(&barrier);
	consume(plan, queue, &tally);
	result->values[MEASURE_COMMAND] =
		(double)(stopwatch_now() - start) / (double)tally.commands;
	producers_join(producers, producer_count, calls);
	tally_check(&tally, plan);
	plan->design->destroy(queue);
	pthread_barrier_destroy(&barrier);
}

static void run_trial(const void *argument, void *shared)
{
	struct percentiles *calls = percentiles_create();
	struct result *result = shared;
	cpu_set_t cores = all_cores();

	stay_on_core(&cores, 0);
	result->values[MEASURE_TRIP] = measure_trip(&cores);
	run_queue(argument, &cores, calls, result);
	result->distance = distance_of(result->values[MEASURE_TRIP], measure_trip(&cores));
	result->values[MEASURE_P50] = (double)percentiles_at(calls, 50);
	result->values[MEASURE_P99] = (double)percentiles_at(calls, 99);
	result->values[MEASURE_P999] = (double)percentiles_at(calls, 99.9);
	percentiles_destroy(calls);
}

/* --- All runs --------------------------------------------------------------------------------- */

struct options {
	int64_t count;
	int64_t runs;
	int64_t capacity;
	const char *csv_path;
};

/* Every run of every design in every setting. */
static struct result results[MAX_DESIGNS][SETTINGS][MAX_RUNS];

static struct plan plan_of(const struct options *options, const struct queue_design *design,
			   const struct setting *setting)
{
	size_t all = setting->is_paced ? PACED_COMMANDS : (size_t)options->count;
	size_t each = all / setting->producers;

	return (struct plan){.design = design,
			     .setting = setting,
			     .capacity = (size_t)options->capacity,
			     .count = each - each % QUEUE_GROUP};
}

static bool is_measured(const struct setting *setting, enum measure measure)
{
	return measure == MEASURE_TRIP || (measure == MEASURE_COMMAND) != setting->is_paced;
}

static void write_run(struct csv csv, const struct plan *plan, int run, const struct result *result)
{
	static const char *const distances[] = {"near", "far", "unsettled"};

	for (enum measure i = 0; i < MEASURES; i++) {
		if (is_measured(plan->setting, i))
			csv_row(csv, "%s,%s,%s,%d,%s,%.1f", plan->design->name, plan->setting->name,
				distances[result->distance], run + 1, measure_names[i],
				result->values[i]);
	}
}

static struct result run_settled(const struct plan *plan)
{
	struct result result = {.distance = DISTANCE_UNSETTLED};

	for (int i = 0; i < ATTEMPTS && result.distance == DISTANCE_UNSETTLED; i++) {
		if (!process_run_trial(run_trial, plan, &result, sizeof(result)))
			exit(1);
	}
	return result;
}

static size_t count_designs(void)
{
	size_t count = 0;

	while (queue_designs[count].name)
		count++;
	return count;
}

/* Each run begins with another design: the first of a row may find the machine in another state. */
static void run_designs(const struct options *options, const struct setting *setting, int run,
			struct csv csv)
{
	size_t count = count_designs();

	for (size_t i = 0; i < count; i++) {
		size_t design = (i + (size_t)run) % count;
		struct plan plan = plan_of(options, &queue_designs[design], setting);
		struct result *result = &results[design][setting - settings][run];

		*result = run_settled(&plan);
		write_run(csv, &plan, run, result);
	}
}

static void run_all(const struct options *options)
{
	struct csv csv = csv_open(options->csv_path, "design,setting,cores,run,measure,value");
	struct progress progress = progress_start(stderr, false);

	for (int run = 0; run < (int)options->runs; run++) {
		for (size_t i = 0; i < SETTINGS; i++) {
			if (progress_is_due(&progress))
				progress_show(&progress, "run %d of %" PRId64 ": %s", run + 1,
					      options->runs, settings[i].name);
			run_designs(options, &settings[i], run, csv);
		}
	}
	progress_wipe(&progress);
	csv_close(csv);
}

/* --- The tables ------------------------------------------------------------------------------- */

/* What the tables are about. */
struct selection {
	int64_t runs;
	enum distance distance;
};

/* Over the runs at the selection's distance. False: there was none. */
static bool spread_over_runs(const struct selection *selection, size_t design, size_t setting,
			     enum measure measure, struct spread *spread)
{
	double values[MAX_RUNS];
	size_t count = 0;

	for (int64_t run = 0; run < selection->runs; run++) {
		const struct result *result = &results[design][setting][run];

		if (result->distance == selection->distance)
			values[count++] = result->values[measure];
	}
	if (count > 0)
		*spread = spread_of(values, count);
	return count > 0;
}

static size_t baseline(void)
{
	return (size_t)(queue_baseline - queue_designs);
}

/* The baseline has runs in this setting. */
static void print_rate(const struct selection *selection, size_t design, size_t setting)
{
	struct spread own, other;

	if (!spread_over_runs(selection, design, setting, MEASURE_COMMAND, &own)) {
		printf(" %23s", "-");
		return;
	}
	(void)spread_over_runs(selection, baseline(), setting, MEASURE_COMMAND, &other);
	printf(" %4.0f (%3.0f to %4.0f) %4.1fx", own.median, own.least, own.most,
	       other.median / own.median);
}

/* A table without its baseline says nothing, and is left out. */
static bool has_baseline(const struct selection *selection, size_t first, size_t end)
{
	struct spread spread;

	for (size_t i = first; i < end; i++) {
		if (!spread_over_runs(selection, baseline(), i, MEASURE_TRIP, &spread))
			return false;
	}
	return true;
}

static void print_rates(const struct selection *selection, const char *title, size_t first)
{
	if (!has_baseline(selection, first, first + SETTINGS_A_TABLE))
		return;
	printf("\n%-27s %23s %23s %23s\n", title, "1 producer", "2 producers", "4 producers");
	for (size_t design = 0; queue_designs[design].name; design++) {
		printf("  %-25s", queue_designs[design].title);
		for (size_t i = first; i < first + SETTINGS_A_TABLE; i++)
			print_rate(selection, design, i);
		printf("\n");
	}
}

static void print_calls(const struct selection *selection)
{
	if (!has_baseline(selection, PACED, SETTINGS))
		return;
	printf("\n%-27s %23s %23s %23s\n", "caller's ns, 1 million/s", "p50", "p99", "p99.9");
	for (size_t design = 0; queue_designs[design].name; design++) {
		printf("  %-25s", queue_designs[design].title);
		for (enum measure i = MEASURE_P50; i <= MEASURE_P999; i++) {
			struct spread own;

			if (spread_over_runs(selection, design, PACED, i, &own))
				printf(" %6.0f (%4.0f to %6.0f)", own.median, own.least, own.most);
			else
				printf(" %23s", "-");
		}
		printf("\n");
	}
}

/* How many runs there were, and the median of their trips. */
static size_t count_runs(const struct selection *selection, double *trip)
{
	static double values[MAX_DESIGNS * SETTINGS * MAX_RUNS];
	const struct result *all = &results[0][0][0];
	size_t count = 0;

	for (size_t i = 0; i < sizeof(results) / sizeof(*all); i++) {
		const struct result *result = &all[i];

		if (result->values[MEASURE_TRIP] > 0 && result->distance == selection->distance)
			values[count++] = result->values[MEASURE_TRIP];
	}
	*trip = count > 0 ? spread_of(values, count).median : 0;
	return count;
}

static void print_tables(const struct selection *selection)
{
	const char *place = selection->distance == DISTANCE_NEAR ? "near" : "far";
	double trip;
	size_t count = count_runs(selection, &trip);

	if (count == 0)
		return;
	printf("\n== %s cores: a line's round trip takes %.0f ns; %zu runs, complete tables only ==\n",
	       place, trip, count);
	print_rates(selection, "ns a command, polling", 0);
	print_rates(selection, "ns a command, pausing", SETTINGS_A_TABLE);
	print_rates(selection, "ns a command, napping", 2 * SETTINGS_A_TABLE);
	print_calls(selection);
}

int main(int argc, char **argv)
{
	struct options options = {.count = 1000000, .runs = 5, .capacity = 8192};
	const struct program_option table[] = {
		{"count", OPTION_COUNT, &options.count, 1000, 1000000000, .help = "commands a run"},
		{"runs", OPTION_COUNT, &options.runs, 1, MAX_RUNS,
		 .help = "runs; medians are printed"},
		{"capacity", OPTION_COUNT, &options.capacity, 1024, 1 << 26,
		 .help = "commands that a queue holds, a power of two"},
		{"csv", OPTION_TEXT, &options.csv_path, .help = "every run's figures to this file"},
		{0},
	};

	options_parse(argc, argv, "Which queue should carry the commands?", table);
	if (options.capacity & (options.capacity - 1))
		options_refuse("--capacity=%" PRId64 ": not a power of two", options.capacity);
	printf("%s\n%s commands, capacity %s; medians of %" PRId64
	       " runs, least to most in brackets, x: as fast as the mutex\n",
	       machine_description(), format_count(options.count).characters,
	       format_count(options.capacity).characters, options.runs);
	run_all(&options);
	print_tables(&(struct selection){options.runs, DISTANCE_NEAR});
	print_tables(&(struct selection){options.runs, DISTANCE_FAR});
	return 0;
}
