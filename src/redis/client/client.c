/* SPDX-License-Identifier: MIT */
/*
 * client.c opens a handle, and has the calls about one task. A script returns a number ≥ 0, such as
 * a due time, or one < 0 that says why it did nothing.
 */
#include "client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/reserved.h"
#include "record.h"
#include "recurrence.h"
#include "redis/wire/tls.h"

/* This is the layout of a namespace's keys. The library can read no other one. */
enum { LAYOUT_VERSION = 1, LAYOUT_SIZE = 32 };

/* Returns microseconds, rounded up, so that nothing is early. A delay ≤ 0 is 0. */
static int64_t delay_to_us(tw_duration delay)
{
	return delay <= 0 ? 0 : (delay - 1) / TW_MICROSECOND + 1;
}

int64_t delay_to_ms(tw_duration delay)
{
	return delay <= 0 ? 0 : (delay - 1) / TW_MILLISECOND + 1;
}

/* Returns the status of the script's number at `place` of its reply. */
static enum tw_status answer_status(const struct eval *eval, size_t place)
{
	static const enum tw_status refusals[] = {TW_EXISTS, TW_NOT_FOUND, TW_RUNNING};
	int64_t answer = eval_integer(eval, place, INT64_MIN);

	if (answer >= 0)
		return TW_OK;
	return answer >= -3 ? refusals[-answer - 1] : TW_REDIS_FAILED;
}

static enum tw_status layout_compare(const struct space *space, const redisReply *reply,
				     struct tw_redis_error *error)
{
	unsigned version = 0;
	unsigned shards = 0;

	if (sscanf(reply->str, "%u %u", &version, &shards) != 2)
		return error_set(error, TW_REDIS_UNFIT, "the namespace's layout can't be read");
	if (version != LAYOUT_VERSION || shards != space->shards)
		return error_set(error, TW_REDIS_UNFIT,
				 "namespace %s has layout %u with %u shards, expected %d with %u",
				 space->name, version, shards, LAYOUT_VERSION, space->shards);
	return TW_OK;
}

/* Checks that the handle has the number of shards that the namespace's first user has written. */
static enum tw_status layout_check(struct tw_redis *redis, struct tw_redis_error *error)
{
	struct call *call = call_begin(&redis->access->calls);
	char value[LAYOUT_SIZE];
	enum tw_status status;

	if (!call)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	snprintf(value, sizeof(value), "%d %u", LAYOUT_VERSION, redis->space.shards);
	eval_begin(&call->eval, &script_layout, &redis->space, SHARD_LAYOUT);
	eval_text(&call->eval, value);
	status = call_ask(redis, call);
	if (status == TW_OK)
		status = layout_compare(&redis->space, call->eval.reply, &call->error);
	if (status != TW_OK && error)
		*error = call->error;
	if (error)
		error->status = status;
	return call_end(&redis->access->calls, call, status);
}

static enum tw_status open_router(struct tw_redis *redis, struct tw_redis_error *error)
{
	enum tw_status status;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	status = router_open(&redis->access->router, &redis->access->settings);
	pthread_setcancelstate(state, &state);
	redis->access->one_server = !redis->access->router.map.cluster;
	if (status != TW_OK && error) {
		*error = redis->access->router.error;
		error->status = status;
	}
	return status;
}

static struct tw_redis *handle_create(void)
{
	struct tw_redis *redis = calloc(1, sizeof(*redis));

	if (redis)
		redis->access = calloc(1, sizeof(*redis->access));
	if (redis && redis->access) {
		atomic_init(&redis->access->handles, 1);
		calls_init(&redis->access->calls, &redis->access->router);
		return redis;
	}
	free(redis);
	return NULL;
}

static enum tw_status handle_open(struct tw_redis **redis, const struct tw_redis_options *options,
				  struct tw_redis_error *error)
{
	struct tw_redis *opened = handle_create();
	struct settings *settings;
	enum tw_status status;

	if (!opened)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	settings = &opened->access->settings;
	status = settings_read(settings, options, error);
	if (status == TW_OK)
		status = tls_context_create(settings, error);
	if (status == TW_OK) {
		opened->space = settings->space;
		status = open_router(opened, error);
	}
	if (status == TW_OK) {
		tw_duration patience = tw_redis_set_patience(-1);

		status = layout_check(opened, error);
		tw_redis_set_patience(patience);
	}
	if (status != TW_OK) {
		tw_redis_close(opened);
		return status;
	}
	*redis = opened;
	return TW_OK;
}

