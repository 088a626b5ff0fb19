/* SPDX-License-Identifier: MIT */
#include "lateness.h"

#include "support/percentiles.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock; /* guards the interval */
	struct percentiles *interval;
	struct percentiles *all;
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lateness_begin(void)
{
	recorded.interval = percentiles_create();
	recorded.all = percentiles_create();
}

void lateness_end(void)
{
	percentiles_destroy(recorded.interval);
	percentiles_destroy(recorded.all);
}

void lateness_record(int64_t lateness)
{
	pthread_mutex_lock(&recorded.lock);
	percentiles_record(recorded.interval, lateness);
	pthread_mutex_unlock(&recorded.lock);
}

static struct lateness sum_up(const struct percentiles *percentiles)
{
	return (struct lateness){
		.count = percentiles_count(percentiles),
		.p50 = percentiles_at(percentiles, 50),
		.p99 = percentiles_at(percentiles, 99),
		.most = percentiles_most(percentiles),
	};
}

struct lateness lateness_of_interval(void)
{
	struct percentiles *next = percentiles_create();
	struct percentiles *interval;
	struct lateness lateness;

	pthread_mutex_lock(&recorded.lock);
	interval = recorded.interval;
	recorded.interval = next;
	pthread_mutex_unlock(&recorded.lock);
	percentiles_merge(recorded.all, interval);
	lateness = sum_up(interval);
	percentiles_destroy(interval);
	return lateness;
}

struct lateness lateness_of_all(void)
{
	return sum_up(recorded.all);
}
