/* SPDX-License-Identifier: MIT */
/*
 * A time zone: its offset from UTC at each time. It is read from the bytes of a TZif file (RFC
 * 9636, versions 1 to 4), which may be anything. Never changes once it is read; any thread.
 */
#ifndef ZONE_H
#define ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "zone_rule.h"

/* A change of the offset, which holds from `at` on. */
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

/* Makes *zone UTC. */
void zone_init(struct zone *zone);
/* Reads a zone from the bytes of its file. Returns TW_OK, TW_NO_MEMORY, or TW_INVALID with a static
 * string in *wrong; on failure *zone is UTC. */
enum tw_status zone_parse(struct zone *zone, const void *bytes, size_t size, const char **wrong);
void zone_destroy(struct zone *zone);

/*
 * Returns the offset at `time`, which is as for zone_rule_offset(). Sets *until to the later time
 * at which the offset may next change, or to INT64_MAX.
 */
int32_t zone_offset(const struct zone *zone, int64_t time, int64_t *until);

#endif
