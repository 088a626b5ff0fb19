/* SPDX-License-Identifier: MIT */
/*
 * This is the simulation's program: simulate SEED STEPS. It runs one case after the other, each
 * with a seed of its own, until STEPS steps are done. The first case has SEED itself, so that the
 * seed of a failed case and one step run that case alone again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <timingwheel/timingwheel.h>

#include "memory.h"
#include "scheduler.h"
#include "threads.h"
#include "world.h"

enum { PROGRESS_SECONDS = 10 };

static uint64_t case_seed;
static uint64_t passed;

static const struct world_kind {
	const char *name;
	sim_body *run;
	sim_idle *idle;
	void (*describe)(void);
} worlds[] = {
	{"wheel", wheel_world_run, wheel_world_idle, wheel_world_describe},
	{"cache", cache_world_run, cache_world_idle, cache_world_describe},
};

static const struct world_kind *world = worlds;
static struct sim_plan plan;

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t seed_mix(uint64_t seed)
{
	seed += 0x9e3779b97f4a7c15u;
	seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
	seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
	return seed ^ seed >> 31;
}

static uint64_t draw(uint64_t *state, uint64_t limit)
{
	*state = seed_mix(*state);
	return (*state >> 8) % limit;
}

/* Draws a rate in one case in `one_case_in`; returns 0 in the others. */
static unsigned draw_rate(uint64_t *state, unsigned one_case_in, unsigned least)
{
	if (draw(state, one_case_in) != 0)
		return 0;
	return least << draw(state, 6);
}

static void draw_plan(uint64_t *state)
{
	plan = (struct sim_plan){.points_most = 3000000};
	plan.seed = seed_mix(*state) | 1;
	plan.schedule = (enum sim_schedule)draw(state, 3);
	plan.run_length = 1u << draw(state, 9);
	plan.priority_changes = (unsigned)draw(state, 8);
	plan.length = 1000u << draw(state, 5);
	plan.time_passes = draw_rate(state, 2, 4);
	plan.time_step = (int64_t)1 << (6 + draw(state, 18));
	plan.weak_failures = draw_rate(state, 2, 2);
	plan.spurious_wakes = draw_rate(state, 4, 4);
	plan.memory_failures = draw_rate(state, 4, 4);
	plan.thread_failures = draw_rate(state, 6, 2);
	plan.branches = draw(state, 200) == 0 ? 500 : 0;
}

static void run_case(void)
{
	uint64_t state = case_seed;

	draw_plan(&state);
	world = &worlds[draw(&state, sizeof(worlds) / sizeof(worlds[0]))];
	sim_memory_begin(draw(&state, 2) == 0);
	sim_threads_begin();
	sim_run(&plan, world->run, NULL, world->idle);
	sim_threads_end();
	sim_memory_end();
	if (sim_is_branch())
		_exit(0);
	passed++;
}

static void report(void)
{
	static const char *const schedules[] = {"at random", "by priority", "with slow threads"};

	printf("   scheduled %s, a choice in %u points, %u changes of priority; faults, one in so "
	       "many: weak %u, wakes %u, memory %u, threads %u\n",
	       schedules[plan.schedule], plan.run_length, plan.priority_changes, plan.weak_failures,
	       plan.spurious_wakes, plan.memory_failures, plan.thread_failures);
	world->describe();
	printf("   in case %" PRIu64 ", of a %s, after %" PRIu64 " steps; again:\n", passed,
	       world->name, sim_points());
	printf("make sim SEED=%" PRIu64 " STEPS=1\n", case_seed);
	printf("%" PRIu64 " passed, 1 failed\n", passed);
	fflush(stdout);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_progress(double began, const char *end)
{
	printf("%" PRIu64 " cases, %" PRIu64 " steps, %.2f million a second%s", passed,
	       sim_points(), (double)sim_points() / (seconds_now() - began) / 1e6, end);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 0) : 10000000;
	double began = seconds_now();
	double next_line = began + PROGRESS_SECONDS;
	bool is_terminal = isatty(STDOUT_FILENO);

	printf("SEED=%" PRIu64 " STEPS=%" PRIu64 "\n", seed, steps);
	sim_set_report(report);
	sim_catch_signals();
	for (case_seed = seed; sim_points() < steps;
	     case_seed = seed_mix(seed_mix(seed) + passed)) {
		run_case();
		if (seconds_now() < next_line)
			continue;
		print_progress(began, is_terminal ? "\r" : "\n");
		next_line = seconds_now() + (is_terminal ? 1 : PROGRESS_SECONDS);
	}
	print_progress(began, "\n");
	printf("%" PRIu64 " passed, 0 failed\n", passed);
	return 0;
}
