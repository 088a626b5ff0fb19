/* SPDX-License-Identifier: MIT */
/* The statuses in words; their one list is TW_STATUS_LIST in the public header. */
#include <timingwheel/timingwheel.h>

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
	return (size_t)status < status_count ? statuses[status].name : "TW_UNKNOWN";
}

const char *tw_status_text(enum tw_status status)
{
	return (size_t)status < status_count ? statuses[status].text : "unknown status";
}
