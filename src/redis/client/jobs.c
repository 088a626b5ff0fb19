/* SPDX-License-Identifier: MIT */
/*
 * jobs.c reads claims. The jobs of a batch point into the reply that brought them, which stays
 * until the batch is freed; only numbers are copied. A record that cannot be read
 * becomes a job too, so that it can be failed; otherwise it would be claimed for ever.
 */
#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reserved.h"

static const tw_duration lease_min = 10 * TW_MILLISECOND;
static const tw_duration lease_max = 24 * TW_HOUR;
/* A claim by hand has at most these bytes. */
static const size_t claim_bytes = (size_t)1024 * 1024;

/* These are the parts of a claim's reply. Tasks due, records and attempts belong together. */
enum {
	CLAIM_NOW,
	CLAIM_NEXT,
	CLAIM_BURIED,
	CLAIM_TOKEN,
	CLAIM_DUE,
	CLAIM_RECORDS,
	CLAIM_ATTEMPTS,
	CLAIM_SCHEDULES,
	CLAIM_SKIPPED,
	CLAIM_LACKS
};

void claim_write(struct eval *eval, const struct space *space, unsigned shard, size_t limit,
		 tw_duration lease, const struct claim *claim)
{
	eval_begin(eval, &script_claim, space, shard);
	eval_number(eval, (int64_t)limit);
	eval_number(eval, delay_to_ms(lease));
	eval_number(eval, (int64_t)claim->bytes);
	eval_text(eval, claim->worker ? claim->worker : "");
	eval_number(eval, (int64_t)claim->number);
	eval_number(eval, claim->again);
	eval_number(eval, (int64_t)claim->note);
	letters_write(eval, &claim->letters);
	/* A worker observes limits, and its permits and eval_hint() follow. */
	eval_number(eval, claim->worker != 0);
	if (!claim->worker)
		eval_hint(eval);
}

void claim_permit(struct eval *eval, const char *group, size_t count)
{
	eval_text(eval, group);
	eval_number(eval, (int64_t)count);
}

/* Returns how late a task is. A due time that is none of ours may be any number. */
static tw_duration lateness_of(int64_t now_us, int64_t due_ms)
{
	static const int64_t most_us = TW_REDIS_DELAY_MAX / TW_MICROSECOND;

	if (due_ms < (now_us - most_us) / 1000)
		return TW_REDIS_DELAY_MAX;
	return due_ms < now_us / 1000 ? (now_us - due_ms * 1000) * TW_MICROSECOND : 0;
}

static enum tw_status job_read(struct batch *batch, struct tw_redis_job *job,
			       const struct eval *eval, int64_t now_us)
{
	size_t index = batch->shown.count;
	redisReply **parts = batch->reply->element;
	const redisReply *key = parts[CLAIM_DUE]->element[2 * index];
	const redisReply *due = parts[CLAIM_DUE]->element[2 * index + 1];
	const redisReply *data = parts[CLAIM_RECORDS]->element[index];
	const redisReply *attempts = parts[CLAIM_ATTEMPTS];
	struct record *record = &batch->records[index];
	enum tw_status status = record_read(record, data->str, data->len);

	if (status == TW_NO_MEMORY)
		return status;
	batch->bytes += data->len;
	batch->broken[index] = status != TW_OK || key->len > TW_REDIS_KEY_MAX;
	*job = (struct tw_redis_job){
		.key = key->str,
		.key_size = key->len,
		.body = record->task.body,
		.body_size = record->task.body_size,
		.url = record->task.url,
		.method = record->task.method,
		.headers = record->task.headers,
		.header_count = record->task.header_count,
		.group = record->task.group,
		.attempt = attempts->elements ? (unsigned)attempts->element[index]->integer : 1,
		.max_attempts = record->task.max_attempts,
		.token = (uint64_t)parts[CLAIM_TOKEN]->integer,
		.due_ms = strtoll(due->str, NULL, 10),
		.shard = eval->shard,
		.name_space = eval->space->name,
	};
	job->lateness = lateness_of(now_us, job->due_ms);
	return TW_OK;
}

/* Makes a batch with room for `count` jobs, in one piece. */
static struct batch *batch_create(size_t count)
{
	struct batch *batch;
	struct tw_redis_job *jobs;
	size_t each = sizeof(*jobs) + sizeof(*batch->records) + sizeof(*batch->broken);

	batch = calloc(1, sizeof(*batch) + count * each);
	if (!batch)
		return NULL;
	jobs = (struct tw_redis_job *)(batch + 1);
	batch->shown.jobs = jobs;
	batch->records = (struct record *)(jobs + count);
	batch->broken = (bool *)(batch->records + count);
	list_init(&batch->schedules);
	return batch;
}

static tw_duration next_read(const redisReply *reply, int64_t now_us)
{
	int64_t next_ms = reply->element[CLAIM_NEXT]->integer;
	int64_t wait_us;

	if (next_ms < 0 || next_ms > (now_us + TW_REDIS_DELAY_MAX / TW_MICROSECOND) / 1000)
		return TW_FOREVER;
	wait_us = next_ms * 1000 - now_us;
	return wait_us > 0 ? wait_us * TW_MICROSECOND : 0;
}

