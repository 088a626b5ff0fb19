/* SPDX-License-Identifier: MIT */
/*
 * status_page.c writes JSON with the names of the metrics. Keys, reasons and hosts, which others
 * chose, are text: a key is as in a callback's header, and so is a reason that is no UTF-8. Unknown
 * values are null.
 */
#include "status_page.h"

#include <stdlib.h>
#include <string.h>

#include "when.h"

static void set_count(json_t *object, const char *name, uint64_t count)
{
	json_object_set_new(object, name, json_integer((json_int_t)count));
}

/* Returns null for a negative number. */
static json_t *json_seconds(double seconds)
{
	return seconds < 0 ? json_null() : json_real(seconds);
}

static json_t *json_printable(const void *bytes, size_t size)
{
	char *text = malloc(3 * size + 1);
	json_t *string = NULL;

	if (text) {
		tw_redis_write_key(bytes, size, text);
		string = json_string(text);
	}
	free(text);
	return string;
}

json_t *status_page_tasks(const struct tw_redis_stats *tasks)
{
	json_t *object = json_object();

	set_count(object, "scheduled", tasks->tasks - tasks->started);
	set_count(object, "started", tasks->started);
	set_count(object, "due", tasks->due);
	set_count(object, "dead", tasks->dead);
	set_count(object, "added", tasks->added);
	set_count(object, "missing_shards", tasks->missing);
	json_object_set_new(object, "oldest_due_s", json_real(tasks_oldest_due(tasks)));
	return object;
}

/* Returns null until Redis has answered. */
static json_t *json_tasks(const struct figures *figures, const struct tw_redis_stats *tasks)
{
	return figures->answer_age == TW_FOREVER ? json_null() : status_page_tasks(tasks);
}

static json_t *json_redis(const struct figures *figures)
{
	json_t *object = json_object();

	json_object_set_new(object, "up", json_boolean(figures->answered));
	json_object_set_new(object, "answer_age_s",
			    figures->answer_age == TW_FOREVER
				    ? json_null()
				    : json_real((double)figures->answer_age / TW_SECOND));
	set_count(object, "round_trips", figures->worker.round_trips);
	set_count(object, "losses", figures->worker.losses);
	set_count(object, "reconnects", figures->worker.reconnects);
	return object;
}

static void set_runs(json_t *object, const struct tw_redis_worker_stats *stats)
{
	set_count(object, "running", stats->running);
	set_count(object, "held", stats->held);
	set_count(object, "claimed", stats->claimed);
	set_count(object, "done", stats->done);
	set_count(object, "retried", stats->retried);
	set_count(object, "dead", stats->dead);
	set_count(object, "skipped", stats->skipped);
	set_count(object, "snoozed", stats->snoozed);
	set_count(object, "stale", stats->stale);
	set_count(object, "released", stats->released);
	set_count(object, "unconfirmed", stats->unconfirmed);
	set_count(object, "put_off", stats->put_off);
}

static json_t *json_worker(const struct figures *figures, const char *name)
{
	const struct tw_redis_worker_stats *stats = &figures->worker;
	json_t *object = json_object();

	json_object_set_new(object, "name", json_printable(name, strlen(name)));
	json_object_set_new(object, "uptime_s", json_real((double)figures->uptime / TW_SECOND));
	json_object_set_new(object, "loop_age_s", json_real((double)stats->turned / TW_SECOND));
	set_runs(object, stats);
	return object;
}

