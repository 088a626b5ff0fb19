/* SPDX-License-Identifier: MIT */
/*
 * Putting a dead letter there that comes from a listing. What a listing shows of a letter is all
 * there is to it, so that the letter is the same again: also when it died, which is the one time
 * that the caller says and no script makes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "record.h"

/* Writes all but the record: mode, key, when it died, "died:attempts:size of reason:reason". */
static void letter_write(struct eval *eval, const struct tw_redis_info *letter)
{
	static const char *const modes[] = {"any", "new", "replace"};
	const char *reason = letter->reason ? letter->reason : "";
	char head[64 + TW_REDIS_REASON_MAX];

	eval_text(eval, modes[letter->task.mode]);
	eval_argument(eval, letter->task.key, letter->task.key_size);
	eval_number(eval, letter->due_ms);
	snprintf(head, sizeof(head), "%" PRId64 ":%u:%zu:%.*s", letter->due_ms, letter->attempts,
		 strnlen(reason, TW_REDIS_REASON_MAX), TW_REDIS_REASON_MAX, reason);
	eval_text(eval, head);
}

static enum tw_status dead_prepare(struct call *call, const struct tw_redis_info *letter)
{
	struct tw_redis_task task = letter->task;
	enum tw_status status;

	task.at_ms = letter->due_ms;
	task.delay = 0;
	status = task_check(&task, &call->error);
	return status == TW_OK ? record_write(&call->record, &task, &call->error) : status;
}

static enum tw_status answer_read(struct call *call)
{
	int64_t answer = eval_integer(&call->eval, 0, 0);
	enum tw_status status = answer == -1   ? TW_EXISTS
				: answer == -2 ? TW_NOT_FOUND
					       : TW_REDIS_FAILED;

	if (answer >= 0)
		return TW_OK;
	return error_set(&call->error, status, "%s", tw_status_text(status));
}

enum tw_status tw_redis_dead_add(struct tw_redis *redis, const struct tw_redis_info *letter)
{
	struct call *call;
	enum tw_status status;

	if (!letter)
		return TW_INVALID;
	status =
		call_enter(redis, &script_dead_add, letter->task.key, letter->task.key_size, &call);
	if (status != TW_OK)
		return status;
	status = dead_prepare(call, letter);
	if (status == TW_OK) {
		letter_write(&call->eval, letter);
		eval_argument(&call->eval, call->record.data, call->record.size);
		status = call_ask(redis, call);
	}
	if (status == TW_OK)
		status = answer_read(call);
	return call_end(&redis->access->calls, call, status);
}
