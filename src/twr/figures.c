/* SPDX-License-Identifier: MIT */
/*
 * figures.c has the table. A metric that has several figures, such as twr_tasks, has them one after
 * the other, each with a label of its own. A text of the row, such as a group's name, is a label of
 * all its metrics. A time is a metric as its age in seconds, and has no name without a metric.
 */
#include "figures.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"
#include "task_line.h"
#include "when.h"

enum figure_kind {
	COUNT,   /* uint64_t */
	FLAG,    /* uint64_t, true if it is not 0 */
	RATE,    /* char[] */
	SECONDS, /* tw_duration */
	TIME,    /* int64_t, milliseconds since 1970, or 0 */
	TEXT,    /* char[], last in a line of text */
	HISTOGRAM
};

struct figure {
	const char *name;
	enum figure_scope scope;
	enum figure_kind kind;
	size_t offset;
	const char *metric; /* after "twr_", or NULL */
	const char *type;
	const char *help;
	const char *label; /* distinguishes it from others of the metric; or NULL */
};

/* These are middle parts of rows. */
#define TASK(kind, member) FIGURES_OF_TASKS, kind, offsetof(struct task_figures, member)
#define WORKER(kind, member) FIGURES_OF_WORKER, kind, offsetof(struct worker_figures, member)
#define GROUP(kind, member) FIGURES_OF_GROUP, kind, offsetof(struct tw_redis_group_stats, member)
#define REPORT(kind, member) FIGURES_OF_WORKERS, kind, offsetof(struct tw_redis_worker_info, member)
#define LIMITS(kind, member) FIGURES_OF_LIMITS, kind, offsetof(struct limit_figures, member)
#define TIMES(member) FIGURES_OF_TIMES, HISTOGRAM, offsetof(struct tw_redis_worker_stats, member)
/* These are rows of the lists of counts. */
#define RUN_METRIC_counter(field) #field "_total"
#define RUN_METRIC_gauge(field) #field "_tasks"
#define ROW(...)            \
	{                   \
		__VA_ARGS__ \
	}