static json_t *json_spaces(const struct figures *figures)
{
	json_t *array = json_array();

	for (size_t i = 0; i < figures->space_count; i++) {
		const struct space_figures *space = &figures->spaces[i];
		json_t *object = json_object();

		json_object_set_new(object, "name", json_string(space->name));
		json_object_set_new(object, "paused", json_boolean(space->tasks.paused));
		json_object_set_new(object, "tasks", json_tasks(figures, &space->tasks));
		set_runs(object, &space->worker);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_groups(const struct figures *figures)
{
	json_t *array = json_array();

	for (size_t i = 0; i < figures->space_count; i++) {
		const struct space_figures *space = &figures->spaces[i];

		for (size_t k = 0; k < space->group_count; k++) {
			const struct tw_redis_group_stats *group = &space->groups[k];
			json_t *object = json_object();

			json_object_set_new(object, "name",
					    json_printable(group->name, strlen(group->name)));
			json_object_set_new(object, "namespace", json_string(space->name));
			set_count(object, "waiting", group->waiting);
			set_count(object, "running", group->running);
			json_object_set_new(object, "oldest_due_s",
					    json_real(group_oldest_due(space, group)));
			json_array_append_new(array, object);
		}
	}
	return array;
}

static json_t *json_second(const struct second *second)
{
	json_t *object = json_object();

	json_object_set_new(object, "claimed", json_real(second->claimed));
	json_object_set_new(object, "done", json_real(second->done));
	json_object_set_new(object, "retried", json_real(second->retried));
	json_object_set_new(object, "dead", json_real(second->dead));
	json_object_set_new(object, "late_p50_s", json_seconds(second->late_half));
	json_object_set_new(object, "late_p99_s", json_seconds(second->late_most));
	return object;
}

static json_t *json_all_seconds(const struct figures *figures)
{
	json_t *array = json_array();

	for (size_t i = 0; i < figures->second_count; i++)
		json_array_append_new(array, json_second(&figures->seconds[i]));
	return array;
}

static json_t *json_hosts(const struct figures *figures)
{
	static const char *const answers[TW_REDIS_ANSWERS] = {"none", "1xx", "2xx",
							      "3xx",  "4xx", "5xx"};
	json_t *array = json_array();

	for (size_t i = 0; i < figures->host_count; i++) {
		const char *name = i ? figures->hosts[i].name : "other";
		json_t *object = json_object();

		json_object_set_new(object, "host", json_printable(name, strlen(name)));
		for (unsigned k = 0; k < TW_REDIS_ANSWERS; k++)
			set_count(object, answers[k], figures->hosts[i].answers[k]);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_colleagues(const struct figures *figures)
{
	json_t *array = json_array();

	for (size_t i = 0; i < figures->colleague_count; i++) {
		const struct tw_redis_worker_info *info = &figures->colleagues[i].info;
		const char *space = figures->spaces[figures->colleagues[i].space].name;
		json_t *object = json_object();

		json_object_set_new(object, "name", json_printable(info->name, strlen(info->name)));
		json_object_set_new(object, "namespace", json_string(space));
		json_object_set_new(object, "uptime_s", json_real((double)info->up / TW_SECOND));
		json_object_set_new(object, "report_age_s",
				    json_real((double)info->report_age / TW_SECOND));
		set_count(object, "running", info->running);
		set_count(object, "held", info->held);
		set_count(object, "done", info->done);
		set_count(object, "retried", info->retried);
		set_count(object, "dead", info->dead);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_letter(const struct figures *figures, const struct letter *letter)
{
	size_t size = strlen(letter->reason);
	json_t *reason = json_stringn(letter->reason, size);
	json_t *object = json_object();
	char died[WHEN_SIZE];

	json_object_set_new(object, "namespace", json_string(figures->spaces[letter->space].name));
	json_object_set_new(object, "key", json_printable(letter->key, letter->key_size));
	json_object_set_new(object, "died", json_string(time_write(letter->died_ms, died)));
	set_count(object, "attempts", letter->attempts);
	json_object_set_new(object, "reason",
			    reason ? reason : json_printable(letter->reason, size));
	return object;
}

static json_t *json_letters(const struct figures *figures)
{
	const struct letters *letters = &figures->letters;
	json_t *array = json_array();

	for (size_t i = 0; i < letters->count; i++)
		json_array_append_new(array, json_letter(figures, &letters->rows[i]));
	return array;
}

char *status_page_write(const struct figures *figures, const char *name)
{
	json_t *object = json_object();
	json_t *workers = json_array();
	const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6);
	char *text;

	json_object_set_new(object, "ready", json_boolean(figures_are_ready(figures)));
	json_object_set_new(object, "redis", json_redis(figures));
	json_object_set_new(object, "tasks", json_tasks(figures, &figures->tasks));
	json_object_set_new(object, "namespaces", json_spaces(figures));
	json_object_set_new(object, "groups", json_groups(figures));
	json_array_append_new(workers, json_worker(figures, name));
	json_object_set_new(object, "workers", workers);
	json_object_set_new(object, "all_workers", json_colleagues(figures));
	json_object_set_new(object, "seconds", json_all_seconds(figures));
	json_object_set_new(object, "hosts", json_hosts(figures));
	json_object_set_new(object, "letters", json_letters(figures));
	json_object_set_new(object, "letters_cut", json_boolean(figures->letters.cut));
	text = json_dumps(object, flags);
	json_decref(object);
	return text;
}
