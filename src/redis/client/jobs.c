/* SPDX-License-Identifier: MIT */
/*
 * jobs.c reads claims. The jobs of a batch point into the reply that brought them, which stays
 * until the batch is freed; only numbers are copied. A record that cannot be read
 * becomes a job too, so that it can be failed; otherwise it would be claimed for ever.
 */
#include "jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"

static const tw_duration lease_min = 10 * TW_MILLISECOND;
static const tw_duration lease_max = 24 * TW_HOUR;
/* A claim by hand has at most these bytes. */
static const size_t claim_bytes = (size_t)1024 * 1024;

/* These are the parts of a claim's reply. From keys on they have an item for each task, or none. */
enum { CLAIM_NOW, CLAIM_NEXT, CLAIM_TOKEN, CLAIM_KEYS, CLAIM_RECORDS, CLAIM_NOTES, CLAIM_PARTS };

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
	eval_number(eval, claim->letters.age_ms);
	eval_number(eval, claim->letters.count);
}

/* Returns how late a task is. A due time that is none of ours may be any number. */
static tw_duration lateness_of(int64_t now_us, int64_t due_ms)
{
	static const int64_t most_us = TW_REDIS_DELAY_MAX / TW_MICROSECOND;

	if (due_ms < (now_us - most_us) / 1000)
		return TW_REDIS_DELAY_MAX;
	return due_ms < now_us / 1000 ? (now_us - due_ms * 1000) * TW_MICROSECOND : 0;
}

/* Reads the job's note: its attempt, when it was due, and how its task recurs, if it does. */
static void note_read(struct batch *batch, struct tw_redis_job *job, size_t index, int64_t now_us)
{
	struct series *series = &batch->series[index];
	char *note = batch->reply->element[CLAIM_NOTES]->element[index]->str;

	if (!*note)
		return;
	job->attempt = (unsigned)strtoul(note, &note, 10);
	job->due_ms = strtoll(note, &note, 10);
	series->ahead_us = now_us - clock_read_real(CLOCK_MONOTONIC) / TW_MICROSECOND;
	if (recurrence_read(&series->how, note + (*note == ' ')))
		job->series = series;
}

/* Returns when a task was due that has not been tried, whatever has put it off since: at the time
 * in its record or, if that is of an earlier occurrence, at the time of this one. */
static int64_t own_due(const struct tw_redis_job *job, const struct record *record)
{
	const struct series *series = job->series;
	int64_t own_ms = record->due_ms;

	if (series && own_ms < series->how.at_ms)
		own_ms = series->how.at_ms;
	return own_ms < job->due_ms ? own_ms : job->due_ms;
}

/* Returns how many occurrences a job that is too late leaves out. */
static size_t skipped_count(const struct series *series)
{
	const struct recurrence *how = series ? &series->how : NULL;

	if (!how || !how->period_ms || how->missed != TW_REDIS_MISSED_ALL)
		return 1;
	return (size_t)((series->next_ms - how->at_ms) / how->period_ms);
}

/* Returns the job's fate. The record's grace becomes what is left of it. */
static enum fate fate_of(struct batch *batch, struct tw_redis_job *job, size_t index,
			 int64_t now_us)
{
	struct record *record = &batch->records[index];
	tw_duration *grace = &record->task.grace;
	int64_t grace_ms = *grace / TW_MILLISECOND;
	int64_t now_ms = now_us / 1000;
	bool is_late;

	if (!batch->reply->element[CLAIM_RECORDS]->element[index]->len) {
		job->series = NULL; /* nothing is left to recur */
		return FATE_LOST;
	}
	if (job->attempt > 1)
		*grace = 0;
	if (*grace) {
		*grace -= lateness_of(now_us, own_due(job, record));
		*grace += !*grace; /* 0 is no limit */
	}
	is_late = grace_ms && *grace < 0;
	if (job->series &&
	    recurrence_next(&batch->series[index].how, now_ms, is_late ? now_ms - grace_ms : 0,
			    &batch->series[index].next_ms) != TW_OK)
		return FATE_UNKNOWN;
	if (batch->fates[index] == FATE_BROKEN)
		return FATE_BROKEN;
	if (job->series && recurrence_is_ahead(&batch->series[index].how, now_ms))
		return FATE_AHEAD;
	if (job->attempt > job->max_attempts)
		return FATE_SPENT;
	batch->skipped += is_late ? skipped_count(job->series) : 0;
	return is_late ? FATE_LATE : FATE_RUN;
}