enum tw_status tw_redis_open(struct tw_redis **redis, const struct tw_redis_options *options,
			     struct tw_redis_error *error)
{
	static const struct tw_redis_options defaults;
	struct tw_redis_error failure = {0};
	enum tw_status status;

	if (redis)
		*redis = NULL;
	if (!redis)
		status = error_set(&failure, TW_INVALID, "the result pointer is NULL");
	else
		status = handle_open(redis, options ? options : &defaults, &failure);
	if (error)
		*error = failure;
	return status;
}

static enum tw_status handle_open_beside(struct tw_redis *redis, const char *name_space,
					 unsigned shards, struct tw_redis **beside,
					 struct tw_redis_error *error)
{
	struct tw_redis *opened;
	enum tw_status status;

	if (!beside)
		return error_set(error, TW_INVALID, "the result pointer is NULL");
	*beside = NULL;
	if (!redis)
		return error_set(error, TW_INVALID, "the handle is NULL");
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	status = space_read(&opened->space, name_space, shards, error);
	if (status != TW_OK) {
		free(opened);
		return status;
	}
	opened->access = redis->access;
	/* relaxed: the caller has a handle, so it is not freed meanwhile */
	atomic_fetch_add_explicit(&opened->access->handles, 1, memory_order_relaxed);
	status = layout_check(opened, error);
	if (status != TW_OK) {
		tw_redis_close(opened);
		return status;
	}
	*beside = opened;
	return TW_OK;
}

enum tw_status tw_redis_open_beside(struct tw_redis *redis, const char *name_space, unsigned shards,
				    struct tw_redis **beside, struct tw_redis_error *error)
{
	struct tw_redis_error failure = {0};
	enum tw_status status = handle_open_beside(redis, name_space, shards, beside, &failure);

	if (error)
		*error = failure;
	return status;
}

static void access_free(struct access *access)
{
	calls_destroy(&access->calls);
	router_close(&access->router);
	tls_context_free(&access->settings);
	settings_free(&access->settings);
	free(access);
}

void tw_redis_close(struct tw_redis *redis)
{
	if (!redis)
		return;
	/* release: publishes what this handle's calls have done; acquire: the last one sees what
	 * those of all others have; each pairs with the other here */
	if (atomic_fetch_sub_explicit(&redis->access->handles, 1, memory_order_acq_rel) == 1 &&
	    calls_are_quiet(&redis->access->calls))
		access_free(redis->access);
	free(redis);
}

void tw_redis_last_error(struct tw_redis *redis, struct tw_redis_error *error)
{
	if (!redis || !error)
		return;
	if (!calls_are_own(&redis->access->calls)) {
		error_set(error, TW_INVALID, CALLS_INHERITED);
		return;
	}
	pthread_mutex_lock(&redis->access->calls.lock);
	*error = redis->access->calls.error;
	pthread_mutex_unlock(&redis->access->calls.lock);
}

unsigned tw_redis_shard(const struct tw_redis *redis, const void *key, size_t key_size)
{
	return redis && key ? space_shard(&redis->space, key, key_size) : 0;
}

void tw_redis_write_key(const void *key, size_t key_size, char *text)
{
	const unsigned char *bytes = key;

	for (size_t i = 0; i < key_size; i++)
		if (bytes[i] <= ' ' || bytes[i] >= 0x7f || bytes[i] == '%')
			text += sprintf(text, "%%%02X", bytes[i]);
		else
			*text++ = (char)bytes[i];
	*text = '\0';
}

unsigned tw_redis_shard_count(const struct tw_redis *redis)
{
	return redis ? redis->space.shards : 0;
}

enum tw_status call_enter(struct tw_redis *redis, const struct script *script, const void *key,
			  size_t key_size, struct call **call)
{
	if (!redis || !key || !key_size || key_size > TW_REDIS_KEY_MAX)
		return TW_INVALID;
	*call = call_begin(&redis->access->calls);
	if (!*call)
		return TW_NO_MEMORY;
	eval_begin(&(*call)->eval, script, &redis->space,
		   space_shard(&redis->space, key, key_size));
	return TW_OK;
}

enum tw_status call_ask(struct tw_redis *redis, struct call *call)
{
	call_run(&redis->access->calls, call, &call->eval, 1);
	return call->eval.status;
}