/* Computes the next times that the claim asks for. The task's next claim asks for missing ones
 * again. */
static void schedules_read(struct batch *batch)
{
	const redisReply *items = batch->reply->element[CLAIM_SCHEDULES];

	for (size_t i = 0; i + 1 < items->elements; i += 2) {
		const redisReply *key = items->element[i];
		struct schedule *schedule;

		if (schedule_create(&schedule, key->str, key->len, items->element[i + 1]->str) ==
		    TW_OK)
			list_append(&batch->schedules, &schedule->link);
		else
			batch->unscheduled++;
	}
}

bool batch_lack(const struct batch *batch, size_t index, const char **group, size_t *count)
{
	const redisReply *lacks = batch->reply->element[CLAIM_LACKS];

	if (2 * index + 1 >= lacks->elements)
		return false;
	*group = lacks->element[2 * index]->str;
	*count = (size_t)lacks->element[2 * index + 1]->integer;
	return true;
}

enum tw_status claim_read(struct eval *eval, struct batch **batch)
{
	redisReply *reply = eval->reply;
	struct tw_redis_job *jobs;
	size_t attempts;
	size_t count;
	int64_t now_us;

	*batch = NULL;
	count = reply->element[CLAIM_RECORDS]->elements;
	attempts = reply->element[CLAIM_ATTEMPTS]->elements;
	if (reply->element[CLAIM_DUE]->elements != 2 * count || (attempts && attempts != count))
		return TW_REDIS_FAILED;
	*batch = batch_create(count);
	if (!*batch)
		return TW_NO_MEMORY;
	eval->reply = NULL;
	(*batch)->reply = reply;
	now_us = strtoll(reply->element[CLAIM_NOW]->str, NULL, 10);
	(*batch)->next = next_read(reply, now_us);
	(*batch)->buried = (size_t)reply->element[CLAIM_BURIED]->integer;
	(*batch)->skipped = (size_t)reply->element[CLAIM_SKIPPED]->integer;
	schedules_read(*batch);
	jobs = (struct tw_redis_job *)(*batch + 1);
	for (size_t i = 0; i < count; i++, (*batch)->shown.count++)
		if (job_read(*batch, &jobs[i], eval, now_us) != TW_OK) {
			batch_free(*batch);
			*batch = NULL;
			return TW_NO_MEMORY;
		}
	return TW_OK;
}

enum tw_status tw_redis_claim(struct tw_redis *redis, unsigned shard, size_t limit,
			      tw_duration lease, struct tw_redis_batch **batch, tw_duration *next)
{
	struct batch *claimed = NULL;
	struct call *call;
	enum tw_status status;

	if (batch)
		*batch = NULL;
	if (!redis || !batch || shard >= redis->space.shards || !limit ||
	    limit > TW_REDIS_BATCH_MAX || lease < lease_min || lease > lease_max)
		return TW_INVALID;
	call = call_begin(&redis->access->calls);
	if (!call)
		return TW_NO_MEMORY;
	claim_write(&call->eval, &redis->space, shard, limit, lease,
		    &(struct claim){.bytes = claim_bytes});
	status = call_ask(redis, call);
	if (status == TW_OK)
		status = claim_read(&call->eval, &claimed);
	if (status == TW_REDIS_FAILED && call->eval.status == TW_OK)
		error_set(&call->error, status,
			  "the claim's reply has different numbers of tasks and records");
	/* If this fails, the next claim asks for it again. */
	if (status == TW_OK && !list_is_empty(&claimed->schedules)) {
		schedules_write(&call->eval, &redis->space, shard, &claimed->schedules);
		(void)call_ask(redis, call);
	}
	call_end(&redis->access->calls, call, status);
	if (status != TW_OK)
		return status;
	*batch = &claimed->shown;
	if (next)
		*next = claimed->next;
	return TW_OK;
}

void batch_free(struct batch *batch)
{
	for (size_t i = 0; i < batch->shown.count; i++)
		record_free(&batch->records[i]);
	schedules_free(&batch->schedules);
	freeReplyObject(batch->reply);
	free(batch);
}

void tw_redis_batch_free(struct tw_redis_batch *batch)
{
	if (batch)
		batch_free((struct batch *)batch);
}

void jobs_begin(struct eval *eval, const struct script *script, const struct space *space,
		unsigned shard, size_t count)
{
	eval_begin(eval, script, space, shard);
	eval->answers = count;
	eval_number(eval, (int64_t)count);
}

void jobs_add_key(struct eval *eval, const struct tw_redis_job *job)
{
	eval_argument(eval, job->key, job->key_size);
}

void letters_write(struct eval *eval, const struct letters *letters)
{
	eval_number(eval, letters->age_ms);
	eval_number(eval, letters->count);
}

void jobs_add_run(struct eval *eval, const struct tw_redis_job *job)
{
	char run[40];
	int size = snprintf(run, sizeof(run), "%u:%" PRIu64, job->attempt, job->token);

	eval_argument(eval, run, (size_t)size);
}

void jobs_add_reason(struct eval *eval, const char *reason)
{
	eval_argument(eval, reason, reason ? strnlen(reason, TW_REDIS_REASON_MAX) : 0);
}

