/* SPDX-License-Identifier: MIT */
/*
 * pages.c makes the metrics and /status.json from the table of figures. What Redis counts is left
 * out while it does not answer, because an old count is wrong. If a worker serves several
 * namespaces, each one's metrics have the label `namespace`. Times are in seconds.
 */
#include "pages.h"

#include <stdlib.h>

enum { ROWS_MAX = TW_REDIS_SOURCES_MAX * BOARD_GROUPS };

/* ---- Metrics ---- */

/* Sets the board's rows of the scope, each with its namespace, and returns their number. What Redis
 * counts has none while it does not answer. */
static size_t rows_of(const struct board *board, enum figure_scope scope,
		      struct figure_row rows[ROWS_MAX])
{
	bool of_redis = scope == FIGURES_OF_TASKS || scope == FIGURES_OF_GROUP;
	size_t count = 0;

	if (of_redis && !board->figures.redis_up)
		return 0;
	for (size_t i = 0; i < board->space_count; i++) {
		const struct board_space *space = &board->spaces[i];
		struct figure_row row = {.of = &space->tasks,
					 .name_space = space->name,
					 .now_ms = space->tasks.stats.now_ms};

		if (scope == FIGURES_OF_RUNS || scope == FIGURES_OF_TIMES)
			row.of = &space->runs;
		if (scope != FIGURES_OF_GROUP)
			rows[count++] = row;
		for (size_t k = 0; scope == FIGURES_OF_GROUP && k < space->group_count; k++) {
			row.of = &space->groups[k];
			rows[count++] = row;
		}
	}
	return count;
}

static void write_rows(FILE *out, const struct board *board, enum figure_scope scope)
{
	struct figure_row rows[ROWS_MAX];
	size_t count = rows_of(board, scope, rows);

	for (size_t i = 0; board->space_count == 1 && i < count; i++)
		rows[i].name_space = NULL;
	figures_metrics(out, scope, rows, count);
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
	write_rows(out, board, FIGURES_OF_TASKS);
	write_rows(out, board, FIGURES_OF_GROUP);
	write_rows(out, board, FIGURES_OF_RUNS);
	write_rows(out, board, FIGURES_OF_TIMES);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	if (failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- JSON ---- */

/* Returns the rows of the scope, each with its namespace. */
static json_t *rows_json(const struct board *board, enum figure_scope scope)
{
	struct figure_row rows[ROWS_MAX];
	size_t count = rows_of(board, scope, rows);
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *object = figures_json(scope, rows[i].of);

		json_object_set_new(object, "namespace", json_string(rows[i].name_space));
		json_array_append_new(array, object);
	}
	return array;
}

char *pages_status(const struct board *board)
{
	const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6);
	json_t *object = figures_json(FIGURES_OF_WORKER, &board->figures);
	char *text;

	json_object_set_new(object, "tasks", rows_json(board, FIGURES_OF_TASKS));
	json_object_set_new(object, "runs", rows_json(board, FIGURES_OF_RUNS));
	json_object_set_new(object, "groups", rows_json(board, FIGURES_OF_GROUP));
	text = json_dumps(object, flags);
	json_decref(object);
	return text;
}
