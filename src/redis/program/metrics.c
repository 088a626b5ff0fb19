/* SPDX-License-Identifier: MIT */
/*
 * One table for the counters, which all are the worker's. Of Redis there are states alone, left
 * out while it does not answer: an old state is none. Times are in seconds.
 */
#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* X(name, value of struct tw_redis_worker_stats `stats`, help) */
#define COUNTERS(X)                                                                              \
	X("claimed", stats->claimed, "Runs that this worker took on lease.")                     \
	X("done", stats->done, "Runs whose task is done, and out of Redis.")                     \
	X("retried", stats->retried, "Runs that failed, and whose task runs again.")             \
	X("dead", stats->dead + stats->buried,                                                   \
	  "Tasks made dead letters: by a failed run, or as all their attempts had been begun.")  \
	X("snoozed", stats->snoozed, "Runs put off by their handler or receiver.")               \
	X("stale", stats->stale, "Runs that another run or a new task overtook.")                \
	X("released", stats->released, "Runs given back as the worker ended.")                   \
	X("untold", stats->untold, "Runs that Redis could not be told of; they come again.")     \
	X("put_off", stats->put_off, "Runs given back as their host did not answer.")            \
	X("lease_extensions", stats->extended, "Leases extended.")                               \
	X("claims", stats->claims, "Script calls that claim.")                                   \
	X("hints", stats->hints, "Hints received of tasks that are due earlier.")                \
	X("redis_round_trips", stats->round_trips, "Round trips of the worker's loop to Redis.") \
	X("redis_losses", stats->losses, "Times that the worker lost Redis.")                    \
	X("redis_reconnects", stats->reconnects, "Times that Redis was there again.")

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP twr_%s %s\n# TYPE twr_%s %s\n", name, help, name, type);
}

static void write_counters(FILE *out, const struct tw_redis_worker_stats *stats)
{
#define COUNTER(name, value, help)                       \
	write_head(out, name "_total", "counter", help); \
	fprintf(out, "twr_" name "_total %" PRIu64 "\n", value);
	COUNTERS(COUNTER)
#undef COUNTER
}

static void write_gauge(FILE *out, const char *name, double value, const char *help)
{
	write_head(out, name, "gauge", help);
	fprintf(out, "twr_%s %.15g\n", name, value);
}

static void write_tasks(FILE *out, const struct figures *figures)
{
	const struct tw_redis_stats *tasks = &figures->tasks;

	write_gauge(out, "redis_up", figures->answered, "Whether Redis answered when last asked.");
	if (!figures->answered)
		return;
	write_head(out, "tasks", "gauge",
		   "Tasks in Redis: scheduled and not yet begun; started: on lease, or waiting "
		   "for another attempt; dead letters.");
	fprintf(out,
		"twr_tasks{state=\"scheduled\"} %" PRIu64 "\ntwr_tasks{state=\"started\"} %" PRIu64
		"\ntwr_tasks{state=\"dead\"} %" PRIu64 "\n",
		tasks->tasks - tasks->started, tasks->started, tasks->dead);
	write_gauge(out, "due_tasks", (double)tasks->due, "Tasks due now and on no lease.");
	write_gauge(out, "oldest_due_age_seconds", figures_oldest_due(figures),
		    "How long ago the task that has waited longest was due.");
}

static void write_seconds(FILE *out, uint64_t time_us)
{
	fprintf(out, "%" PRIu64 ".%06" PRIu64 "\n", time_us / 1000000, time_us % 1000000);
}

static void write_histogram(FILE *out, const char *name, const struct tw_redis_histogram *histogram,
			    const char *help)
{
	uint64_t count = 0;

	write_head(out, name, "histogram", help);
	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++) {
		double bound = (double)tw_redis_bucket_bound(i) / TW_SECOND;

		count += histogram->counts[i];
		fprintf(out, "twr_%s_bucket{le=\"", name);
		fprintf(out, i < TW_REDIS_BUCKETS - 1 ? "%g" : "+Inf", bound);
		fprintf(out, "\"} %" PRIu64 "\n", count);
	}
	fprintf(out, "twr_%s_sum ", name);
	write_seconds(out, histogram->total_us);
	fprintf(out, "twr_%s_count %" PRIu64 "\n", name, count);
}

/* A host's name as a label: of what is not printable, %XX; quoted as the format says. */
static void write_host(FILE *out, const char *name)
{
	char text[3 * TW_REDIS_HOST_NAME_MAX + 1];

	tw_redis_write_key(name, strlen(name), text);
	for (const char *at = text; *at; at++) {
		if (*at == '"' || *at == '\\')
			fputc('\\', out);
		fputc(*at, out);
	}
}

static void write_callbacks(FILE *out, const struct figures *figures)
{
	static const char *const answers[TW_REDIS_ANSWERS] = {"none", "1xx", "2xx",
							      "3xx",  "4xx", "5xx"};

	write_head(out, "callbacks_total", "counter",
		   "Callbacks of this worker that came to an end, by host and status of the "
		   "answer; the first fifty hosts have a name.");
	for (size_t i = 0; i < figures->host_count; i++) {
		const struct tw_redis_host_stats *host = &figures->hosts[i];

		for (unsigned k = 0; k < TW_REDIS_ANSWERS; k++) {
			fputs("twr_callbacks_total{host=\"", out);
			write_host(out, i ? host->name : "other");
			fprintf(out, "\",answer=\"%s\"} %" PRIu64 "\n", answers[k],
				host->answers[k]);
		}
	}
}

char *metrics_write(const struct figures *figures)
{
	const struct tw_redis_worker_stats *stats = &figures->worker;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return NULL;
	write_tasks(out, figures);
	write_gauge(out, "held_tasks", (double)stats->held, "Tasks that this worker has on lease.");
	write_gauge(out, "running_tasks", (double)stats->running, "Of these, those being run.");
	write_gauge(out, "loop_age_seconds", (double)stats->turned / TW_SECOND,
		    "How long ago the worker's loop last went round.");
	write_gauge(out, "uptime_seconds", (double)figures->uptime / TW_SECOND,
		    "How long the worker has run.");
	write_counters(out, stats);
	write_callbacks(out, figures);
	write_histogram(out, "lateness_seconds", &stats->lateness,
			"How late runs began, after their task was due.");
	write_histogram(out, "duration_seconds", &stats->duration, "How long runs took.");
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
