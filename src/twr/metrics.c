/* SPDX-License-Identifier: MIT */
/*
 * metrics.c has one table of counters, which are all the worker's. Redis has states, and the number
 * of tasks added. They are left out while it does not answer, because an old state is wrong. Times
 * are in seconds. If a worker serves several namespaces, each one's metrics have the label
 * `namespace`.
 */
#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each namespace has these, X(name, value of struct tw_redis_worker_stats `stats`, help). */
#define COUNTERS(X)                                                                               \
	X("claimed", stats->claimed, "Runs that this worker took on lease.")                      \
	X("done", stats->done, "Runs acknowledged as done.")                                      \
	X("retried", stats->retried, "Runs that failed and will be retried.")                     \
	X("dead", stats->dead,                                                                    \
	  "Tasks made dead letters: by a failed run, or because all attempts had begun.")         \
	X("skipped", stats->skipped,                                                              \
	  "Tasks and occurrences not run because they would have begun too late.")                \
	X("snoozed", stats->snoozed, "Runs postponed by their handler or receiver.")              \
	X("stale", stats->stale, "Runs overtaken by another run or a new task.")                  \
	X("released", stats->released, "Runs returned to Redis because the worker stopped.")      \
	X("unconfirmed", stats->unconfirmed,                                                      \
	  "Runs whose end Redis did not confirm; they may run again.")                            \
	X("put_off", stats->put_off, "Runs returned to Redis because their host did not answer.") \
	X("lease_extensions", stats->extended, "Lease extensions.")                               \
	X("unscheduled", stats->unscheduled,                                                      \
	  "Next due times that this worker could not compute: it lacks the time zone.")           \
	X("claims", stats->claims, "Script calls that claim tasks.")                              \
	X("hints", stats->hints, "Hints received, for example of earlier due times.")

/* The worker has these. */
#define WORKER_COUNTERS(X)                                                                       \
	X("redis_round_trips", stats->round_trips, "Round trips of the worker's loop to Redis.") \
	X("redis_losses", stats->losses, "Times that Redis became unavailable.")                 \
	X("redis_reconnects", stats->reconnects, "Times that Redis became available again.")

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP twr_%s %s\n# TYPE twr_%s %s\n", name, help, name, type);
}

/* Writes the name with its labels. `label` is one of its own, or NULL. */
static void write_name(FILE *out, const char *name, const struct figures *figures, size_t space,
		       const char *label)
{
	bool named = figures->space_count > 1;

	fprintf(out, "twr_%s", name);
	if (named || label)
		fputc('{', out);
	if (named)
		fprintf(out, "namespace=\"%s\"", figures->spaces[space].name);
	if (named && label)
		fputc(',', out);
	if (label)
		fputs(label, out);
	if (named || label)
		fputc('}', out);
	fputc(' ', out);
}

enum { LABEL_ROOM = 3 * TW_REDIS_GROUP_MAX + 16 };
_Static_assert(TW_REDIS_HOST_NAME_MAX <= TW_REDIS_GROUP_MAX, "a host has room");

/* Writes a label with a value that others chose, with %XX for bytes that are not printable, and
 * quoted as the format says. Returns `text`. */
static const char *label_write(const char *label, const char *value, char text[LABEL_ROOM])
{
	char printable[LABEL_ROOM];
	char *end = text + sprintf(text, "%s=\"", label);

	tw_redis_write_key(value, strlen(value), printable);
	for (const char *at = printable; *at; at++) {
		if (*at == '"' || *at == '\\')
			*end++ = '\\';
		*end++ = *at;
	}
	strcpy(end, "\"");
	return text;
}

static void write_counters(FILE *out, const struct figures *figures)
{
	const struct tw_redis_worker_stats *stats;

#define COUNTER(name, value, help)                                \
	write_head(out, name "_total", "counter", help);          \
	for (size_t i = 0; i < figures->space_count; i++) {       \
		stats = &figures->spaces[i].worker;               \
		write_name(out, name "_total", figures, i, NULL); \
		fprintf(out, "%" PRIu64 "\n", (uint64_t)(value)); \
	}
	COUNTERS(COUNTER)
#undef COUNTER
	stats = &figures->worker;
#define COUNTER(name, value, help)                       \
	write_head(out, name "_total", "counter", help); \
	fprintf(out, "twr_" name "_total %" PRIu64 "\n", value);
	WORKER_COUNTERS(COUNTER)
#undef COUNTER
}