#define RUN(field, type, help)                                                               \
	, ROW(#field, FIGURES_OF_RUNS, COUNT, offsetof(struct tw_redis_worker_stats, field), \
	      RUN_METRIC_##type(field), #type, help, NULL)
#define LOOP(field, type, help) \
	, ROW(#field, WORKER(COUNT, stats.field), "redis_" #field "_total", #type, help, NULL)

static const char states_help[] =
	"Tasks in Redis: scheduled (no attempt begun), started (on lease, or waiting for another "
	"attempt), dead (dead letters).";

static const struct figure table[] = {
	{"tasks", TASK(COUNT, stats.tasks), NULL, NULL, NULL, NULL},
	{"scheduled", TASK(COUNT, scheduled), "tasks", "gauge", states_help, "state=\"scheduled\""},
	{"started", TASK(COUNT, stats.started), "tasks", "gauge", NULL, "state=\"started\""},
	{"dead", TASK(COUNT, stats.dead), "tasks", "gauge", NULL, "state=\"dead\""},
	{"due", TASK(COUNT, stats.due), "due_tasks", "gauge",
	 "Tasks that are due and not on lease.", NULL},
	{"recurring", TASK(COUNT, stats.recurring), "recurring_tasks", "gauge", "Tasks that recur.",
	 NULL},
	{"added", TASK(COUNT, stats.added), "added_total", "counter",
	 "Tasks ever added, including replacements; a recurring task counts once.", NULL},
	{"paused", TASK(FLAG, stats.paused), "paused", "gauge",
	 "1 if the namespace is paused, otherwise 0.", NULL},
	{"next", TASK(TIME, stats.next_ms), "oldest_due_age_seconds", "gauge",
	 "How long ago the oldest due task was due.", NULL},
	{"now", TASK(TIME, stats.now_ms), NULL, NULL, NULL, NULL},
	{"waiting", GROUP(COUNT, waiting), "group_waiting_tasks", "gauge",
	 "Waiting tasks of the groups with the most, at most 20 a namespace.", NULL},
	{"running", GROUP(COUNT, running), "group_running_tasks", "gauge",
	 "Tasks of these groups on lease, of all workers; scaled up from a sample if there are "
	 "many.",
	 NULL},
	{"oldest_due", GROUP(TIME, oldest_ms), "group_oldest_due_age_seconds", "gauge",
	 "How long ago the oldest due task of these groups was due.", NULL},
	{"group", GROUP(TEXT, name), NULL, NULL, NULL, NULL},
	{"uptime_s", REPORT(SECONDS, up), NULL, NULL, NULL, NULL},
	{"report_age_s", REPORT(SECONDS, report_age), NULL, NULL, NULL, NULL},
	{"running", REPORT(COUNT, running), NULL, NULL, NULL, NULL},
	{"held", REPORT(COUNT, held), NULL, NULL, NULL, NULL},
	{"done", REPORT(COUNT, done), NULL, NULL, NULL, NULL},
	{"retried", REPORT(COUNT, retried), NULL, NULL, NULL, NULL},
	{"dead", REPORT(COUNT, dead), NULL, NULL, NULL, NULL},
	{"worker", REPORT(TEXT, name), NULL, NULL, NULL, NULL},
	{"weight", LIMITS(COUNT, weight), NULL, NULL, NULL, NULL},
	{"running", LIMITS(COUNT, running), NULL, NULL, NULL, NULL},
	{"rate", LIMITS(RATE, rate), NULL, NULL, NULL, NULL},
	{"paused", LIMITS(FLAG, paused), NULL, NULL, NULL, NULL},
	{"group", LIMITS(TEXT, group), NULL, NULL, NULL, NULL},
	{"ready", WORKER(FLAG, ready), NULL, NULL, NULL, NULL},
	{"redis_up", WORKER(FLAG, redis_up), "redis_up", "gauge",
	 "1 if Redis answered the last request, otherwise 0.", NULL},
	{"uptime_s", WORKER(SECONDS, uptime), "uptime_seconds", "gauge",
	 "Time since the start of the worker.", NULL},
	{"loop_age_s", WORKER(SECONDS, stats.turned), "loop_age_seconds", "gauge",
	 "Time since the last pass of the worker's loop.", NULL} TW_REDIS_WORKER_COUNTS(LOOP)
		TW_REDIS_NAMESPACE_COUNTS(RUN),
	{NULL, TIMES(lateness), "lateness_seconds", "histogram",
	 "Time from the due time of a task to the start of its run.", NULL},
	{NULL, TIMES(duration), "duration_seconds", "histogram", "Duration of runs.", NULL}};
enum { FIGURES = sizeof(table) / sizeof(table[0]) };

/* Returns the first figure of the scope from `from` on, or NULL. */
static const struct figure *figure_from(const struct figure *from, enum figure_scope scope)
{
	while (from < table + FIGURES && from->scope != scope)
		from++;
	return from < table + FIGURES ? from : NULL;
}

static const struct figure *first_of(enum figure_scope scope)
{
	return figure_from(table, scope);
}

static const struct figure *next_of(const struct figure *figure)
{
	return figure_from(figure + 1, figure->scope);
}

static const void *place_of(const struct figure *figure, const void *of)
{
	return (const char *)of + figure->offset;
}

static int64_t number_of(const struct figure *figure, const void *of)
{
	const void *place = place_of(figure, of);
	int64_t number;

	/* All others but texts have this size. */
	memcpy(&number, place, sizeof(number));
	return number;
}

enum tw_status figures_ask(struct tw_redis *redis, struct task_figures *figures)
{
	enum tw_status status = tw_redis_get_stats(redis, &figures->stats);

	figures->scheduled = figures->stats.tasks - figures->stats.started;
	return status;
}

/* ---- As JSON ---- */

json_t *figures_json(enum figure_scope scope, const void *of)
{
	json_t *object = json_object();

	for (const struct figure *figure = first_of(scope); figure; figure = next_of(figure)) {
		int64_t number = figure->kind == TEXT ? 0 : number_of(figure, of);
		const char *text = place_of(figure, of);

		if (figure->kind == TEXT || figure->kind == RATE)
			json_set_bytes(object, figure->name, text, strlen(text));
		else if (figure->kind == FLAG)
			json_object_set_new(object, figure->name, json_boolean(number));
		else if (figure->kind == SECONDS)
			json_object_set_new(object, figure->name,
					    json_real((double)number / TW_SECOND));
		else if (figure->kind == COUNT)
			json_object_set_new(object, figure->name, json_integer(number));
		else if (number)
			json_set_time(object, figure->name, number);
	}
	return object;
}

/* ---- As text ---- */

static const char *number_write(const struct figure *figure, const void *of, char text[WHEN_SIZE])
{
	int64_t number = number_of(figure, of);

	if (figure->kind == TIME)
		return number ? time_write(number, text) : "never";
	if (figure->kind == RATE)
		return place_of(figure, of);
	if (figure->kind == SECONDS)
		return duration_write(number, text);
	if (figure->kind == FLAG)
		return number ? "yes" : "no";
	snprintf(text, WHEN_SIZE, "%" PRId64, number);
	return text;
}

void figures_write(FILE *out, enum figure_scope scope, const void *of, const char *between)
{
	const char *separator = "";
	char text[WHEN_SIZE];

	for (const struct figure *figure = first_of(scope); figure; figure = next_of(figure)) {
		fprintf(out, "%s%s %s", separator, figure->name, number_write(figure, of, text));
		separator = between;
	}
}

/* Returns the width of the figure's column. */
static int width_of(const struct figure *figure)
{
	int width = (int)strlen(figure->name) + 2;

	if (figure->kind == TIME)
		return 26;
	return width < 10 ? 10 : width;
}

void figures_names(enum figure_scope scope)
{
	for (const struct figure *figure = first_of(scope); figure; figure = next_of(figure))
		if (figure->kind == TEXT)
			printf("  %s\n", figure->name);
		else
			printf("%*s", width_of(figure), figure->name);
}

void figures_row(enum figure_scope scope, const void *of, bool json)
{
	char text[WHEN_SIZE];

	if (json) {
		show_json(figures_json(scope, of));
		return;
	}
	for (const struct figure *figure = first_of(scope); figure; figure = next_of(figure)) {
		const char *name = place_of(figure, of);

		if (figure->kind != TEXT) {
			printf("%*s", width_of(figure), number_write(figure, of, text));
			continue;
		}
		fputs("  ", stdout);
		show_key(stdout, name, strlen(name));
		putchar('\n');
	}
}

/* ---- As metrics ---- */

static void metric_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP twr_%s %s\n# TYPE twr_%s %s\n", name, help, name, type);
}

/* Writes a label with a value that others chose, with %XX for bytes that are not printable, and
 * quoted as the format says. */
static void label_write(FILE *out, const char *label, const char *value)
{
	char printable[3 * TW_REDIS_GROUP_MAX + 1];

	tw_redis_write_key(value, strlen(value), printable);
	fprintf(out, "%s=\"", label);
	for (const char *at = printable; *at; at++)
		fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
	fputc('"', out);
}

static double metric_of(const struct figure *figure, const struct figure_row *row)
{
	int64_t number = number_of(figure, row->of);

	if (figure->kind == TIME)
		return number && number < row->now_ms ? (double)(row->now_ms - number) / 1000 : 0;
	if (figure->kind == SECONDS)
		return (double)number / TW_SECOND;
	return figure->kind == FLAG ? number != 0 : (double)number;
}

/* Writes the metric's name, which ends with `part`, and the row's labels. A bucket has a bound. */
static void sample_begin(FILE *out, const struct figure *figure, const struct figure_row *row,
			 const char *part, const char *bound)
{
	const char *before = "{";

	fprintf(out, "twr_%s%s", figure->metric, part);
	if (row->name_space) {
		fprintf(out, "{namespace=\"%s\"", row->name_space);
		before = ",";
	}
	for (const struct figure *text = first_of(figure->scope); text; text = next_of(text)) {
		if (text->kind != TEXT)
			continue;
		fputs(before, out);
		label_write(out, text->name, place_of(text, row->of));
		before = ",";
	}
	if (figure->label) {
		fprintf(out, "%s%s", before, figure->label);
		before = ",";
	}
	if (bound) {
		fprintf(out, "%sle=\"%s\"", before, bound);
		before = ",";
	}
	fputs(*before == ',' ? "} " : " ", out);
}

static void histogram_write(FILE *out, const struct figure *figure, const struct figure_row *row)
{
	const struct tw_redis_histogram *histogram = place_of(figure, row->of);
	uint64_t count = 0;
	char bound[24];

	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++) {
		count += histogram->counts[i];
		snprintf(bound, sizeof(bound), i < TW_REDIS_BUCKETS - 1 ? "%g" : "+Inf",
			 (double)tw_redis_bucket_bound(i) / TW_SECOND);
		sample_begin(out, figure, row, "_bucket", bound);
		fprintf(out, "%" PRIu64 "\n", count);
	}
	sample_begin(out, figure, row, "_sum", NULL);
	fprintf(out, "%" PRIu64 ".%06" PRIu64 "\n", histogram->total_us / 1000000,
		histogram->total_us % 1000000);
	sample_begin(out, figure, row, "_count", NULL);
	fprintf(out, "%" PRIu64 "\n", count);
}

static void row_write(FILE *out, const struct figure *figure, const struct figure_row *row)
{
	if (figure->kind == HISTOGRAM) {
		histogram_write(out, figure, row);
		return;
	}
	sample_begin(out, figure, row, "", NULL);
	fprintf(out, "%.15g\n", metric_of(figure, row));
}

void figures_metrics(FILE *out, enum figure_scope scope, const struct figure_row *rows,
		     size_t count)
{
	const char *last = "";

	for (const struct figure *figure = first_of(scope); figure; figure = next_of(figure)) {
		if (!figure->metric || !count)
			continue;
		if (strcmp(figure->metric, last) != 0)
			metric_head(out, figure->metric, figure->type, figure->help);
		last = figure->metric;
		for (size_t i = 0; i < count; i++)
			row_write(out, figure, &rows[i]);
	}
}
