/* SPDX-License-Identifier: MIT */
/*
 * zone is a time zone: its offset from UTC at each time. It is parsed from the bytes of a TZif file
 * (RFC 9636, versions 2 to 4), which need not be valid. It never changes once it is parsed, so any
 * thread may read it.
 */
#ifndef ZONE_H
#define ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

#include "zone_rule.h"

/* Says that `offset` holds from the time `at` on. */
struct zone_change {
	int64_t at;     /* seconds since 1970 UTC */
	int32_t offset; /* seconds east of UTC */
};

/* Holds a zone's offsets. Without changes and a rule, first_offset holds at all times. */
struct zone {
	int32_t first_offset;        /* holds before the first change */
	struct zone_change *changes; /* ascending; owned by the zone */
	size_t change_count;
	bool has_rule; /* the rule holds from the last change on; without changes, always */
	struct zone_rule rule;
};

/* Makes *zone UTC. It needs no zone_destroy(). */
void zone_init(struct zone *zone);
/*
 * Parses `size` bytes of a TZif file into *zone, which is UTC unless the status is TW_OK.
 *
 * Returns:
 *   TW_OK         the caller owns *zone, until zone_destroy()
 *   TW_INVALID    the bytes are no valid file; *wrong is the error, a static string
 *   TW_NO_MEMORY  out of memory
 */
enum tw_status zone_parse(struct zone *zone, const void *bytes, size_t size, const char **wrong);
/* Frees the zone's memory, and makes it UTC. */
void zone_destroy(struct zone *zone);

/*
 * Checks the name of a zone. Returns NULL if it is valid, or the error as a static string, with
 * *position set to the error's place in bytes.
 */
const char *zone_name_check(const char *name, size_t *position);

/*
 * Reads the zone `name` from its file in the folder TZDIR, by default /usr/share/zoneinfo.
 *
 * zone_name_check() must have accepted the name. Unless the status is TW_OK, *zone is UTC and
 * *wrong is the error, a static string. The call is no cancellation point.
 *
 * Returns:
 *   TW_OK         the caller owns *zone, until zone_destroy()
 *   TW_NOT_FOUND  there is no such file, or it is no regular file
 *   TW_INVALID    the file is no valid zone file
 *   TW_NO_MEMORY  out of memory
 *   TW_SYSTEM     a system call failed, or the path is too long; errno has the cause
 */
enum tw_status zone_load(struct zone *zone, const char *name, const char **wrong);
/* Reads the zone of the environment's TZ, or without it of /etc/localtime, as zone_load() does. */
enum tw_status zone_load_local(struct zone *zone, const char **wrong);

/*
 * Returns the offset at `time`, in seconds east of UTC. *until becomes the next time when the
 * offset may change, later than `time`, or INT64_MAX if it never changes. `time` is limited as for
 * zone_rule_offset().
 */
int32_t zone_offset(const struct zone *zone, int64_t time, int64_t *until);

#endif
