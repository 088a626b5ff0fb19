/* SPDX-License-Identifier: MIT */
/*
 * How late do tasks run when thousands are due each second?
 *
 * All tasks are added beforehand, evenly spread over the time. Then one worker runs them, with a
 * handler that does nothing, or by HTTP calls to a server in this process. Lateness is the time
 * from the due time to the handler's start, or to the request's arrival, by the machine's clock,
 * which is Redis's too. Redis, worker and HTTP server share the machine. Beside it stands how much
 * of a processor Redis needs while they are due. The figures are medians of several runs.
 */
#include "support/csv.h"
#include "support/format.h"
#include "support/http_server.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/percentiles.h"
#include "support/progress.h"
#include "support/redis_server.h"
#include "support/spread.h"
#include "support/stopwatch.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS_MAX = 99, BATCH = 250 };

static int64_t handler_rate = 10000, callback_rate = 5000, duration = 5 * NANOSECONDS_PER_SECOND,
	       runs = 5, shards = 1;
static const char *csv_path;

static struct redis_server server;
static struct http_server http;

/* This is the current run. The first run of each task writes its time. */
static struct {
	int64_t count;
	int64_t *due_ms;
	_Atomic int64_t *ran_at; /* nanoseconds since 1970, or 0 before the run */
	_Atomic int64_t ran;
	_Atomic int64_t twice;
} trial;

struct result {
	double p50;
	double p99;
	double most; /* milliseconds */
	double busy; /* Redis, in percent of a processor */
	int64_t early;
	int64_t twice;
};

