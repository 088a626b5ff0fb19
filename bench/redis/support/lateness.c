/* SPDX-License-Identifier: MIT */
/*
 * How late do tasks run when thousands are due each second?
 *
 * All tasks are added beforehand, evenly spread over the time. Then one worker runs them, with a
 * handler that does nothing, or by HTTP calls to a server in this process. Lateness is the time
 * from the due time to the handler's start, or to the request's arrival, by the machine's clock,
 * which is Redis's too. Redis, worker and HTTP server share the machine. Beside it stands how much
 * of a processor Redis needs while they are due.
 */
#include "asks.h"

#include "support/http_server.h"
#include "support/percentiles.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { P50, P99, MAX, BUSY, EARLY, TWICE };

static const struct measure measures[] = {
	{"p50_ms", "late p50: ms", 1, 1},
	{"p99_ms", "p99", 1, 1},
	{"max_ms", "max", 1, 1},
	{"busy_percent", "Redis: % of a core", 1, 0},
	{"early", "early", 1, 0},
	{"twice", "run twice", 1, 0},
	{0},
};

struct plan {
	const struct settings *settings;
	int64_t rate;
	bool by_callback;
};

static struct redis_server server;

/* The first run of each task writes its time. */
static struct {
	int64_t count;
	_Atomic int64_t *ran_at; /* nanoseconds since 1970, or 0 before the run */
	_Atomic int64_t ran;
	_Atomic int64_t twice;
} trial;

static void note_run(const char *key)
{
	int64_t none = 0;

	/* relaxed: the times are read when all tasks have run */
	if (atomic_compare_exchange_strong_explicit(&trial.ran_at[number_of_key(key)], &none,
						    time_of_day(), memory_order_relaxed,
						    memory_order_relaxed))
		/* release: publishes the time; pairs with the acquire in wait_for_all() */
		atomic_fetch_add_explicit(&trial.ran, 1, memory_order_release);
	else
		/* relaxed: a count */
		atomic_fetch_add_explicit(&trial.twice, 1, memory_order_relaxed);
}

static enum tw_redis_outcome run_handler(void *context, const struct tw_redis_job *job,
					 struct tw_redis_verdict *verdict)
{
	char key[48] = "";

	(void)context;
	(void)verdict;
	memcpy(key, job->key, job->key_size < sizeof(key) ? job->key_size : sizeof(key) - 1);
	note_run(key);
	return TW_REDIS_DONE;
}

static void answer(void *context, const struct http_request *request, struct http_answer *reply)
{
	(void)context;
	(void)reply;
	note_run(request->key);
}

static void wait_for_all(int64_t duration)
{
	int64_t until = stopwatch_now() + 10 * duration + TW_MINUTE;

	/* acquire: pairs with the release in note_run() */
	while (atomic_load_explicit(&trial.ran, memory_order_acquire) < trial.count) {
		if (stopwatch_now() > until)
			process_fail("not all tasks ran");
		stopwatch_sleep(NANOSECONDS_PER_SECOND / 100);
	}
	/* A task that runs twice would do so in this time. */
	stopwatch_sleep(NANOSECONDS_PER_SECOND / 2);
}

static void judge(const struct load *load, double *result)
{
	struct percentiles *lateness = percentiles_create();

	result[EARLY] = 0;
	for (int64_t i = 0; i < trial.count; i++) {
		int64_t due_ms = load->at_ms + i * load->spread_ms / trial.count;
		/* relaxed: all have run */
		int64_t late = atomic_load_explicit(&trial.ran_at[i], memory_order_relaxed) -
			       due_ms * TW_MILLISECOND;

		result[EARLY] += late < 0;
		percentiles_record(lateness, late);
	}
	result[P50] = (double)percentiles_at(lateness, 50) / TW_MILLISECOND;
	result[P99] = (double)percentiles_at(lateness, 99) / TW_MILLISECOND;
	result[MAX] = (double)percentiles_most(lateness) / TW_MILLISECOND;
	/* relaxed: a count */
	result[TWICE] = (double)atomic_load_explicit(&trial.twice, memory_order_relaxed);
	percentiles_destroy(lateness);
}

/* Returns the processor time of the server so far, in seconds. */
static double server_time(void)
{
	redisReply *reply = redis_server_ask(&server, "INFO cpu");
	double time = strtod(strstr(reply->str, "used_cpu_sys:") + 13, NULL) +
		      strtod(strstr(reply->str, "used_cpu_user:") + 14, NULL);

	freeReplyObject(reply);
	return time;
}

static void run_trial(const void *argument, double *result)
{
	const struct plan *plan = argument;
	int64_t duration = plan->settings->seconds;
	struct load load = {.spread_ms = duration / TW_MILLISECOND};
	struct tw_redis_worker *worker;
	struct tw_redis *redis;
	struct http_server http;
	char url[64];
	double before;

	redis_server_start(&server, &(struct redis_server_options){.append_only = true});
	if (plan->by_callback) {
		http_server_start_counting(&http, answer, NULL);
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http.port);
		load.url = url;
	}
	trial.count = load.end = (int64_t)((double)plan->rate * seconds_of(duration));
	trial.ran_at = process_allocate((size_t)trial.count * sizeof(*trial.ran_at));
	redis = open_client(&server, 0, plan->settings->shards);
	worker = start_worker(&server, plan->settings->shards, run_handler);
	load.at_ms = time_after_adding(trial.count);
	add_load(redis, &load);
	stopwatch_sleep(load.at_ms * TW_MILLISECOND - time_of_day());
	before = server_time();
	wait_for_all(duration);
	judge(&load, result);
	result[BUSY] = 100 * (server_time() - before) / seconds_of(duration);
	end_worker(worker);
	tw_redis_close(redis);
	if (plan->by_callback)
		http_server_stop(&http);
	redis_server_stop(&server);
}

void ask_lateness(const struct settings *settings)
{
	struct plan plans[2] = {{settings, settings->handlers, false},
				{settings, settings->callbacks, true}};
	char titles[2][64];
	struct figures *rows[2];

	for (int i = 0; i < 2; i++) {
		snprintf(titles[i], sizeof(titles[i]), "%s, %" PRId64 " a second",
			 i ? "HTTP callbacks" : "handlers", plans[i].rate);
		rows[i] = run_trials(i ? "callbacks" : "handlers", titles[i], measures, run_trial,
				     &plans[i], settings->runs);
	}
	figures_print_rows("Lateness, one worker, fsync each second", rows, 2);
	for (int i = 0; i < 2; i++)
		figures_destroy(rows[i]);
}