static enum tw_status job_read(struct batch *batch, struct tw_redis_job *job,
			       const struct eval *eval, int64_t now_us)
{
	size_t index = batch->shown.count;
	redisReply **parts = batch->reply->element;
	const redisReply *key = parts[CLAIM_KEYS]->element[index];
	const redisReply *data = parts[CLAIM_RECORDS]->element[index];
	struct record *record = &batch->records[index];
	enum tw_status status = record_read(record, data->str, data->len);

	if (status == TW_NO_MEMORY)
		return status;
	batch->bytes += data->len;
	if (status != TW_OK || key->len > TW_REDIS_KEY_MAX)
		batch->fates[index] = FATE_BROKEN;
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
		.attempt = 1,
		.max_attempts = record->task.max_attempts,
		.token = (uint64_t)parts[CLAIM_TOKEN]->integer,
		/* What has lost its due time with its record is due now. */
		.due_ms = record->due_ms ? record->due_ms : now_us / 1000,
		.shard = eval->shard,
		.slot = (unsigned)index,
		.name_space = eval->space->name,
	};
	if (batch->series)
		note_read(batch, job, index, now_us);
	job->lateness = lateness_of(now_us, job->due_ms);
	batch->fates[index] = fate_of(batch, job, index, now_us);
	return TW_OK;
}

/* Makes a batch with room for `count` jobs and their runs, in one piece. */
static struct batch *batch_create(size_t count, size_t run_size, bool has_series)
{
	struct batch *batch;
	struct tw_redis_job *jobs;
	size_t each = sizeof(*jobs) + run_size + sizeof(*batch->records) + sizeof(*batch->fates) +
		      (has_series ? sizeof(*batch->series) : 0);

	batch = calloc(1, sizeof(*batch) + count * each);
	if (!batch)
		return NULL;
	jobs = (struct tw_redis_job *)(batch + 1);
	batch->shown.jobs = jobs;
	batch->runs = (struct run *)(jobs + count);
	batch->records = (struct record *)((char *)batch->runs + count * run_size);
	batch->series = (struct series *)(batch->records + count);
	batch->fates = (enum fate *)(batch->series + (has_series ? count : 0));
	batch->series = has_series ? batch->series : NULL;
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

enum tw_status claim_read(struct eval *eval, size_t run_size, struct batch **batch)
{
	redisReply *reply = eval->reply;
	struct tw_redis_job *jobs;
	size_t count = reply->element[CLAIM_KEYS]->elements;
	int64_t now_us;

