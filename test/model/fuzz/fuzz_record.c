/* SPDX-License-Identifier: MIT */
/*
 * The input is any bytes as a stored task: they are refused, or the task passes its checks, and is
 * the same after it has been written and read again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "redis/client/record.h"

#include "fuzz.h"

static void check_same(const struct tw_redis_task *one, const struct tw_redis_task *other)
{
	assert(one->max_attempts == other->max_attempts && one->method == other->method);
	assert(!one->url == !other->url && (!one->url || !strcmp(one->url, other->url)));
	assert(one->header_count == other->header_count);
	for (size_t i = 0; i < one->header_count; i++)
		assert(!strcmp(one->headers[i], other->headers[i]));
	assert(one->body_size == other->body_size);
	assert(!one->body_size || !memcmp(one->body, other->body, one->body_size));
}

static void check_again(const struct record *record)
{
	struct tw_redis_task task = record->task;
	struct buffer written = {0};
	struct buffer buffer = {0};
	struct record again;

	task.key = "k";
	task.key_size = 1;
	/* 0 means the default number of attempts, and a stored task may exceed the limits of a new
	 * one. */
	if (!task.max_attempts || task_check(&task, NULL) != TW_OK)
		return;
	assert(record_write(&written, &task, record->latest_due_ms, NULL) == TW_OK);
	buffer_append_number(&buffer, record->due_ms);
	buffer_append(&buffer, " ", 1);
	buffer_append(&buffer, written.data, written.size);
	assert(record_read(&again, buffer.data, buffer.size) == TW_OK);
	assert(record->due_ms == again.due_ms && record->latest_due_ms == again.latest_due_ms);
	check_same(&task, &again.task);
	record_free(&again);
	buffer_free(&buffer);
	buffer_free(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size);
	struct record record;

	if (size)
		memcpy(copy, data, size);
	if (size && record_read(&record, copy, size) == TW_OK) {
		check_again(&record);
		record_free(&record);
	}
	free(copy);
	return 0;
}
