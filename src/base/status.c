/* SPDX-License-Identifier: MIT */
/*
 * The names and texts of statuses come from TW_STATUS_LIST in the public header. The library for
 * Redis has more statuses, and provides their texts if it is linked.
 */
#include <timingwheel/timingwheel.h>

TW_API __attribute__((weak)) const char *tw_redis_status_name(enum tw_status status);
TW_API __attribute__((weak)) const char *tw_redis_status_text(enum tw_status status);

static const struct {
	const char *name;
	const char *text;
} statuses[] = {
#define STATUS_ROW(name, text) {#name, text},
	TW_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const size_t status_count = sizeof(statuses) / sizeof(statuses[0]);

const char *tw_status_name(enum tw_status status)
{
	if ((size_t)status < status_count)
		return statuses[status].name;
	return tw_redis_status_name ? tw_redis_status_name(status) : "TW_UNKNOWN";
}

const char *tw_status_text(enum tw_status status)
{
	if ((size_t)status < status_count)
		return statuses[status].text;
	return tw_redis_status_text ? tw_redis_status_text(status) : "unknown status";
}