/* Runs an eval that is answered by a number, and ends the call. *due_ms may be NULL. */
static enum tw_status call_answer(struct tw_redis *redis, struct call *call, int64_t *due_ms)
{
	enum tw_status status = call_ask(redis, call);

	if (status == TW_OK) {
		status = answer_status(&call->eval, 0);
		if (status != TW_OK)
			error_set(&call->error, status, "%s", tw_status_text(status));
		else if (due_ms)
			*due_ms = eval_integer(&call->eval, 0, 0);
	}
	return call_end(&redis->access->calls, call, status);
}

enum tw_status tw_redis_ping(struct tw_redis *redis, tw_duration *took)
{
	tw_duration start = clock_read_real(CLOCK_MONOTONIC);
	struct call *call;
	enum tw_status status;

	if (!redis)
		return TW_INVALID;
	call = call_begin(&redis->access->calls);
	if (!call)
		return TW_NO_MEMORY;
	eval_begin(&call->eval, &script_count, &redis->space, 0);
	status = call_end(&redis->access->calls, call, call_ask(redis, call));
	if (status == TW_OK && took)
		*took = clock_read_real(CLOCK_MONOTONIC) - start;
	return status;
}

static const char *const mode_names[] = {"any", "new", "replace"};

static bool recurs(const struct tw_redis_task *task)
{
	return task->every || task->cron;
}

/* Returns the script that adds the task. */
static const struct script *add_script(const struct tw_redis_task *task)
{
	if (recurs(task))
		return &script_every;
	if (task->latest)
		return &script_latest;
	return task->group ? &script_group_add : &script_add;
}

/* Asks for the time of the server that has the task's shard. */
static enum tw_status time_ask(struct tw_redis *redis, struct call *call,
			       const struct tw_redis_task *task, int64_t *now_ms)
{
	struct eval *eval = &call->eval;
	enum tw_status status;

	/* The list has no task, only the time. */
	eval_begin(eval, &script_list, &redis->space,
		   space_shard(&redis->space, task->key, task->key_size));
	eval_text(eval, "+inf");
	eval_number(eval, 0);
	eval_number(eval, 0);
	status = call_ask(redis, call);
	*now_ms = status == TW_OK ? eval_integer(eval, 0, 0) : 0;
	return status;
}

/* Checks the task and makes its record. *at_ms is its time, for the script. */
static enum tw_status add_prepare(struct call *call, const struct tw_redis_task *task,
				  int64_t now_ms, int64_t *at_ms)
{
	enum tw_status status = task_check(task, &call->error);

	if (status == TW_OK)
		status = record_write(&call->record, task, 0, &call->error);
	if (status != TW_OK)
		return status;
	*at_ms = task->at_ms;
	return task->cron ? recurrence_first(task, now_ms, at_ms, &call->error) : TW_OK;
}

/* Adds the task to an eval for its shard, or for many. */
static void add_write(const struct call *call, struct eval *eval, const struct tw_redis_task *task,
		      int64_t at_ms)
{
	if (eval->script == &script_add_many || eval->script == &script_group_add)
		eval_number(eval, space_shard(eval->space, task->key, task->key_size));
	eval_text(eval, mode_names[task->mode]);
	eval_argument(eval, task->key, task->key_size);
	eval_number(eval, at_ms);
	eval_number(eval, delay_to_us(task->delay));
	eval_argument(eval, call->record.data, call->record.size);
	if (eval->script == &script_every)
		recurrence_write(task, eval);
	else if (eval->script == &script_latest)
		eval_number(eval, delay_to_us(task->latest));
	else
		eval->answers++;
}

/* Writes a letter without its record: mode, key, time of death, "died:attempts:size of
 * reason:reason". */
static void letter_write(const struct tw_redis_info *letter, struct eval *eval)
{
	const char *reason = letter->reason ? letter->reason : "";
	char head[64 + TW_REDIS_REASON_MAX];

	eval_text(eval, mode_names[letter->task.mode]);
	eval_argument(eval, letter->task.key, letter->task.key_size);
	eval_number(eval, letter->due_ms);
	snprintf(head, sizeof(head), "%" PRId64 ":%u:%zu:%.*s", letter->due_ms, letter->attempts,
		 strnlen(reason, TW_REDIS_REASON_MAX), TW_REDIS_REASON_MAX, reason);
	eval_text(eval, head);
}

