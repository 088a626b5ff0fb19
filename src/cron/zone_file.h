/* SPDX-License-Identifier: MIT */
/* zone_file is the access to the system's zone files by the names of zones. */
#ifndef ZONE_FILE_H
#define ZONE_FILE_H

#include <stddef.h>

#include "zone.h"

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

#endif
