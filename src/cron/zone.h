/* SPDX-License-Identifier: MIT */
/*
 * A time zone: its offset from UTC at each time. Read from the bytes of a TZif file (RFC 9636,
 * versions 1 to 4), which may be anything. Never changes once it is read; any thread.
 */
#ifndef ZONE_H
#define ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "zone_rule.h"

/* From `at` on the offset holds. */
struct zone_change {
	int64_t at;     /* seconds since 1970 UTC */
	int32_t offset; /* seconds east of UTC */
};

struct zone {
	int32_t first_offset;        /* before the first change */
	struct zone_change *changes; /* ascending; the zone's own memory */
	size_t change_count;
	bool has_rule; /* for what is not before the last change */
	struct zone_rule rule;
};

/* UTC. */
void zone_init(struct zone *zone);
/* TW_OK; TW_INVALID, and *wrong says why, a static string; TW_NO_MEMORY: *zone is UTC then. */
enum tw_status zone_parse(struct zone *zone, const void *bytes, size_t size, const char **wrong);
void zone_destroy(struct zone *zone);

/*
 * The offset at this time; *until, which is later, is where it may change next, INT64_MAX if never.
 * The time is as for zone_rule_offset().
 */
int32_t zone_offset(const struct zone *zone, int64_t time, int64_t *until);

#endif
