/* SPDX-License-Identifier: MIT */
/*
 * The input is any bytes as a task's line of JSON: it is refused with a message, or what was read
 * can be read to its end and lies within its limits.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "twr/task_line.h"

#include "fuzz.h"

/* Reads all bytes, for the address sanitizer. */
static unsigned sum(const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	unsigned sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += byte[i];
	return sum;
}

static void check_line(const struct task_line *line)
{
	const struct tw_redis_task *task = &line->info.task;
	volatile unsigned total = sum(task->key, task->key_size);

	/* These have no key. */
	if (line->kind == LINE_LIMITS)
		return;
	assert(task->key_size >= 1 && task->key_size <= TW_REDIS_KEY_MAX);
	total += sum(task->body, task->body_size);
	for (size_t i = 0; i < task->header_count; i++)
		total += sum(task->headers[i], strlen(task->headers[i]));
	assert(task->at_ms >= 0 && task->delay >= 0 && task->delay <= TW_REDIS_DELAY_MAX);
	assert(task->every >= 0 && task->every <= TW_REDIS_DELAY_MAX);
	assert(task->max_attempts <= TW_REDIS_ATTEMPTS_MAX && task->method <= TW_REDIS_HEAD);
	assert(line->info.reason);
	(void)total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct task_line line;

	if (task_line_read(&line, (const char *)data, size))
		check_line(&line);
	else
		assert(*line.reason);
	task_line_free(&line);
	return 0;
}