enum tw_status jobs_answer(const struct eval *eval, size_t index)
{
	if (eval->status != TW_OK)
		return eval->status;
	switch (eval->reply->str[index]) {
	case 'o':
		return TW_OK;
	case 'g':
		return TW_NOT_FOUND;
	default:
		return TW_REDIS_STALE;
	}
}

/* A question about jobs is one of the scripts, with its arguments. */
struct question {
	const struct script *script;
	tw_duration time; /* the lease for extend; the wait for fail, < 0 means none */
	bool counts;      /* for fail: the attempt does */
	const char *reason;
};

/* Returns the wait of a job. One that has failed for good has none. */
static int64_t wait_ms(const struct question *question, const struct tw_redis_job *job)
{
	bool last = question->counts && job->attempt >= job->max_attempts;

	return last || question->time < 0 ? -1 : delay_to_ms(question->time);
}

static void question_write(struct eval *eval, const struct question *question,
			   const struct tw_redis *redis, const struct tw_redis_job *jobs,
			   size_t count)
{
	jobs_begin(eval, question->script, &redis->space, jobs[0].shard, count);
	for (size_t i = 0; i < count; i++)
		jobs_add_key(eval, &jobs[i]);
	for (size_t i = 0; i < count; i++)
		jobs_add_run(eval, &jobs[i]);
	if (question->script == &script_extend)
		eval_number(eval, delay_to_ms(question->time));
	for (size_t i = 0; i < count && question->script == &script_fail; i++)
		eval_number(eval, wait_ms(question, &jobs[i]));
	for (size_t i = 0; i < count && question->counts; i++)
		jobs_add_reason(eval, question->reason);
	if (question->counts)
		letters_write(eval, &(struct letters){0});
	if (question->script->hints)
		eval_hint(eval);
}

/* Returns the number of jobs from the first on that are of its shard, at most one call's. */
static size_t same_shard(const struct tw_redis_job *jobs, size_t count)
{
	size_t same = 1;

	while (same < count && same < TW_REDIS_BATCH_MAX && jobs[same].shard == jobs[0].shard)
		same++;
	return same;
}

static enum tw_status answers_read(const struct eval *evals, const struct tw_redis_job *jobs,
				   size_t count, enum tw_status *each)
{
	enum tw_status first = TW_OK;
	size_t same;

	for (size_t at = 0; at < count; at += same, evals++) {
		same = same_shard(jobs + at, count - at);
		if (first == TW_OK)
			first = evals->status;
		for (size_t i = 0; each && i < same; i++)
			each[at + i] = jobs_answer(evals, i);
	}
	return first;
}

static enum tw_status ask(struct tw_redis *redis, const struct question *question,
			  const struct tw_redis_job *jobs, size_t count, enum tw_status *each)
{
	struct eval *evals;
	struct call *call;
	size_t same;
	size_t used = 0;
	enum tw_status status;

	if (!redis || (count && !jobs))
		return TW_INVALID;
	for (size_t i = 0; i < count; i++)
		if (jobs[i].shard >= redis->space.shards || !reserved_are_0(jobs[i].reserved))
			return TW_INVALID;
	evals = calloc(count + 1, sizeof(*evals));
	call = evals ? call_begin(&redis->access->calls) : NULL;
	if (!call) {
		free(evals);
		return TW_NO_MEMORY;
	}
	for (size_t at = 0; at < count; at += same) {
		same = same_shard(jobs + at, count - at);
		question_write(&evals[used++], question, redis, jobs + at, same);
	}
	call_run(&redis->access->calls, call, evals, used);
	status = answers_read(evals, jobs, count, each);
	call_end(&redis->access->calls, call, status);
	for (size_t i = 0; i < used; i++)
		eval_free(&evals[i]);
	free(evals);
	return status;
}

enum tw_status tw_redis_finish(struct tw_redis *redis, const struct tw_redis_job *jobs,
			       size_t count, enum tw_redis_outcome outcome,
			       const struct tw_redis_verdict *verdict, enum tw_status *each)
{
	static const struct tw_redis_verdict none;
	struct question question = {0};

	if (!verdict)
		verdict = &none;
	if (outcome > TW_REDIS_SNOOZE || verdict->retry_in < 0 ||
	    verdict->retry_in > TW_REDIS_DELAY_MAX)
		return TW_INVALID;
	question.script = outcome == TW_REDIS_DONE ? &script_ack : &script_fail;
	question.counts = outcome == TW_REDIS_RETRY || outcome == TW_REDIS_KILL;
	question.time = outcome == TW_REDIS_KILL ? -1 : verdict->retry_in;
	question.reason = verdict->reason;
	return ask(redis, &question, jobs, count, each);
}

enum tw_status tw_redis_extend(struct tw_redis *redis, const struct tw_redis_job *jobs,
			       size_t count, tw_duration lease, enum tw_status *each)
{
	const struct question question = {.script = &script_extend, .time = lease};

	if (lease < lease_min || lease > lease_max)
		return TW_INVALID;
	return ask(redis, &question, jobs, count, each);
}
