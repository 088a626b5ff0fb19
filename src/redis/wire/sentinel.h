/* SPDX-License-Identifier: MIT */
/* Asks Redis Sentinels where the master is. */
#ifndef REDIS_WIRE_SENTINEL_H
#define REDIS_WIRE_SENTINEL_H

#include "settings.h"

/*
 * Asks those at the settings' addresses, one after the other, until one knows. TW_OK;
 * TW_REDIS_UNREACHABLE: none answers; TW_REDIS_UNFIT: none knows a master of that name, or a
 * certificate can't be trusted; TW_REDIS_REFUSED; TW_NO_MEMORY.
 */
enum tw_status sentinel_find_master(const struct settings *settings, struct address *master,
				    struct tw_redis_error *error);

#endif
