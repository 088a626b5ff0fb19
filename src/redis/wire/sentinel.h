/* SPDX-License-Identifier: MIT */
/* sentinel asks Redis Sentinels for the master's address. */
#ifndef REDIS_WIRE_SENTINEL_H
#define REDIS_WIRE_SENTINEL_H

#include "settings.h"

/*
 * Asks the Sentinels at the settings' addresses, one after the other, until one knows the master.
 *
 * Returns:
 *   TW_OK                 *master is its address
 *   TW_REDIS_UNREACHABLE  none answers
 *   TW_REDIS_UNFIT        none knows a master of that name, or a certificate is not trusted
 *   TW_REDIS_REFUSED      the login or a permission
 *   TW_NO_MEMORY          out of memory
 */
enum tw_status sentinel_find_master(const struct settings *settings, struct address *master,
				    struct tw_redis_error *error);

#endif