/* Checks a listed task or letter and makes its record. */
static enum tw_status restore_prepare(struct call *call, const struct tw_redis_info *info)
{
	const int64_t times[] = {info->due_ms, info->latest_due_ms, info->task.at_ms};
	int count = info->state == TW_REDIS_DEAD ? 2 : 3;
	struct tw_redis_task task = info->task;
	enum tw_status status = TW_OK;
	int64_t at_ms;

	if (!reserved_are_0(info->reserved))
		return error_set(&call->error, TW_INVALID, "a reserved field is not 0");
	task.delay = 0;
	task.latest = 0;
	for (int i = 0; i < count && status == TW_OK; i++) {
		task.at_ms = times[i];
		status = task_check(&task, &call->error);
	}
	if (status == TW_OK)
		status = record_write(&call->record, &task, info->latest_due_ms, &call->error);
	if (status != TW_OK || info->state == TW_REDIS_DEAD || !task.cron)
		return status;
	return recurrence_first(&task, 0, &at_ms, &call->error);
}

/* Adds a task or a dead letter to an eval for its shard. */
static void restore_write(const struct call *call, struct eval *eval,
			  const struct tw_redis_info *info)
{
	const struct tw_redis_task *task = &info->task;
	char entry[RECURRENCE_SIZE];

	if (info->state == TW_REDIS_DEAD) {
		letter_write(info, eval);
		eval_argument(eval, call->record.data, call->record.size);
		return;
	}
	eval_text(eval, mode_names[task->mode]);
	eval_argument(eval, task->key, task->key_size);
	eval_number(eval, info->due_ms);
	eval_number(eval, info->attempts);
	eval_argument(eval, call->record.data, call->record.size);
	recurrence_write_entry(task, task->at_ms ? task->at_ms : info->due_ms, entry);
	eval_text(eval, entry);
	eval->answers++;
}

enum tw_status tw_redis_add(struct tw_redis *redis, const struct tw_redis_task *task,
			    int64_t *due_ms)
{
	const struct script *script;
	struct call *call;
	enum tw_status status;
	int64_t now_ms = 0;
	int64_t at_ms;

	if (!task)
		return TW_INVALID;
	script = add_script(task);
	status = call_enter(redis, script, task->key, task->key_size, &call);
	if (status != TW_OK)
		return status;
	if (task->cron) {
		status = time_ask(redis, call, task, &now_ms);
		eval_begin(&call->eval, script, &redis->space, call->eval.shard);
	}
	if (status == TW_OK)
		status = add_prepare(call, task, now_ms, &at_ms);
	if (status != TW_OK)
		return call_end(&redis->access->calls, call, status);
	add_write(call, &call->eval, task, at_ms);
	eval_hint(&call->eval);
	return call_answer(redis, call, due_ms);
}

/* Runs a script about the key alone. `more` is another argument, or NULL. */
static enum tw_status key_call(struct tw_redis *redis, const struct script *script, const void *key,
			       size_t key_size, const char *more)
{
	struct call *call;
	enum tw_status status = call_enter(redis, script, key, key_size, &call);

	if (status != TW_OK)
		return status;
	eval_argument(&call->eval, key, key_size);
	if (more)
		eval_text(&call->eval, more);
	if (script->hints)
		eval_hint(&call->eval);
	return call_answer(redis, call, NULL);
}

enum tw_status tw_redis_cancel(struct tw_redis *redis, const void *key, size_t key_size)
{
	return key_call(redis, &script_cancel, key, key_size, "0");
}

enum tw_status tw_redis_end(struct tw_redis *redis, const void *key, size_t key_size)
{
	return key_call(redis, &script_cancel, key, key_size, "1");
}

enum tw_status tw_redis_dead_retry(struct tw_redis *redis, const void *key, size_t key_size)
{
	return key_call(redis, &script_dead_retry, key, key_size, NULL);
}

enum tw_status tw_redis_dead_drop(struct tw_redis *redis, const void *key, size_t key_size)
{
	return key_call(redis, &script_dead_drop, key, key_size, NULL);
}

enum tw_status tw_redis_move(struct tw_redis *redis, const void *key, size_t key_size,
			     int64_t at_ms, tw_duration delay, int64_t *due_ms)
{
	const struct tw_redis_task moved = {
		.key = key, .key_size = key_size, .at_ms = at_ms, .delay = delay};

	struct call *call;
	enum tw_status status = task_check(&moved, NULL);

	if (status == TW_OK)
		status = call_enter(redis, &script_move, key, key_size, &call);
	if (status != TW_OK)
		return status;
	eval_argument(&call->eval, key, key_size);
	eval_number(&call->eval, at_ms);
	eval_number(&call->eval, delay_to_us(delay));
	eval_hint(&call->eval);
	return call_answer(redis, call, due_ms);
}

