/* SPDX-License-Identifier: MIT */
/* TLS for a connection, if hiredis was built with it (its library hiredis_ssl). */
#ifndef TIMINGWHEEL_REDIS_CONNECTION_TLS_H
#define TIMINGWHEEL_REDIS_CONNECTION_TLS_H

#include <hiredis/hiredis.h>

#include "settings.h"

/* TW_OK; TW_REDIS_UNFIT: not in this build; TW_REDIS_UNREACHABLE: the handshake failed. */
enum tw_status connection_secure(redisContext *context, const char *host,
				 struct tw_redis_error *error);

#endif
