/* SPDX-License-Identifier: MIT */
/*
 * pages.c makes the metrics and /status.json from the table of figures. What Redis counts is left
 * out while it does not answer, because an old count is wrong. If a worker serves several
 * namespaces, each one's metrics have the label `namespace`. Times are in seconds.
 */
#include "pages.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Metrics ---- */

/* Returns the label of the namespace's metrics, or NULL. */
static const char *label_of(const struct board *board, size_t space)
{
	return board->space_count > 1 ? board->spaces[space].name : NULL;
}

static void write_spaces(FILE *out, const struct board *board, enum figure_scope scope)
{
	struct figure_row rows[TW_REDIS_SOURCES_MAX];

	for (size_t i = 0; i < board->space_count; i++) {
		const struct board_space *space = &board->spaces[i];

		rows[i] = (struct figure_row){.of = scope == FIGURES_OF_TASKS
							    ? (const void *)&space->tasks
							    : &space->runs,
					      .name_space = label_of(board, i),
					      .now_ms = space->tasks.stats.now_ms};
	}
	figures_metrics(out, scope, rows, board->space_count);
}

static void write_groups(FILE *out, const struct board *board)
{
	static const size_t most = (size_t)TW_REDIS_SOURCES_MAX * BOARD_GROUPS;
	struct figure_row *rows = calloc(most, sizeof(*rows));
	size_t count = 0;

	for (size_t i = 0; rows && i < board->space_count; i++)
		for (size_t k = 0; k < board->spaces[i].group_count; k++)
			rows[count++] =
				(struct figure_row){.of = &board->spaces[i].groups[k],
						    .name_space = label_of(board, i),
						    .now_ms = board->spaces[i].tasks.stats.now_ms};
	figures_metrics(out, FIGURES_OF_GROUP, rows, count);
	free(rows);
}

static void write_hosts(FILE *out, const struct board *board)
{
	struct figure_row rows[BOARD_HOSTS];

	for (size_t i = 0; i < board->host_count; i++)
		rows[i] = (struct figure_row){.of = &board->hosts[i]};
	figures_metrics(out, FIGURES_OF_HOST, rows, board->host_count);
}

/* Writes "twr_NAME_PART{namespace="SPACE",le="BOUND"} ", without what is NULL. */
static void write_name(FILE *out, const char *name, const char *part, const char *space,
		       const char *bound)
{
	fprintf(out, "twr_%s_%s", name, part);
	if (space || bound)
		fputc('{', out);
	if (space)
		fprintf(out, "namespace=\"%s\"%s", space, bound ? "," : "");
	if (bound)
		fprintf(out, "le=\"%s\"", bound);
	fputs(space || bound ? "} " : " ", out);
}

static void write_histogram(FILE *out, const char *name, const char *space,
			    const struct tw_redis_histogram *histogram)
{
	uint64_t count = 0;
	char bound[24];

	for (unsigned i = 0; i < TW_REDIS_BUCKETS; i++) {
		count += histogram->counts[i];
		snprintf(bound, sizeof(bound), i < TW_REDIS_BUCKETS - 1 ? "%g" : "+Inf",
			 (double)tw_redis_bucket_bound(i) / TW_SECOND);
		write_name(out, name, "bucket", space, bound);
		fprintf(out, "%" PRIu64 "\n", count);
	}
	write_name(out, name, "sum", space, NULL);
	fprintf(out, "%" PRIu64 ".%06" PRIu64 "\n", histogram->total_us / 1000000,
		histogram->total_us % 1000000);
	write_name(out, name, "count", space, NULL);
	fprintf(out, "%" PRIu64 "\n", count);
}

static void write_histograms(FILE *out, const struct board *board)
{
	metric_head(out, "lateness_seconds", "histogram",
		    "Time from the due time of a task to the start of its run.");
	for (size_t i = 0; i < board->space_count; i++)
		write_histogram(out, "lateness_seconds", label_of(board, i),
				&board->spaces[i].runs.lateness);
	metric_head(out, "duration_seconds", "histogram", "Duration of runs.");
	for (size_t i = 0; i < board->space_count; i++)
		write_histogram(out, "duration_seconds", label_of(board, i),
				&board->spaces[i].runs.duration);
}

char *pages_metrics(const struct board *board)
{
	const struct figure_row worker = {.of = &board->figures};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (!out)
		return NULL;
	figures_metrics(out, FIGURES_OF_WORKER, &worker, 1);
	if (board->figures.redis_up) {
		write_spaces(out, board, FIGURES_OF_TASKS);
		write_groups(out, board);
	}
	write_spaces(out, board, FIGURES_OF_RUNS);
	write_hosts(out, board);
	write_histograms(out, board);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	if (failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- JSON ---- */

/* Adds the object with its namespace to the array. */
static void row_append(json_t *array, json_t *object, const char *name_space)
{
	json_object_set_new(object, "namespace", json_string(name_space));
	json_array_append_new(array, object);
}

char *pages_status(const struct board *board)
{
	const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6);
	json_t *object = figures_json(FIGURES_OF_WORKER, &board->figures);
	json_t *tasks = json_array();
	json_t *runs = json_array();
	json_t *groups = json_array();
	json_t *hosts = json_array();
	char *text;

	for (size_t i = 0; i < board->space_count; i++) {
		const struct board_space *space = &board->spaces[i];

		row_append(runs, figures_json(FIGURES_OF_RUNS, &space->runs), space->name);
		if (board->figures.redis_up)
			row_append(tasks, figures_json(FIGURES_OF_TASKS, &space->tasks),
				   space->name);
		for (size_t k = 0; board->figures.redis_up && k < space->group_count; k++)
			row_append(groups, figures_json(FIGURES_OF_GROUP, &space->groups[k]),
				   space->name);
	}
	for (size_t i = 0; i < board->host_count; i++)
		json_array_append_new(hosts, figures_json(FIGURES_OF_HOST, &board->hosts[i]));
	json_object_set_new(object, "tasks", tasks);
	json_object_set_new(object, "runs", runs);
	json_object_set_new(object, "groups", groups);
	json_object_set_new(object, "hosts", hosts);
	text = json_dumps(object, flags);
	json_decref(object);
	return text;
}
