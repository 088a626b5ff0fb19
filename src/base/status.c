/* SPDX-License-Identifier: MIT */
/*
 * status.c converts statuses to names and texts, and says the library's version. TW_STATUS_LIST in
 * the public header is the statuses' only list.
 */
#include "status.h"

static const struct {
	const char *name;
	const char *text;
} statuses[] = {
#define STATUS_ROW(name, text) {#name, text},
	TW_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const size_t status_count = sizeof(statuses) / sizeof(statuses[0]);

/* This is an object of timingwheel.hpp. As the library refers to it, the linker exports it from a
 * program, and plugins share it. */
TW_API extern __attribute__((weak)) const char tw_cxx_category[];
static const char *const cxx_category __attribute__((used)) = tw_cxx_category;

const char *tw_status_name(enum tw_status status)
{
	if ((size_t)status < status_count)
		return statuses[status].name;
	return tw_further_status_name ? tw_further_status_name(status) : "TW_UNKNOWN";
}

const char *tw_status_text(enum tw_status status)
{
	if ((size_t)status < status_count)
		return statuses[status].text;
	return tw_further_status_text ? tw_further_status_text(status) : "unknown status";
}

/* The loaded library's version may differ from that of the header a program was compiled with. */
int tw_version(void)
{
	return TW_VERSION;
}