enum { ADDS_AT_ONCE = 256 };

/* A work is a task under way: its eval, and the place in that one's reply. */
struct work {
	struct eval *eval; /* NULL means that it has its status already */
	size_t place;
	enum tw_status status;
};

/* Tasks of one server, in a cluster those of one shard, share an eval, because a call costs as much
 * as an add. */
struct adding {
	struct tw_redis *redis;
	struct call *call;
	const struct tw_redis_task *tasks; /* to add, or NULL */
	const struct tw_redis_info *infos; /* to restore, in place of tasks */
	enum tw_status *each;              /* the caller's; may be NULL */
	/* The server's time, or why it is not known, if one of the tasks in work needs it. */
	int64_t now_ms;
	enum tw_status time_status;
	struct tw_redis_error error; /* the first one's that was not added */

	struct eval evals[ADDS_AT_ONCE];
	size_t used;
	const struct script *script; /* the last task's */
	size_t shared;               /* evals from this one on take more tasks of their shard */
	struct work work[ADDS_AT_ONCE];
	/* The shard's eval; valid if it is one of those used and of that shard. */
	uint16_t of_shard[TW_REDIS_SHARDS_MAX];
};

static const struct tw_redis_task *adding_task(const struct adding *adding, size_t index)
{
	return adding->infos ? &adding->infos[index].task : &adding->tasks[index];
}

static enum tw_status adding_prepare(const struct adding *adding, size_t index, int64_t *at_ms)
{
	const struct tw_redis_task *task = adding_task(adding, index);

	if (adding->infos)
		return restore_prepare(adding->call, &adding->infos[index]);
	if (task->cron && adding->time_status != TW_OK)
		return adding->time_status;
	return add_prepare(adding->call, task, adding->now_ms, at_ms);
}

static void adding_note(struct adding *adding, size_t index, const struct eval *eval,
			enum tw_status status)
{
	struct tw_redis_error *error = &adding->call->error;
	int64_t at_ms;

	if (adding->each)
		adding->each[index] = status;
	if (adding->error.status != TW_OK || status == TW_OK)
		return;
	/* Repeat the task's error, because others may have come after it. */
	if (!eval)
		(void)adding_prepare(adding, index, &at_ms);
	else if (eval->status == TW_OK)
		error_set(error, status, "%s", tw_status_text(status));
	adding->error = *error;
	adding->error.status = status;
}

static const struct script *adding_script(const struct adding *adding, size_t index)
{
	const struct script *script;

	if (adding->infos)
		return adding->infos[index].state == TW_REDIS_DEAD ? &script_dead_add
								   : &script_restore;
	script = add_script(&adding->tasks[index]);
	return script == &script_add && adding->redis->access->one_server ? &script_add_many
									  : script;
}

/* Returns whether an eval of the script takes tasks of all shards. */
static bool adding_spans(const struct adding *adding, const struct script *script)
{
	return script == &script_add_many ||
	       (script == &script_group_add && adding->redis->access->one_server);
}

static struct eval *adding_eval(struct adding *adding, size_t number)
{
	const struct tw_redis_task *task = adding_task(adding, number);
	const struct script *script = adding_script(adding, number);
	bool one_server = adding_spans(adding, script);
	/* The other scripts take several tasks. */
	bool alone = *script->shape != '[';
	unsigned shard =
		one_server ? 0 : space_shard(&adding->redis->space, task->key, task->key_size);
	size_t index = adding->of_shard[shard];
	struct eval *eval = &adding->evals[index];

	/* A key that was in an eval of another script must not come into one before that. */
	if (script != adding->script)
		adding->shared = adding->used;
	adding->script = script;

	if (index >= adding->shared && index < adding->used && eval->shard == shard && !alone)
		return eval;
	adding->of_shard[shard] = (uint16_t)adding->used;
	eval = &adding->evals[adding->used++];
	eval_begin(eval, script, &adding->redis->space, shard);
	eval->one_server = one_server;
	/* Later tasks follow in evals after this one, because they may have its key. */
	if (alone)
		adding->shared = adding->used;
	return eval;
}

static void adding_add(struct adding *adding, struct eval *eval, size_t index, int64_t at_ms)
{
	const struct tw_redis_task *task = adding_task(adding, index);

	if (adding->infos)
		restore_write(adding->call, eval, &adding->infos[index]);
	else
		add_write(adding->call, eval, task, at_ms);
}

