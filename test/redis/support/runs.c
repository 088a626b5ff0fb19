/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/runs.h"

#include "support/fixture.h"
#include "support/sockets.h"
#include "support/ends.h"
#include "support/wait.h"

struct runs runs = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

static void copy(char *text, size_t room, const void *bytes, size_t size)
{
	snprintf(text, room, "%.*s", (int)size, size ? (const char *)bytes : "");
}

static enum tw_redis_outcome behave(void *context, const struct tw_redis_job *job,
				    struct tw_redis_verdict *verdict)
{
	enum tw_redis_outcome outcome;
	tw_duration takes;

	pthread_mutex_lock(&runs.lock);
	if (runs.run_count < RUNS_ROOM) {
		struct run_seen *run = &runs.runs[runs.run_count];

		copy(run->key, sizeof(run->key), job->key, job->key_size);
		copy(run->body, sizeof(run->body), job->body, job->body_size);
		copy(run->name_space, sizeof(run->name_space), job->name_space,
		     strlen(job->name_space));
		run->attempt = job->attempt;
		run->token = job->token;
		run->due_ms = job->due_ms;
		run->began = wall_clock();
		run->lateness = job->lateness;
	}
	runs.run_count++;
	runs.running++;
	while (runs.gate_is_shut)
		pthread_cond_wait(&runs.opened, &runs.lock);
	takes = runs.takes;
	pthread_mutex_unlock(&runs.lock);
	if (takes)
		wait_for(takes);
	pthread_mutex_lock(&runs.lock);
	outcome = runs.outcome;
	verdict->retry_in = runs.retry_in;
	if (runs.reason)
		snprintf(verdict->reason, sizeof(verdict->reason), "%s", runs.reason);
	runs.running--;
	pthread_mutex_unlock(&runs.lock);
	return outcome;
}

static void record_end(void *context, const struct tw_redis_report *report)
{
	pthread_mutex_lock(&runs.lock);
	if (runs.end_count < RUNS_ROOM) {
		struct end_seen *end = &runs.ends[runs.end_count];

		copy(end->key, sizeof(end->key), report->job->key, report->job->key_size);
		end->end = report->end;
		end->token = report->job->token;
		end->http_status = report->http_status;
		end->retry_in = report->retry_in;
		end->took = report->took;
		snprintf(end->reason, sizeof(end->reason), "%s", report->reason);
	}
	runs.end_count++;
	pthread_mutex_unlock(&runs.lock);
}

static void record_connection(void *context, const struct tw_redis_error *error)
{
	pthread_mutex_lock(&runs.lock);
	/* A changed reason is no other loss. */
	runs.lost += error && runs.lost == runs.found;
	runs.found += error == NULL;
	if (error) {
		runs.errors++;
		runs.error_last = *error;
	}
	pthread_mutex_unlock(&runs.lock);
}

static void record_notice(void *context, const struct tw_redis_error *error)
{
	pthread_mutex_lock(&runs.lock);
	runs.notices++;
	runs.notice_last = *error;
	pthread_mutex_unlock(&runs.lock);
}

void runs_reset(void)
{
	pthread_mutex_lock(&runs.lock);
	memset(&runs.run_count, 0, sizeof(runs) - offsetof(struct runs, run_count));
	pthread_mutex_unlock(&runs.lock);
}

static void runs_end(void *of)
{
	runs_reset();
}

void runs_attach(struct tw_redis_worker_options *options)
{
	at_end_not(&runs);
	at_end(runs_end, &runs);
	options->context = &runs;
	options->handler = behave;
	options->report = record_end;
	options->connection = record_connection;
	options->notice = record_notice;
}

static void worker_end(void *worker)
{
	worker_stop(worker);
}

struct tw_redis_worker *worker_start(const struct tw_redis_options *redis,
				     const struct tw_redis_worker_options *options)
{
	struct tw_redis_error error = {0};
	struct tw_redis_worker *worker = NULL;

	if (tw_redis_worker_start(&worker, redis, options, &error) != TW_OK)
		fail_msg("%s: %s", tw_status_name(error.status), error.text);
	at_end(worker_end, worker);
	return worker;
}

