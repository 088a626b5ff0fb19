/* SPDX-License-Identifier: MIT */
/*
 * A command carries its producer's number, its place in that producer's order, and a payload that
 * follows from both. The consumer checks the order as it reads, and the sum of the payloads at the
 * end.
 */
#include "queue_trial.h"

#include "cores.h"
#include "generator.h"
#include "pace.h"
#include "percentiles.h"
#include "process.h"
#include "stopwatch.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

#define PACE 1000 /* nanoseconds from one command to the next */
#define PAUSE 3000
#define NAP 50000
#define FAR 150 /* the least nanoseconds of a line's round trip between far cores */

struct producer {
	pthread_t thread;
	const struct queue_plan *plan;
	void *queue;
	pthread_barrier_t *start;
	const cpu_set_t *cores;
	uint32_t number;
	struct percentiles *calls; /* in a paced run */
	uint64_t retries;
};

/* The tally is what the consumer has read. */
struct tally {
	size_t commands;
	uint64_t sequences[QUEUE_PRODUCERS]; /* the next of each producer */
	uint64_t sum;
};

/* --- Producers -------------------------------------------------------------------------------- */

static uint64_t payload_of(uint32_t producer, uint64_t sequence)
{
	return scramble(sequence * QUEUE_PRODUCERS + producer);
}

static void producer_push(struct producer *producer, uint64_t sequence)
{
	const struct command command = {
		.hash = producer->number,
		.time = (tw_duration)sequence,
		.timer = (void *)(uintptr_t)payload_of(producer->number, sequence),
	};

	producer->plan->design->push(producer->queue, &command);
}

static void producer_push_all(struct producer *producer)
{
	for (uint64_t sequence = 0; sequence < producer->plan->count; sequence++)
		producer_push(producer, sequence);
}

static void producer_push_paced(struct producer *producer)
{
	struct pace pace = pace_start(PACE);

	for (uint64_t sequence = 0; sequence < producer->plan->count; sequence++) {
		int64_t start = pace_await(&pace);

		producer_push(producer, sequence);
		percentiles_record(producer->calls, pace_took(&pace, start));
	}
}

static void *producer_run(void *argument)
{
	struct producer *producer = argument;

	cores_stay_on(producer->cores, producer->number + 1);
	pthread_barrier_wait(producer->start);
	if (producer->plan->setting->is_paced)
		producer_push_paced(producer);
	else
		producer_push_all(producer);
	if (producer->plan->design->retries)
		producer->retries = producer->plan->design->retries();
	return NULL;
}

static struct producer *producers_start(const struct queue_plan *plan, void *queue,
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

/* Returns their retries. */
static uint64_t producers_join(struct producer *producers, size_t count, struct percentiles *calls)
{
	uint64_t retries = 0;

	for (size_t i = 0; i < count; i++) {
		pthread_join(producers[i].thread, NULL);
		percentiles_merge(calls, producers[i].calls);
		percentiles_destroy(producers[i].calls);
		retries += producers[i].retries;
	}
	free(producers);
	return retries;
}

/* --- The consumer ----------------------------------------------------------------------------- */

static void consumer_pause(void)
{
	int64_t end = stopwatch_now() + PAUSE;

	while (stopwatch_now() < end)
		;
}

static void consumer_rest(enum queue_rest rest)
{
	if (rest == REST_PAUSE)
		consumer_pause();
	else if (rest == REST_NAP)
		stopwatch_sleep(NAP);
}

static void tally_add(struct tally *tally, const struct command *command)
{
	if (command->hash >= QUEUE_PRODUCERS ||
	    (uint64_t)command->time != tally->sequences[command->hash])
		process_fail("a command is lost, doubled or out of order");
	tally->sequences[command->hash]++;
	tally->sum += (uintptr_t)command->timer;
	tally->commands++;
}

static void consume(const struct queue_plan *plan, void *queue, struct tally *tally)
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

static void tally_check(const struct tally *tally, const struct queue_plan *plan)
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

static void run_queue(const struct queue_plan *plan, const cpu_set_t *cores,
		      struct percentiles *calls, struct queue_result *result)
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
	/* This comes before the barrier, after which the producers may run first. */
	start = stopwatch_now();
	pthread_barrier_wait(&barrier);
	consume(plan, queue, &tally);
	result->values[MEASURE_COMMAND] =
		(double)(stopwatch_now() - start) / (double)tally.commands;
	result->values[MEASURE_RETRIES] =
		(double)producers_join(producers, producer_count, calls) / (double)tally.commands;
	tally_check(&tally, plan);
	plan->design->destroy(queue);
	pthread_barrier_destroy(&barrier);
}

static enum queue_distance distance_of(double trip_before, double trip_after)
{
	if ((trip_before < FAR) != (trip_after < FAR))
		return DISTANCE_UNSETTLED;
	return trip_before < FAR ? DISTANCE_NEAR : DISTANCE_FAR;
}

void queue_trial_run(const void *argument, void *shared)
{
	struct percentiles *calls = percentiles_create();
	struct queue_result *result = shared;
	cpu_set_t cores = cores_all();

	cores_stay_on(&cores, 0);
	result->values[MEASURE_TRIP] = cores_measure_trip(&cores);
	run_queue(argument, &cores, calls, result);
	result->distance = distance_of(result->values[MEASURE_TRIP], cores_measure_trip(&cores));
	result->values[MEASURE_P50] = (double)percentiles_at(calls, 50);
	result->values[MEASURE_P99] = (double)percentiles_at(calls, 99);
	result->values[MEASURE_P999] = (double)percentiles_at(calls, 99.9);
	percentiles_destroy(calls);
}
