/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "stacks.h"
#include "support/random.h"
#include "support/seed.h"

enum { SAMPLE = 5 };

/*
 * The plan is what the current attempt fails. An allocation is identified by its call stack, or
 * with FAULTS=all by its number in the attempt: one fails that has not failed before. In a pair
 * this also holds for the second one, among those that follow `first`.
 */
static struct {
	pthread_mutex_t mutex;
	enum fault fault;
	bool by_number;
	uint64_t sampled; /* the number of the one that fails, or 0 */
	uint64_t first;   /* the first of a pair that is tried with others, 0 for a new one */
	uint64_t failed;  /* the first that failed in this attempt */
	uint64_t asked;   /* allocations in this attempt */
	int failures;     /* in this attempt */
	struct stack_set firsts;
	struct stack_set seconds;
} plan = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool first_is_to_fail(uint64_t allocation)
{
	if (plan.sampled > 0)
		return plan.asked == plan.sampled;
	if (plan.first != 0)
		return allocation == plan.first;
	return stack_set_add(&plan.firsts, allocation);
}

static bool is_to_fail(void)
{
	uint64_t allocation;
	bool fails;

	pthread_mutex_lock(&plan.mutex);
	plan.asked++;
	allocation = plan.by_number ? plan.asked : stack_number();
	if (plan.failures == 0) {
		fails = first_is_to_fail(allocation);
		plan.failed = allocation;
	} else if (plan.failures == 1 && plan.fault == FAULT_PAIR) {
		fails = stack_set_add(&plan.seconds, allocation);
	} else {
		fails = plan.fault == FAULT_REST;
	}
	plan.failures += fails;
	pthread_mutex_unlock(&plan.mutex);
	return fails;
}

void begin_faults(void)
{
	pthread_mutex_lock(&plan.mutex);
	plan.asked = 0;
	plan.failures = 0;
	pthread_mutex_unlock(&plan.mutex);
	if (plan.fault == FAULT_DESCRIPTOR)
		fail_descriptor((long)plan.sampled);
	else if (plan.fault == FAULT_THREAD)
		fail_thread((long)plan.sampled);
	else
		choose_allocations(is_to_fail);
}

/* The outcome is the result of an attempt. */
struct outcome {
	int failures;
	uint64_t failed;
	uint64_t asked;
};

static struct outcome attempt_once(fault_attempt *attempt, void *context)
{
	struct outcome outcome;

	attempt(context);
	/* Other threads' earlier requests come before the next attempt's. */
	pthread_mutex_lock(&plan.mutex);
	outcome = (struct outcome){plan.failures, plan.failed, plan.asked};
	pthread_mutex_unlock(&plan.mutex);
	return outcome;
}

static long fail_each_by_number(fault_attempt *attempt, void *context)
{
	for (plan.sampled = 1;; plan.sampled++) {
		bool met;

		(void)attempt_once(attempt, context);
		met = fault_was_met();
		fail_thread(0);
		if (!met)
			return (long)plan.sampled - 1;
	}
}

static long fail_each_pair(fault_attempt *attempt, void *context)
{
	struct outcome outcome;
	long pairs = 0;

	for (;;) {
		plan.first = 0;
		memset(&plan.seconds, 0, sizeof(plan.seconds));
		do {
			outcome = attempt_once(attempt, context);
			if (outcome.failures == 0 && plan.first == 0)
				return pairs;
			plan.first = outcome.failed;
			pairs += outcome.failures == 2;
		} while (outcome.failures == 2);
	}
}

bool faults_are_all(void)
{
	const char *which = getenv("FAULTS");

	return which && strcmp(which, "all") == 0;
}

long fail_each(enum fault fault, fault_attempt *attempt, void *context)
{
	struct outcome outcome;
	struct random random;
	long met = 0;

	plan.fault = fault;
	plan.by_number = faults_are_all();
	plan.first = 0;
	plan.sampled = 0;
	memset(&plan.firsts, 0, sizeof(plan.firsts));
	if (fault == FAULT_DESCRIPTOR || fault == FAULT_THREAD)
		return fail_each_by_number(attempt, context);
	if (fault == FAULT_PAIR)
		return fail_each_pair(attempt, context);
	for (;; met++) {
		outcome = attempt_once(attempt, context);
		if (outcome.failures == 0)
			break;
	}
	random = random_from(seed_choose(), (uint64_t)met);
	for (int i = 0; i < SAMPLE && (uint64_t)(met + i) < outcome.asked; i++) {
		plan.sampled = random_below(&random, outcome.asked) + 1;
		(void)attempt_once(attempt, context);
	}
	return met;
}