	*batch = NULL;
	for (int part = CLAIM_RECORDS; part < CLAIM_PARTS; part++) {
		size_t items = reply->element[part]->elements;

		if (items != count && (items || part == CLAIM_RECORDS))
			return TW_REDIS_FAILED;
	}
	*batch = batch_create(count, run_size, reply->element[CLAIM_NOTES]->elements);
	if (!*batch)
		return TW_NO_MEMORY;
	eval->reply = NULL;
	(*batch)->reply = reply;
	now_us = strtoll(reply->element[CLAIM_NOW]->str, NULL, 10);
	(*batch)->next = next_read(reply, now_us);
	jobs = (struct tw_redis_job *)(*batch + 1);
	for (size_t i = 0; i < count; i++, (*batch)->shown.count++)
		if (job_read(*batch, &jobs[i], eval, now_us) != TW_OK) {
			batch_free(*batch);
			*batch = NULL;
			return TW_NO_MEMORY;
		}
	return TW_OK;
}

/* Ends the jobs that are not run, and takes them out of the batch. If that fails, their leases end,
 * and the next claim does it. */
static void batch_settle(struct tw_redis *redis, struct call *call, struct batch *batch)
{
	struct tw_redis_job *jobs = (struct tw_redis_job *)(batch + 1);
	size_t kept = 0;

	eval_begin(&call->eval, &script_finish, &redis->space, call->eval.shard);
	for (size_t i = 0; i < batch->shown.count; i++) {
		const struct ending *ending = fate_ending(batch->fates[i]);

		if (ending && batch->fates[i] != FATE_BROKEN) {
			ending_write(&call->eval, &jobs[i], ending);
			record_free(&batch->records[i]);
			continue;
		}
		jobs[kept] = jobs[i];
		batch->records[kept] = batch->records[i];
		batch->fates[kept++] = batch->fates[i];
	}
	if (kept == batch->shown.count)
		return;
	(void)call_ask(call);
	batch->shown.count = kept;
	batch->next = 0;
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
	call = call_begin(redis->access, 1);
	if (!call)
		return TW_NO_MEMORY;
	claim_write(&call->eval, &redis->space, shard, limit, lease,
		    &(struct claim){.bytes = claim_bytes});
	status = call_ask(call);
	if (status == TW_OK)
		status = claim_read(&call->eval, 0, &claimed);
	if (status == TW_REDIS_FAILED && call->eval.status == TW_OK)
		error_set(&call->error, status,
			  "the claim's reply has different numbers of tasks and records");
	if (status == TW_OK)
		batch_settle(redis, call, claimed);
	call_end(call, status);
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
	freeReplyObject(batch->reply);
	free(batch);
}

void tw_redis_batch_free(struct tw_redis_batch *batch)
{
	if (batch)
		batch_free((struct batch *)batch);
}

const struct ending *fate_ending(enum fate fate)
{
	static const struct ending endings[] = {
		[FATE_BROKEN] = {'k', .reason = "the task's record can't be read"},
		[FATE_SPENT] = {'k', .reason = "the lease of its last attempt expired"},
		[FATE_LOST] = {'k', .reason = "the task's record is lost"},
		[FATE_LATE] = {.verb = 'n'},
		[FATE_AHEAD] = {.verb = 'n'},
		[FATE_UNKNOWN] = {'p', .wait_ms = 1000},
	};

	return fate == FATE_RUN ? NULL : &endings[fate];
}

bool ending_waits(char verb)
{
	return verb == 'w' || verb == 'r' || verb == 'p';
}

/* Writes when the task is due next, if it ends now, and the server's time. Times that have passed
 * since the claim count as missed. Where the calendar can't be read now, the time that the claim
 * has found is good, too. */
static void series_write(struct eval *eval, const struct series *series)
{
	int64_t next_ms = series ? series->next_ms : recurrence_end;
	int64_t now_ms = 0;

	if (series)
		now_ms = (series->ahead_us + clock_read_real(CLOCK_MONOTONIC) / TW_MICROSECOND) /
			 1000;
	if (series && next_ms <= now_ms && series->how.missed != TW_REDIS_MISSED_ALL)
		(void)recurrence_next(&series->how, now_ms, 0, &next_ms);
	if (next_ms == recurrence_end)
		eval_text(eval, "");
	else
		eval_number(eval, next_ms);
	eval_number(eval, now_ms);
}

/* Adds the token of the job's batch, and its place there, from 1 on; 0 means any. */
static void place_write(struct eval *eval, const struct tw_redis_job *job, unsigned place)
{
	eval_number(eval, (int64_t)job->token);
	eval_number(eval, place);
}

/* Adds a run that is done to those before it, or begins with it. Their number has four digits,
 * which are written again. */
static void done_write(struct eval *eval, const struct tw_redis_job *job)
{
	char digits[8];

	if (!eval->done) {
		eval_text(eval, "d");
		eval_text(eval, "0000");
		eval->done_at = eval->arguments.size - strlen("0000\r\n");
	}
	snprintf(digits, sizeof(digits), "%04u", ++eval->done);
	if (!eval->arguments.failed)
		memcpy(eval->arguments.data + eval->done_at, digits, strlen(digits));
	eval_argument(eval, job->key, job->key_size);
}

void ending_write(struct eval *eval, const struct tw_redis_job *job, const struct ending *ending)
{
	char verb = ending->verb == 'd' && job->series ? 'n' : ending->verb;
	bool waits = ending_waits(verb);
	const char *reason = ending->reason;

	if (!eval->answers || eval->batch != job->token || eval->place != job->slot) {
		eval_text(eval, "b");
		place_write(eval, job, job->slot + 1);
		eval->done = 0;
	}
	eval->batch = job->token;
	eval->place = job->slot + 1;
	eval->answers++;
	if (verb == 'd') {
		done_write(eval, job);
		return;
	}
	eval->done = 0;
	eval_argument(eval, waits ? "w" : &verb, 1);
	eval_argument(eval, job->key, job->key_size);
	if (!waits)
		series_write(eval, job->series);
	if (verb == 'p' && job->attempt == 1)
		eval_text(eval, "");
	else if (verb != 'n')
		eval_number(eval, job->attempt - (verb == 'r' || verb == 'p'));
	if (waits)
		eval_number(eval, ending->wait_ms);
	if (verb == 'k')
		eval_argument(eval, reason, reason ? strnlen(reason, TW_REDIS_REASON_MAX) : 0);
}

void extend_begin(struct eval *eval, const struct space *space, unsigned shard, tw_duration lease)
{
	eval_begin(eval, &script_extend, space, shard);
	eval_number(eval, delay_to_ms(lease));
}

void extend_write(struct eval *eval, const struct tw_redis_job *job, bool any)
{
	place_write(eval, job, any ? 0 : job->slot + 1);
	eval_argument(eval, job->key, job->key_size);
	eval->answers++;
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

/* Writes what ends jobs of a shard, or extends their leases if `lease` is not 0. */
static void jobs_write(struct eval *eval, const struct tw_redis *redis,
		       const struct tw_redis_job *jobs, size_t count, struct ending ending,
		       tw_duration lease)
{
	char verb = ending.verb;

	if (lease)
		extend_begin(eval, &redis->space, jobs[0].shard, lease);
	else
		eval_begin(eval, &script_finish, &redis->space, jobs[0].shard);
	for (size_t i = 0; i < count; i++) {
		bool was_last = verb == 'w' && jobs[i].attempt >= jobs[i].max_attempts;

		ending.verb = was_last ? 'k' : verb;
		if (lease)
			extend_write(eval, &jobs[i], false);
		else
			ending_write(eval, &jobs[i], &ending);
	}
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

static enum tw_status jobs_ask(struct tw_redis *redis, const struct tw_redis_job *jobs,
			       size_t count, struct ending ending, tw_duration lease,
			       enum tw_status *each)
{
	struct call *call;
	size_t same;
	size_t used = 0;
	enum tw_status status;

	if (!redis || (count && !jobs))
		return TW_INVALID;
	for (size_t i = 0; i < count; i++)
		if (jobs[i].shard >= redis->space.shards || !reserved_are_0(jobs[i].reserved))
			return TW_INVALID;
	call = call_begin(redis->access, count);
	if (!call)
		return TW_NO_MEMORY;
	for (size_t at = 0; at < count; at += same) {
		same = same_shard(jobs + at, count - at);
		jobs_write(&call->evals[used++], redis, jobs + at, same, ending, lease);
	}
	call_run(call, call->evals, used);
	status = answers_read(call->evals, jobs, count, each);
	return call_end(call, status);
}

enum tw_status tw_redis_finish(struct tw_redis *redis, const struct tw_redis_job *jobs,
			       size_t count, enum tw_redis_outcome outcome,
			       const struct tw_redis_verdict *verdict, enum tw_status *each)
{
	static const char verbs[] = {'d', 'w', 'k', 'r'};
	static const struct tw_redis_verdict none;
	struct ending ending;

	if (!verdict)
		verdict = &none;
	if (outcome > TW_REDIS_SNOOZE || verdict->retry_in < 0 ||
	    verdict->retry_in > TW_REDIS_DELAY_MAX)
		return TW_INVALID;
	ending = (struct ending){verbs[outcome], delay_to_ms(verdict->retry_in), verdict->reason};
	return jobs_ask(redis, jobs, count, ending, 0, each);
}

enum tw_status tw_redis_extend(struct tw_redis *redis, const struct tw_redis_job *jobs,
			       size_t count, tw_duration lease, enum tw_status *each)
{
	if (lease < lease_min || lease > lease_max)
		return TW_INVALID;
	return jobs_ask(redis, jobs, count, (struct ending){0}, lease, each);
}