static void write_gauge(FILE *out, const char *name, double value, const char *help)
{
	write_head(out, name, "gauge", help);
	fprintf(out, "twr_%s %.15g\n", name, value);
}

/* Writes a gauge of each namespace. */
static void write_gauges(FILE *out, const char *name, const struct figures *figures,
			 double (*value)(const struct space_figures *space), const char *help)
{
	write_head(out, name, "gauge", help);
	for (size_t i = 0; i < figures->space_count; i++) {
		write_name(out, name, figures, i, NULL);
		fprintf(out, "%.15g\n", value(&figures->spaces[i]));
	}
}

static double due_of(const struct space_figures *space)
{
	return (double)space->tasks.due;
}

static double oldest_due_of(const struct space_figures *space)
{
	return tasks_oldest_due(&space->tasks);
}

static double missing_of(const struct space_figures *space)
{
	return (double)space->tasks.missing;
}

static double held_of(const struct space_figures *space)
{
	return (double)space->worker.held;
}

static double running_of(const struct space_figures *space)
{
	return (double)space->worker.running;
}

static void write_states(FILE *out, const struct figures *figures, size_t space)
{
	const struct tw_redis_stats *tasks = &figures->spaces[space].tasks;
	const struct {
		const char *label;
		uint64_t count;
	} states[] = {{"state=\"scheduled\"", tasks->tasks - tasks->started},
		      {"state=\"started\"", tasks->started},
		      {"state=\"dead\"", tasks->dead}};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		write_name(out, "tasks", figures, space, states[i].label);
		fprintf(out, "%" PRIu64 "\n", states[i].count);
	}
}

static double waiting_of(const struct space_figures *space,
			 const struct tw_redis_group_stats *group)
{
	(void)space;
	return (double)group->waiting;
}

static double group_running_of(const struct space_figures *space,
			       const struct tw_redis_group_stats *group)
{
	(void)space;
	return (double)group->running;
}

/* Writes a gauge of the largest groups of each namespace, or nothing if there are none. */
static void write_group_gauges(FILE *out, const char *name, const struct figures *figures,
			       double (*value)(const struct space_figures *space,
					       const struct tw_redis_group_stats *group),
			       const char *help)
{
	bool has_head = false;
	char label[LABEL_ROOM];

	for (size_t i = 0; i < figures->space_count; i++) {
		const struct space_figures *space = &figures->spaces[i];

		for (size_t k = 0; k < space->group_count; k++) {
			if (!has_head)
				write_head(out, name, "gauge", help);
			has_head = true;
			write_name(out, name, figures, i,
				   label_write("group", space->groups[k].name, label));
			fprintf(out, "%.15g\n", value(space, &space->groups[k]));
		}
	}
}

static void write_groups(FILE *out, const struct figures *figures)
{
	write_group_gauges(out, "group_waiting_tasks", figures, waiting_of,
			   "Waiting tasks of the groups with the most, at most 20 a namespace.");
	write_group_gauges(out, "group_running_tasks", figures, group_running_of,
			   "Tasks of these groups on lease, of all workers; scaled up from a "
			   "sample if there are many.");
	write_group_gauges(out, "group_oldest_due_age_seconds", figures, group_oldest_due,
			   "How long ago the oldest due task of these groups was due.");
}