static int64_t time_of_day(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

/* All atomics here are relaxed: they are read when all tasks have run. Only the count is
 * awaited. */
static void note_run(const char *key)
{
	int64_t index = strtoll(key + 5, NULL, 10);
	int64_t none = 0;

	if (atomic_compare_exchange_strong_explicit(&trial.ran_at[index], &none, time_of_day(),
						    memory_order_relaxed, memory_order_relaxed))
		/* release: publishes the time; pairs with the acquire in wait_for_all(). */
		atomic_fetch_add_explicit(&trial.ran, 1, memory_order_release);
	else
		/* relaxed: a count. */
		atomic_fetch_add_explicit(&trial.twice, 1, memory_order_relaxed);
}

static enum tw_redis_outcome run_handler(void *context, const struct tw_redis_job *job,
					 struct tw_redis_verdict *verdict)
{
	char key[24] = "";

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

static void give_up(enum tw_status status, const struct tw_redis_error *error)
{
	fprintf(stderr, "%s: %s\n", tw_status_text(status), error->text);
	exit(1);
}

static void fill(struct tw_redis *redis, int64_t start_ms, const char *url)
{
	struct tw_redis_task tasks[BATCH];
	char keys[BATCH][24];
	struct tw_redis_error error;

	for (int64_t first = 0; first < trial.count; first += BATCH) {
		size_t size = 0;
		enum tw_status status;

		for (; size < BATCH && first + (int64_t)size < trial.count; size++) {
			int64_t i = first + (int64_t)size;
			int length = snprintf(keys[size], sizeof(keys[size]), "task-%" PRId64, i);

			trial.due_ms[i] = start_ms + i * (duration / TW_MILLISECOND) / trial.count;
			tasks[size] = (struct tw_redis_task){.key = keys[size],
							     .key_size = (size_t)length,
							     .at_ms = trial.due_ms[i],
							     .url = url,
							     .body = url ? "{}" : NULL,
							     .body_size = url ? 2 : 0};
		}
		status = tw_redis_add(redis, tasks, size, NULL);
		if (status != TW_OK) {
			tw_redis_last_error(redis, &error);
			give_up(status, &error);
		}
	}
}

static void wait_for_all(void)
{
	int64_t until = stopwatch_now() + 10 * duration + 60 * NANOSECONDS_PER_SECOND;

	/* acquire: pairs with the release in note_run(). */
	while (atomic_load_explicit(&trial.ran, memory_order_acquire) < trial.count) {
		if (stopwatch_now() > until) {
			fputs("not all tasks ran\n", stderr);
			exit(1);
		}
		stopwatch_sleep(NANOSECONDS_PER_SECOND / 100);
	}
	/* A task that runs twice would do so in this time. */
	stopwatch_sleep(NANOSECONDS_PER_SECOND / 2);
}

static struct result judge(void)
{
	struct percentiles *lateness = percentiles_create();
	struct result result = {0};

	for (int64_t i = 0; i < trial.count; i++) {
		/* relaxed: all have run. */
		int64_t at = atomic_load_explicit(&trial.ran_at[i], memory_order_relaxed);
		int64_t late = at - trial.due_ms[i] * TW_MILLISECOND;

		result.early += late < 0;
		percentiles_record(lateness, late);
	}
	result.p50 = (double)percentiles_at(lateness, 50) / TW_MILLISECOND;
	result.p99 = (double)percentiles_at(lateness, 99) / TW_MILLISECOND;
	result.most = (double)percentiles_most(lateness) / TW_MILLISECOND;
	/* relaxed: a count. */
	result.twice = atomic_load_explicit(&trial.twice, memory_order_relaxed);
	percentiles_destroy(lateness);
	return result;
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

static struct result run_trial(int64_t rate, const char *url)
{
	const struct tw_redis_options options = {.url = server.url, .shards = (unsigned)shards};
	const struct tw_redis_worker_options worker_options = {.handler = run_handler,
							       .callbacks_per_host = 64};
	struct tw_redis_error error;
	struct tw_redis_worker *worker = NULL;
	struct tw_redis *redis;
	struct result result;
	int64_t start_ms;
	double before;
	enum tw_status status = tw_redis_open(&redis, &options, &error);

	if (status == TW_OK)
		status = tw_redis_worker_start(&worker, &options, &worker_options, &error);
	if (status != TW_OK)
		give_up(status, &error);
	memset(&trial, 0, sizeof(trial));
	trial.count = (int64_t)((double)rate * seconds_of(duration));
	trial.due_ms = calloc((size_t)trial.count, sizeof(*trial.due_ms));
	trial.ran_at = calloc((size_t)trial.count, sizeof(*trial.ran_at));
	if (!trial.due_ms || !trial.ran_at)
		give_up(TW_NO_MEMORY, &error);
	/* Adding a task takes less than 30 us, also where that is slow. */
	start_ms = time_of_day() / TW_MILLISECOND + 1000 + trial.count * 30 / 1000;
	fill(redis, start_ms, url);
	stopwatch_sleep(start_ms * TW_MILLISECOND - time_of_day());
	before = server_time();
	wait_for_all();
	result = judge();
	result.busy = 100 * (server_time() - before) / seconds_of(duration);
	tw_redis_worker_stop(worker, TW_FOREVER);
	tw_redis_worker_destroy(worker);
	tw_redis_close(redis);
	free(trial.due_ms);
	free((void *)trial.ran_at);
	return result;
}

static void print_row(struct csv csv, const char *name, const char *title, int64_t rate,
		      const struct result *results, double goal)
{
	double p50[RUNS_MAX];
	double p99[RUNS_MAX];
	double most[RUNS_MAX];
	double busy[RUNS_MAX];
	int64_t early = 0;
	int64_t twice = 0;
	double median;

	for (int64_t i = 0; i < runs; i++) {
		p50[i] = results[i].p50;
		p99[i] = results[i].p99;
		most[i] = results[i].most;
		busy[i] = results[i].busy;
		early += results[i].early;
		twice += results[i].twice;
	}
	median = spread_of(p99, (size_t)runs).median;
	printf("%-18s %8s /s %9.2f %9.2f %9.2f %9.2f %9.1f   %g (%s)   %" PRId64 " / %" PRId64 "\n",
	       title, format_count(rate).characters, spread_of(p50, (size_t)runs).median, median,
	       spread_of(p99, (size_t)runs).most, spread_of(most, (size_t)runs).median,
	       spread_of(busy, (size_t)runs).median, goal, median < goal ? "met" : "not met", early,
	       twice);
	csv_row(csv, "%s,%" PRId64 ",%.3f,%.3f,%.3f,%" PRId64 ",%" PRId64 ",%.1f", name, rate,
		spread_of(p50, (size_t)runs).median, median, spread_of(most, (size_t)runs).median,
		early, twice, spread_of(busy, (size_t)runs).median);
}

static void parse(int argc, char **argv)
{
	const struct program_option options[] = {
		{"handlers", OPTION_COUNT, &handler_rate, 1, 1000000, .help = "tasks a second"},
		{"callbacks", OPTION_COUNT, &callback_rate, 1, 1000000, .help = "calls a second"},
		{"seconds", OPTION_SECONDS, &duration, NANOSECONDS_PER_SECOND / 10,
		 600 * NANOSECONDS_PER_SECOND, .help = "how long tasks are due"},
		{"shards", OPTION_COUNT, &shards, 1, TW_REDIS_SHARDS_MAX,
		 .help = "of the namespace"},
		{"runs", OPTION_COUNT, &runs, 1, RUNS_MAX, .help = "their medians are printed"},
		{"csv", OPTION_TEXT, &csv_path, .help = "the table to this file"},
		{0},
	};

	options_parse(argc, argv, "How late do tasks run when thousands are due each second?",
		      options);
}

int main(int argc, char **argv)
{
	const struct redis_server_options options = {.append_only = true};
	struct result by_handler[RUNS_MAX];
	struct result by_callback[RUNS_MAX];
	struct progress progress = progress_start(stderr, false);
	struct csv csv;
	char url[64];

	parse(argc, argv);
	csv = csv_open(csv_path, "what,rate,p50_ms,p99_ms,most_ms,early,twice,busy");
	http_server_start_counting(&http, answer, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http.port);
	printf("%s\n%s of tasks, one worker, shards: %" PRId64 "; medians of %" PRId64 "\n\n",
	       machine_description(), format_duration(duration).characters, shards, runs);
	for (int run = 0; run < runs; run++) {
		progress_show(&progress, "run %d of %d", run + 1, (int)runs);
		redis_server_start(&server, &options);
		by_handler[run] = run_trial(handler_rate, NULL);
		by_callback[run] = run_trial(callback_rate, url);
		redis_server_stop(&server);
	}
	progress_wipe(&progress);
	printf("%-30s %9s %9s %9s %9s %9s   %s   %s\n", "lateness, ms", "p50", "p99", "worst p99",
	       "max", "Redis, %", "goal p99", "early / twice");
	print_row(csv, "handlers", "handlers", handler_rate, by_handler, 5);
	print_row(csv, "callbacks", "callbacks", callback_rate, by_callback, 20);
	csv_close(csv);
	http_server_stop(&http);
	return 0;
}