struct tw_redis_worker *worker_run(const struct tw_redis_options *redis,
				   struct tw_redis_worker_options options)
{
	runs_attach(&options);
	return worker_start(redis, &options);
}

void worker_stop(struct tw_redis_worker *worker)
{
	assert_int_equal(tw_redis_worker_stop(worker, 10 * TW_SECOND), TW_OK);
	worker_destroy(worker);
}

void worker_destroy(struct tw_redis_worker *worker)
{
	at_end_not(worker);
	assert_int_equal(tw_redis_worker_destroy(worker), TW_OK);
}

struct tw_redis_worker_stats worker_stats(struct tw_redis_worker *worker)
{
	struct tw_redis_worker_stats stats = {0};

	assert_int_equal(tw_redis_worker_get_stats(worker, NULL, &stats), TW_OK);
	return stats;
}

void runs_open_gate(void)
{
	pthread_mutex_lock(&runs.lock);
	runs.gate_is_shut = false;
	pthread_cond_broadcast(&runs.opened);
	pthread_mutex_unlock(&runs.lock);
}

size_t runs_count(void)
{
	return locked_read(&runs.lock, &runs.run_count);
}

size_t runs_running(void)
{
	return locked_read(&runs.lock, &runs.running);
}

size_t ends_count(void)
{
	return locked_read(&runs.lock, &runs.end_count);
}

size_t runs_lost(void)
{
	return locked_read(&runs.lock, &runs.lost);
}

size_t runs_errors(struct tw_redis_error *last)
{
	size_t count;

	pthread_mutex_lock(&runs.lock);
	count = runs.errors;
	*last = runs.error_last;
	pthread_mutex_unlock(&runs.lock);
	return count;
}

size_t runs_notices(struct tw_redis_error *last)
{
	size_t count;

	pthread_mutex_lock(&runs.lock);
	count = runs.notices;
	*last = runs.notice_last;
	pthread_mutex_unlock(&runs.lock);
	return count;
}

size_t runs_found(void)
{
	return locked_read(&runs.lock, &runs.found);
}

size_t runs_count_of(const char *key)
{
	size_t count = 0;

	pthread_mutex_lock(&runs.lock);
	for (size_t i = 0; i < runs.run_count && i < RUNS_ROOM; i++)
		count += !strcmp(runs.runs[i].key, key);
	pthread_mutex_unlock(&runs.lock);
	return count;
}

size_t ends_count_of(const char *key, enum tw_redis_end end)
{
	size_t count = 0;

	pthread_mutex_lock(&runs.lock);
	for (size_t i = 0; i < runs.end_count && i < RUNS_ROOM; i++)
		count += runs.ends[i].end == end && (!key || !strcmp(runs.ends[i].key, key));
	pthread_mutex_unlock(&runs.lock);
	return count;
}

struct run_seen run_of(const char *key, size_t index)
{
	struct run_seen run = {0};
	bool found = false;

	pthread_mutex_lock(&runs.lock);
	for (size_t i = 0; i < runs.run_count && i < RUNS_ROOM && !found; i++) {
		run = runs.runs[i];
		found = (!key || !strcmp(run.key, key)) && !index--;
	}
	pthread_mutex_unlock(&runs.lock);
	assert_true(found);
	return run;
}

struct end_seen end_of(const char *key, size_t index)
{
	struct end_seen end = {0};
	bool found = false;

	pthread_mutex_lock(&runs.lock);
	for (size_t i = 0; i < runs.end_count && i < RUNS_ROOM && !found; i++) {
		end = runs.ends[i];
		found = (!key || !strcmp(end.key, key)) && !index--;
	}
	pthread_mutex_unlock(&runs.lock);
	assert_true(found);
	return end;
}

void assert_each_ran(int count, size_t most)
{
	char key[KEY_SIZE];

	for (int i = 0; i < count; i++) {
		number_key(key, i);
		assert_in_range(runs_count_of(key), 1, most);
	}
}
