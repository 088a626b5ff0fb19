/* SPDX-License-Identifier: MIT */
/* The files of the system's time zones, by their names. */
#ifndef ZONE_FILE_H
#define ZONE_FILE_H

#include <stddef.h>

#include "zone.h"

/* NULL: a zone may have this name; else what is wrong, a static string, and *position where. */
const char *zone_name_check(const char *name, size_t *position);

/*
 * Reads the zone of this name, which has been checked, from TZDIR or from where the system has it.
 * TW_OK; TW_NOT_FOUND; TW_INVALID: of the file; TW_NO_MEMORY; TW_SYSTEM: errno tells. Unless it is
 * TW_OK, *zone is UTC and *wrong tells why, a static string. No cancellation point.
 */
enum tw_status zone_load(struct zone *zone, const char *name, const char **wrong);

#endif
