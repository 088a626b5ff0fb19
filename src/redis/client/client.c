/* SPDX-License-Identifier: MIT */
/*
 * client.c opens a handle, and has the calls about one task. A script returns a number ≥ 0, such as
 * a due time, or one < 0 that says why it did nothing.
 */
#include "client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "record.h"
#include "recurrence.h"

/* This is the layout of a namespace's keys. The library can read no other one. */
enum { LAYOUT_VERSION = 5, LAYOUT_SIZE = 32 };
/* A new namespace of a cluster has this number of shards, so that all nodes have some. */
enum { CLUSTER_SHARDS = 16 };

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

/* Compares the layout of the namespace with the handle's, or takes its number of shards. */
static enum tw_status layout_take(struct space *space, const redisReply *reply,
				  struct tw_redis_error *error)
{
	unsigned version = 0;
	unsigned shards = 0;

	if (sscanf(reply->str, "%u %u", &version, &shards) != 2 || !shards ||
	    shards > TW_REDIS_SHARDS_MAX)
		return error_set(error, TW_REDIS_UNFIT, "the namespace's layout can't be read");
	if (version != LAYOUT_VERSION)
		return error_set(
			error, TW_REDIS_UNFIT,
			"namespace %s has layout %u, expected %d: move its tasks by `twr "
			"list --json` of the version that made it and `twr load` of this one",
			space->name, version, LAYOUT_VERSION);
	if (space->shards && shards != space->shards)
		return error_set(error, TW_REDIS_UNFIT, "namespace %s has %u shards, expected %u",
				 space->name, shards, space->shards);
	space->shards = shards;
	return TW_OK;
}

/* Checks that the handle has the number of shards that the namespace's first user has written.
 * Without one it takes that number. A new namespace gets the handle's, or the default. */
static enum tw_status layout_check(struct tw_redis *redis, struct tw_redis_error *error)
{
	unsigned usual = redis->access->cluster ? CLUSTER_SHARDS : 1;
	struct call *call = call_begin(redis->access, 1);
	char value[LAYOUT_SIZE];
	enum tw_status status;

	if (!call)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	snprintf(value, sizeof(value), "%d %u", LAYOUT_VERSION,
		 redis->space.shards ? redis->space.shards : usual);
	eval_begin(&call->eval, &script_layout, &redis->space, SHARD_NONE);
	eval_text(&call->eval, value);
	status = call_ask(call);
	if (status == TW_OK)
		status = layout_take(&redis->space, call->eval.reply, &call->error);
	if (status != TW_OK && error)
		*error = call->error;
	if (error)
		error->status = status;
	return call_end(call, status);
}

/* Makes a handle of the space over the access, from which it is taken if that fails. */
static enum tw_status handle_open(struct tw_redis **redis, struct access *access,
				  const struct space *space, struct tw_redis_error *error)
{
	struct tw_redis *opened = malloc(sizeof(*opened));
	enum tw_status status;

	if (!opened) {
		access_leave(access);
		return error_set(error, TW_NO_MEMORY, "out of memory");
	}
	*opened = (struct tw_redis){*space, access};
	status = layout_check(opened, error);
	if (status == TW_OK)
		*redis = opened;
	else
		tw_redis_close(opened);
	return status;
}

/* Clears the error, and the result. Returns TW_INVALID if there is no place for the result. */
static enum tw_status result_clear(struct tw_redis **redis, struct tw_redis_error *error)
{
	if (error)
		*error = (struct tw_redis_error){0};
	if (!redis)
		return error_set(error, TW_INVALID, "the result pointer is NULL");
	*redis = NULL;
	return TW_OK;
}

enum tw_status tw_redis_open(struct tw_redis **redis, const struct tw_redis_options *options,
			     struct tw_redis_error *error)
{
	static const struct tw_redis_options defaults;
	enum tw_status status = result_clear(redis, error);
	struct access *access;
	tw_duration patience;

	if (status != TW_OK)
		return status;
	access = access_create();
	if (!access)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	status = access_open(access, options ? options : &defaults, error);
	if (status != TW_OK) {
		access_leave(access);
		return status;
	}
	patience = access->settings.patience;
	access->settings.patience = -1;
	status = handle_open(redis, access, &access->settings.space, error);
	if (status == TW_OK)
		access->settings.patience = patience;
	return status;
}

