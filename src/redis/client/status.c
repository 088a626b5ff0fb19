/* SPDX-License-Identifier: MIT */
/*
 * status.c has the statuses of the part on Redis in words; their one list is TW_REDIS_STATUS_LIST.
 * The core calls them by the names of base/status.h.
 */
#include <timingwheel/redis.h>

#include "base/status.h"

static const struct {
	const char *name;
	const char *text;
} statuses[] = {
#define STATUS_ROW(name, text) [name - TW_REDIS_BAD_DATA] = {#name, text},
	TW_REDIS_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const size_t status_count = sizeof(statuses) / sizeof(statuses[0]);

const char *tw_further_status_name(enum tw_status status)
{
	size_t index = (size_t)status - TW_REDIS_BAD_DATA;

	return index < status_count ? statuses[index].name : "TW_UNKNOWN";
}

const char *tw_further_status_text(enum tw_status status)
{
	size_t index = (size_t)status - TW_REDIS_BAD_DATA;

	return index < status_count ? statuses[index].text : "unknown status";
}