static void write_tasks(FILE *out, const struct figures *figures)
{
	write_gauge(out, "redis_up", figures->answered,
		    "1 if Redis answered the last request, otherwise 0.");
	if (!figures->answered)
		return;
	write_head(
		out, "tasks", "gauge",
		"Tasks in Redis: scheduled (no attempt begun), started (on lease, or waiting for "
		"another attempt), dead (dead letters).");
	for (size_t i = 0; i < figures->space_count; i++)
		write_states(out, figures, i);
	write_head(out, "added_total", "counter",
		   "Tasks ever added, including replacements; a recurring task counts once.");
	for (size_t i = 0; i < figures->space_count; i++) {
		write_name(out, "added_total", figures, i, NULL);
		fprintf(out, "%" PRIu64 "\n", figures->spaces[i].tasks.added);
	}
	write_gauges(out, "due_tasks", figures, due_of, "Tasks that are due and not on lease.");
	write_gauges(out, "oldest_due_age_seconds", figures, oldest_due_of,
		     "How long ago the oldest due task was due.");
	write_gauges(out, "missing_shards", figures, missing_of,
		     "Shards whose tasks are not counted, because a key is broken.");
	write_groups(out, figures);
}

static void write_seconds(FILE *out, uint64_t time_us)
{
	fprintf(out, "%" PRIu64 ".%06" PRIu64 "\n", time_us / 1000000, time_us % 1000000);
}

static void write_histogram(FILE *out, const char *name, const struct figures *figures,
			    size_t space, const struct tw_redis_histogram *histogram)
{
	uint64_t count = 0;
	char text[48];

	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++) {
		double bound = (double)tw_redis_bucket_bound(i) / TW_SECOND;
		char label[32];

		count += histogram->counts[i];
		snprintf(label, sizeof(label),
			 i < TW_REDIS_BUCKETS - 1 ? "le=\"%g\"" : "le=\"+Inf\"", bound);
		snprintf(text, sizeof(text), "%s_bucket", name);
		write_name(out, text, figures, space, label);
		fprintf(out, "%" PRIu64 "\n", count);
	}
	snprintf(text, sizeof(text), "%s_sum", name);
	write_name(out, text, figures, space, NULL);
	write_seconds(out, histogram->total_us);
	snprintf(text, sizeof(text), "%s_count", name);
	write_name(out, text, figures, space, NULL);
	fprintf(out, "%" PRIu64 "\n", count);
}

static void write_histograms(FILE *out, const struct figures *figures)
{
	write_head(out, "lateness_seconds", "histogram",
		   "Time from the due time of a task to the start of its run.");
	for (size_t i = 0; i < figures->space_count; i++)
		write_histogram(out, "lateness_seconds", figures, i,
				&figures->spaces[i].worker.lateness);
	write_head(out, "duration_seconds", "histogram", "Duration of runs.");
	for (size_t i = 0; i < figures->space_count; i++)
		write_histogram(out, "duration_seconds", figures, i,
				&figures->spaces[i].worker.duration);
}

static void write_callbacks(FILE *out, const struct figures *figures)
{
	static const char *const answers[TW_REDIS_ANSWERS] = {"none", "1xx", "2xx",
							      "3xx",  "4xx", "5xx"};
	char label[LABEL_ROOM];

	write_head(out, "callbacks_total", "counter",
		   "Finished callbacks of this worker, by host and status of the answer; the "
		   "first 50 hosts have a name.");
	for (size_t i = 0; i < figures->host_count; i++) {
		const struct tw_redis_host_stats *host = &figures->hosts[i];

		label_write("host", i ? host->name : "other", label);
		for (unsigned k = 0; k < TW_REDIS_ANSWERS; k++)
			fprintf(out, "twr_callbacks_total{%s,answer=\"%s\"} %" PRIu64 "\n", label,
				answers[k], host->answers[k]);
	}
}

char *metrics_write(const struct figures *figures)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return NULL;
	write_tasks(out, figures);
	write_gauges(out, "held_tasks", figures, held_of, "Tasks that this worker has on lease.");
	write_gauges(out, "running_tasks", figures, running_of,
		     "Tasks that this worker is running.");
	write_gauge(out, "loop_age_seconds", (double)figures->worker.turned / TW_SECOND,
		    "Time since the last pass of the worker's loop.");
	write_gauge(out, "uptime_seconds", (double)figures->uptime / TW_SECOND,
		    "Time since the start of the worker.");
	write_counters(out, figures);
	write_callbacks(out, figures);
	write_histograms(out, figures);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	if (failed) {
		free(text);
		return NULL;
	}
	return text;
}