enum tw_status tw_redis_open_beside(struct tw_redis *redis, const char *name_space, unsigned shards,
				    struct tw_redis **beside, struct tw_redis_error *error)
{
	enum tw_status status = result_clear(beside, error);
	struct space space;

	if (status != TW_OK)
		return status;
	if (!redis)
		return error_set(error, TW_INVALID, "the handle is NULL");
	status = space_read(&space, name_space, shards, error);
	if (status != TW_OK)
		return status;
	/* relaxed: the caller has a handle, so it is not freed meanwhile */
	atomic_fetch_add_explicit(&redis->access->handles, 1, memory_order_relaxed);
	return handle_open(beside, redis->access, &space, error);
}

void tw_redis_close(struct tw_redis *redis)
{
	if (redis)
		access_leave(redis->access);
	free(redis);
}

void tw_redis_last_error(struct tw_redis *redis, struct tw_redis_error *error)
{
	if (!redis || !error)
		return;
	if (!access_is_own(redis->access)) {
		error_set(error, TW_INVALID, ACCESS_INHERITED);
		return;
	}
	pthread_mutex_lock(&redis->access->lock);
	*error = redis->access->error;
	pthread_mutex_unlock(&redis->access->lock);
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

unsigned key_shard(const struct tw_redis *redis, const void *key, size_t key_size)
{
	if (!redis || !key || !key_size || key_size > TW_REDIS_KEY_MAX)
		return SHARD_REFUSED;
	return space_shard(&redis->space, key, key_size);
}

enum tw_status redis_refuse(struct tw_redis *redis, const char *text)
{
	if (redis)
		access_note(redis->access, TW_INVALID, text);
	return TW_INVALID;
}

enum tw_status redis_ask(struct tw_redis *redis, const struct script *script, unsigned shard,
			 reply_read *read, void *result, const char *kinds, ...)
{
	enum tw_status status;
	struct call *call;
	va_list arguments;

	if (shard == SHARD_REFUSED)
		return redis_refuse(redis, "the key must have 1 to 1024 bytes");
	call = call_begin(redis->access, 1);
	if (!call)
		return TW_NO_MEMORY;
	eval_begin(&call->eval, script, &redis->space, shard);
	va_start(arguments, kinds);
	for (; *kinds; kinds++) {
		if (*kinds == 'k') {
			const void *bytes = va_arg(arguments, const void *);

			eval_argument(&call->eval, bytes, va_arg(arguments, size_t));
		} else if (*kinds == 's' || *kinds == 'm') {
			call->eval.answers += *kinds == 'm';
			eval_text(&call->eval, va_arg(arguments, const char *));
		} else {
			eval_number(&call->eval, va_arg(arguments, int64_t));
		}
	}
	va_end(arguments);
	status = call_ask(call);
	if (status == TW_OK && read) {
		status = read(result, call);
		if (status != TW_OK && !*call->error.text)
			error_set(&call->error, status, "%s", tw_status_text(status));
	}
	return call_end(call, status);
}

enum tw_status reply_take(void *result, struct call *call)
{
	*(redisReply **)result = call->eval.reply;
	call->eval.reply = NULL;
	return TW_OK;
}

/* Reads the answer about a task, a number. If it is no refusal it becomes *result, which may be
 * NULL. */
static enum tw_status answer_read(void *result, struct call *call)
{
	enum tw_status status = answer_status(&call->eval, 0);

	if (status == TW_OK && result)
		*(int64_t *)result = eval_integer(&call->eval, 0, 0);
	return status;
}

static const char mode_letters[] = {'a', 'n', 'r'};

static bool recurs(const struct tw_redis_task *task)
{
	return task->every || task->cron;
}

/* Returns whether the first due time is computed here, by the server's time. */
static bool needs_time(const struct tw_redis_task *task)
{
	return task->cron || (task->every && task->at_ms);
}

/* Begins a task of an eval: its mode, as add.lua reads it, and its key. */
static void task_begin(struct eval *eval, const struct tw_redis_task *task, char kind)
{
	const char mode[] = {mode_letters[task->mode], kind, '\0'};

	eval_text(eval, mode);
	eval_argument(eval, task->key, task->key_size);
	eval->answers++;
}

/* Adds the task to an eval for its shard. */
static void add_write(const struct call *call, struct eval *eval, const struct tw_redis_task *task,
		      int64_t at_ms)
{
	/* A delay of one period ends where a period begins, unless another time is given. */
	bool delayed = !task->at_ms && task->delay > 0 && task->delay != task->every;
	char kind = recurs(task) ? 'e' : task->latest ? 'l' : task->group ? 'g' : 'p';
	char rhythm[RECURRENCE_SIZE];

	task_begin(eval, task, kind);
	eval_number(eval, at_ms);
	eval_number(eval, delay_to_us(task->delay));
	eval_argument(eval, call->record.data, call->record.size);
	if (kind == 'e') {
		recurrence_write(task, rhythm);
		eval_text(eval, rhythm);
		eval_number(eval, delayed ? -1 : task->at_ms);
	} else if (kind == 'l') {
		eval_number(eval, delay_to_us(task->latest));
	}
}

/* Writes a letter without its record: mode, key, time of death, "died:attempts:size of
 * reason:reason". */
static void letter_write(const struct tw_redis_info *letter, struct eval *eval)
{
	const char *reason = letter->reason ? letter->reason : "";
	char head[64 + TW_REDIS_REASON_MAX];

	task_begin(eval, &letter->task, 'd');
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
	char rhythm[RECURRENCE_SIZE];
	char entry[RECURRENCE_SIZE + 40] = "";

	if (info->state == TW_REDIS_DEAD) {
		letter_write(info, eval);
		eval_argument(eval, call->record.data, call->record.size);
		return;
	}
	task_begin(eval, task, 'r');
	eval_number(eval, info->due_ms);
	eval_number(eval, 0);
	eval_argument(eval, call->record.data, call->record.size);
	eval_number(eval, info->attempts);
	recurrence_write(task, rhythm);
	if (*rhythm)
		snprintf(entry, sizeof(entry), "%" PRId64 " 0 %s",
			 task->at_ms ? task->at_ms : info->due_ms, rhythm);
	eval_text(eval, entry);
}

/* Reads the answer to a cancel. *result says whether it needs to know when the task is due next. */
static enum tw_status cancel_read(void *result, struct call *call)
{
	bool *recurs_otherwise = result;

	*recurs_otherwise = eval_integer(&call->eval, 0, 0) == -4;
	return *recurs_otherwise ? TW_OK : answer_status(&call->eval, 0);
}

/* Looks how the task recurs that a cancel has found, computes when it is due next, and cancels the
 * present occurrence. */
static enum tw_status cancel_again(struct tw_redis *redis, unsigned shard, const void *key,
				   size_t key_size, bool *again)
{
	int64_t next_ms = recurrence_end;
	char next[24] = "";
	const char *entry = "";
	struct recurrence how;
	redisReply *reply;
	char *copy;
	enum tw_status status = redis_ask(redis, &script_list, shard, reply_take, &reply, "sssk",
					  "0", "0", "1", key, key_size);

	if (status != TW_OK)
		return status;
	/* The task's last part is its entry in `every`. */
	if (reply->elements > 2)
		entry = reply->element[reply->elements - 1]->str;
	copy = strdup(entry);
	if (!copy)
		status = TW_NO_MEMORY;
	else if (recurrence_read(&how, copy))
		status = recurrence_next(&how, reply->element[0]->integer, 0, &next_ms);
	if (next_ms != recurrence_end)
		snprintf(next, sizeof(next), "%" PRId64, next_ms);
	if (status == TW_OK)
		status = redis_ask(redis, &script_cancel, shard, cancel_read, again, "ksssi", key,
				   key_size, "0", entry, next, (int64_t)reply->element[0]->integer);
	else
		access_note(redis->access, status, "the next due time can't be computed here");
	freeReplyObject(reply);
	free(copy);
	return status;
}

enum tw_status tw_redis_cancel(struct tw_redis *redis, const void *key, size_t key_size,
			       enum tw_redis_scope scope)
{
	unsigned shard = key_shard(redis, key, key_size);
	bool again = false;
	enum tw_status status;

	if (scope > TW_REDIS_WHOLE)
		return TW_INVALID;
	status = redis_ask(redis, &script_cancel, shard, cancel_read, &again, "ks", key, key_size,
			   scope == TW_REDIS_WHOLE ? "1" : "0");
	/* If the task recurs in another way by then, it is looked at again. */
	while (status == TW_OK && again)
		status = cancel_again(redis, shard, key, key_size, &again);
	return status;
}

enum tw_status tw_redis_retry(struct tw_redis *redis, const void *key, size_t key_size)
{
	return redis_ask(redis, &script_add, key_shard(redis, key, key_size), answer_read, NULL,
			 "mk", "nt", key, key_size);
}

enum tw_status tw_redis_drop(struct tw_redis *redis, const void *key, size_t key_size)
{
	return redis_ask(redis, &script_dead_drop, key_shard(redis, key, key_size), answer_read,
			 NULL, "k", key, key_size);
}

enum tw_status tw_redis_move(struct tw_redis *redis, const void *key, size_t key_size,
			     int64_t at_ms, tw_duration delay, int64_t *due_ms)
{
	const struct tw_redis_task moved = {
		.key = key, .key_size = key_size, .at_ms = at_ms, .delay = delay};
	struct tw_redis_error error;

	if (task_check(&moved, &error) != TW_OK)
		return redis_refuse(redis, error.text);
	return redis_ask(redis, &script_add, key_shard(redis, key, key_size), answer_read, due_ms,
			 "mkii", "rm", key, key_size, at_ms, delay_to_us(delay));
}

enum { ADDS_AT_ONCE = 256 };

/* A work is a task under way: its eval, and the place in that one's reply. */
struct work {
	struct eval *eval; /* NULL means that it has been noted already */
	size_t place;
};

/* An adding is a call that adds tasks or restores infos. Tasks of one shard share an eval, because
 * a script call costs as much as an add. */
struct adding {
	struct tw_redis *redis;
	struct call *call;
	const struct tw_redis_task *tasks; /* to add, or NULL */
	const struct tw_redis_info *infos; /* to restore, in place of tasks */
	struct tw_redis_added *each;       /* the caller's; may be NULL */
	/* The server's time, or why it is not known, if one of the tasks in work needs it. */
	int64_t now_ms;
	enum tw_status time_status;
	size_t failed;               /* the number of the first task that was not added */
	struct tw_redis_error error; /* that task's */
	bool unreached;              /* the server is gone */

	struct eval *evals; /* room for as many as there are works */
	size_t used;
	struct work work[ADDS_AT_ONCE];
};

static const struct tw_redis_task *adding_task(const struct adding *adding, size_t index)
{
	return adding->infos ? &adding->infos[index].task : &adding->tasks[index];
}

/* Asks for the time of the server that has the task's shard, once for all tasks in work. In a
 * cluster the nodes' clocks may differ, and a task is early or late by the difference. */
static enum tw_status adding_ask_time(struct adding *adding, const struct tw_redis_task *task)
{
	struct eval eval = {0};

	if (adding->now_ms || adding->time_status != TW_OK)
		return adding->time_status;
	/* The list has no task, only the time. */
	eval_begin(&eval, &script_list, &adding->redis->space,
		   space_shard(&adding->redis->space, task->key, task->key_size));
	eval_number(&eval, 0);
	eval_number(&eval, 0);
	eval_number(&eval, 0);
	call_run(adding->call, &eval, 1);
	adding->time_status = eval.status;
	adding->now_ms = eval_integer(&eval, 0, 0);
	eval_free(&eval);
	return adding->time_status;
}

/* Checks the task and makes its record. *at_ms is its time, for the script. */
static enum tw_status add_prepare(struct adding *adding, const struct tw_redis_task *task,
				  int64_t *at_ms)
{
	struct call *call = adding->call;
	enum tw_status status = task_check(task, &call->error);

	*at_ms = task->at_ms;
	if (status == TW_OK)
		status = record_write(&call->record, task, 0, &call->error);
	if (status != TW_OK || !needs_time(task))
		return status;
	status = adding_ask_time(adding, task);
	return status == TW_OK ? recurrence_first(task, adding->now_ms, at_ms, &call->error)
			       : status;
}

/* Notes what has become of a task. The call's error is that of the first one that failed. */
static void adding_note(struct adding *adding, size_t index, enum tw_status status, int64_t due_ms)
{
	if (adding->each)
		adding->each[index] = (struct tw_redis_added){
			.status = status, .due_ms = status == TW_OK ? due_ms : 0};
	adding->unreached |= status == TW_REDIS_UNREACHABLE;
	if (status == TW_OK || index >= adding->failed)
		return;
	adding->failed = index;
	adding->error = adding->call->error;
	adding->error.status = status;
}

/* Returns the eval for the task: that of its shard. */
static struct eval *adding_eval(struct adding *adding, size_t number)
{
	const struct tw_redis_task *task = adding_task(adding, number);
	unsigned shard = space_shard(&adding->redis->space, task->key, task->key_size);

	for (size_t i = adding->used; i > 0; i--)
		if (adding->evals[i - 1].shard == shard)
			return &adding->evals[i - 1];
	eval_begin(&adding->evals[adding->used], &script_add, &adding->redis->space, shard);
	return &adding->evals[adding->used++];
}

static void adding_write(struct adding *adding, size_t base, size_t count)
{
	adding->used = 0;
	adding->now_ms = 0;
	adding->time_status = TW_OK;
	for (size_t i = 0; i < count; i++) {
		struct work *work = &adding->work[i];
		int64_t at_ms = 0;
		enum tw_status status =
			adding->infos ? restore_prepare(adding->call, &adding->infos[base + i])
				      : add_prepare(adding, &adding->tasks[base + i], &at_ms);

		work->eval = NULL;
		if (status != TW_OK) {
			adding_note(adding, base + i, status, 0);
			continue;
		}
		work->eval = adding_eval(adding, base + i);
		work->place = work->eval->answers;
		if (adding->infos)
			restore_write(adding->call, work->eval, &adding->infos[base + i]);
		else
			add_write(adding->call, work->eval, &adding->tasks[base + i], at_ms);
	}
}

/* Reads the server's answer about a task. */
static void adding_answer(struct adding *adding, size_t index, const struct work *work)
{
	enum tw_status status = work->eval->status;

	if (status == TW_OK) {
		status = answer_status(work->eval, work->place);
		if (status != TW_OK)
			error_set(&adding->call->error, status, "%s", tw_status_text(status));
	}
	adding_note(adding, index, status,
		    adding->infos ? adding->infos[index].due_ms
				  : eval_integer(work->eval, work->place, 0));
}

/* Adds `count` tasks, at most ADDS_AT_ONCE in a round trip. */
static void adding_run(struct adding *adding, size_t count)
{
	size_t base = 0;

	for (size_t some; base < count && !adding->unreached; base += some) {
		some = count - base < ADDS_AT_ONCE ? count - base : ADDS_AT_ONCE;
		adding_write(adding, base, some);
		call_run(adding->call, adding->evals, adding->used);
		for (size_t i = 0; i < some; i++)
			if (adding->work[i].eval)
				adding_answer(adding, base + i, &adding->work[i]);
	}
	for (; base < count; base++)
		adding_note(adding, base, TW_REDIS_UNREACHABLE, 0);
}

/* Adds the tasks or restores the infos. The other one is NULL. */
static enum tw_status add_all(struct tw_redis *redis, const struct tw_redis_task *tasks,
			      const struct tw_redis_info *infos, size_t count,
			      struct tw_redis_added *each)
{
	size_t room = count < ADDS_AT_ONCE ? count : ADDS_AT_ONCE;
	struct adding adding;

	if (!redis || (count && !tasks && !infos))
		return TW_INVALID;
	adding.redis = redis;
	adding.tasks = tasks;
	adding.infos = infos;
	adding.each = each;
	adding.failed = count;
	adding.error = (struct tw_redis_error){0};
	adding.unreached = false;
	adding.call = call_begin(redis->access, room);
	if (!adding.call)
		return TW_NO_MEMORY;
	adding.evals = adding.call->evals;
	adding_run(&adding, count);
	adding.call->error = adding.error;
	return call_end(adding.call, adding.error.status);
}

enum tw_status tw_redis_add(struct tw_redis *redis, const struct tw_redis_task *tasks, size_t count,
			    struct tw_redis_added *each)
{
	return add_all(redis, tasks, NULL, count, each);
}

enum tw_status tw_redis_restore(struct tw_redis *redis, const struct tw_redis_info *infos,
				size_t count, struct tw_redis_added *each)
{
	return add_all(redis, NULL, infos, count, each);
}
