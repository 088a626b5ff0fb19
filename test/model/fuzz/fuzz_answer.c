/* SPDX-License-Identifier: MIT */
/* The input is any text as the headers of a callback's answer, Retry-After, Date and Tw-Snooze, a
 * line each. */
#include <assert.h>

#include "redis/worker/callbacks.h"

#include "fuzz.h"
#include "lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lines lines;
	tw_duration time;

	lines_read(&lines, data, size);
	time = answer_retry_after(lines.line[0], lines.line[1]);
	assert(time >= 0 && time <= 24 * TW_HOUR);
	time = answer_snooze(lines.line[2]);
	assert(time >= 0 && time <= TW_REDIS_DELAY_MAX);
	lines_free(&lines);
	return 0;
}