/* Asks for the server's time, if a task needs it. In a cluster the nodes' clocks may differ, and a
 * task is early or late by the difference. */
static void adding_ask_time(struct adding *adding, size_t base, size_t count)
{
	size_t i = 0;

	while (i < count && !adding->infos &&
	       (!adding->tasks[base + i].cron ||
		task_check(&adding->tasks[base + i], NULL) != TW_OK))
		i++;
	if (i < count && !adding->infos)
		adding->time_status = time_ask(adding->redis, adding->call,
					       &adding->tasks[base + i], &adding->now_ms);
}

static void adding_write(struct adding *adding, size_t base, size_t count)
{
	adding->used = adding->shared = 0;
	adding_ask_time(adding, base, count);
	for (size_t i = 0; i < count; i++) {
		struct eval *eval = NULL;
		int64_t at_ms = 0;

		adding->work[i].status = adding_prepare(adding, base + i, &at_ms);
		if (adding->work[i].status == TW_OK) {
			eval = adding_eval(adding, base + i);
			adding->work[i].place = eval->answers;
			adding_add(adding, eval, base + i, at_ms);
		}
		adding->work[i].eval = eval;
	}
	for (size_t i = 0; i < adding->used; i++)
		if (adding->evals[i].script->hints)
			eval_hint(&adding->evals[i]);
}

/* Adds `count` tasks, at most ADDS_AT_ONCE, from number `base` on. Returns false if the server is
 * gone. */
static bool adding_run(struct adding *adding, size_t base, size_t count)
{
	bool reached = true;

	adding_write(adding, base, count);
	call_run(&adding->redis->access->calls, adding->call, adding->evals, adding->used);
	for (size_t i = 0; i < count; i++) {
		const struct eval *eval = adding->work[i].eval;
		enum tw_status status = eval ? eval->status : adding->work[i].status;

		reached = reached && status != TW_REDIS_UNREACHABLE;
		if (eval && status == TW_OK)
			status = answer_status(eval, adding->work[i].place);
		adding_note(adding, base + i, eval, status);
	}
	return reached;
}

static void adding_run_all(struct adding *adding, size_t count)
{
	bool reached = true;
	size_t base = 0;

	for (size_t some; base < count && reached; base += some) {
		some = count - base < ADDS_AT_ONCE ? count - base : ADDS_AT_ONCE;
		reached = adding_run(adding, base, some);
	}
	for (; base < count; base++)
		adding_note(adding, base, NULL, TW_REDIS_UNREACHABLE);
}

/* Adds the tasks or restores the infos. The other one is NULL. */
static enum tw_status add_all(struct tw_redis *redis, const struct tw_redis_task *tasks,
			      const struct tw_redis_info *infos, size_t count, enum tw_status *each)
{
	struct adding *adding = calloc(1, sizeof(*adding));
	enum tw_status status = TW_NO_MEMORY;

	if (!adding)
		return TW_NO_MEMORY;
	adding->redis = redis;
	adding->call = call_begin(&redis->access->calls);
	adding->tasks = tasks;
	adding->infos = infos;
	adding->each = each;
	if (adding->call) {
		adding_run_all(adding, count);
		status = adding->error.status;
		adding->call->error = adding->error;
		call_end(&redis->access->calls, adding->call, status);
	}
	for (size_t i = 0; i < ADDS_AT_ONCE; i++)
		eval_free(&adding->evals[i]);
	free(adding);
	return status;
}

enum tw_status tw_redis_add_many(struct tw_redis *redis, const struct tw_redis_task *tasks,
				 size_t count, enum tw_status *each)
{
	if (!redis || (count && !tasks))
		return TW_INVALID;
	return add_all(redis, tasks, NULL, count, each);
}

enum tw_status tw_redis_restore(struct tw_redis *redis, const struct tw_redis_info *infos,
				size_t count, enum tw_status *each)
{
	if (!redis || (count && !infos))
		return TW_INVALID;
	return add_all(redis, NULL, infos, count, each);
}

enum tw_status tw_redis_dead_add(struct tw_redis *redis, const struct tw_redis_info *letter)
{
	struct tw_redis_info dead;

	if (!letter)
		return TW_INVALID;
	dead = *letter;
	dead.state = TW_REDIS_DEAD;
	return tw_redis_restore(redis, &dead, 1, NULL);
}
