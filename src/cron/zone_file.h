/* SPDX-License-Identifier: MIT */
/* The files of the system's time zones, found by name. */
#ifndef ZONE_FILE_H
#define ZONE_FILE_H

#include <stddef.h>

#include "zone.h"

/* Returns NULL if a zone may have this name. Otherwise returns a static string that describes the
 * error, and sets *position to its place. */
const char *zone_name_check(const char *name, size_t *position);

/*
 * Reads the zone with the checked name `name` from TZDIR, or from the system's folder. On failure
 * *zone is UTC, and *wrong is a static string with the reason. No cancellation point.
 *
 * Returns:
 *   TW_OK
 *   TW_NOT_FOUND   there is no such zone
 *   TW_INVALID     the file is damaged
 *   TW_NO_MEMORY
 *   TW_SYSTEM      the file can't be read; errno has the error
 */
enum tw_status zone_load(struct zone *zone, const char *name, const char **wrong);

#endif
