/* SPDX-License-Identifier: MIT */
/* The line is a ball between two threads: a volley is a round trip, a rally many volleys. */
#include "cores.h"

#include "process.h"
#include "stopwatch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define VOLLEYS 200
#define RALLIES 20

cpu_set_t cores_all(void)
{
	cpu_set_t cores;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		process_fail("the system doesn't report its cores");
	return cores;
}

void cores_stay_on(const cpu_set_t *cores, size_t number)
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
	_Alignas(64) _Atomic uint32_t ball;
	const cpu_set_t *cores;
};

static void court_await(struct court *court, uint32_t stroke)
{
	/* acquire: pairs with the release in court_hit(); nothing else is published */
	for (int spins = 1; atomic_load_explicit(&court->ball, memory_order_acquire) != stroke;
	     spins++) {
		/* Both threads may be on one core. */
		if (spins % 1024 == 0)
			sched_yield();
	}
}

static void court_hit(struct court *court, uint32_t stroke)
{
	/* release: pairs with the acquire in court_await() */
	atomic_store_explicit(&court->ball, stroke, memory_order_release);
}

static void *court_return(void *argument)
{
	struct court *court = argument;

	cores_stay_on(court->cores, 1);
	for (uint32_t volley = 0; volley < RALLIES * VOLLEYS; volley++) {
		court_await(court, 2 * volley + 1);
		court_hit(court, 2 * volley + 2);
	}
	return NULL;
}

/* Returns the time of a volley in the best of a few rallies: others may have been disturbed. */
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

double cores_measure_trip(const cpu_set_t *cores)
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
