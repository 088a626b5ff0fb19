/* SPDX-License-Identifier: MIT */
/*
 * scripts.h runs the library's scripts in a shard {t/0} of a server. They read the test's clock in
 * place of the server's, so their results are exact to the microsecond. A failure fails the test.
 */
#ifndef REDIS_SUPPORT_SCRIPTS_H
#define REDIS_SUPPORT_SCRIPTS_H

#include <stdint.h>

#include <hiredis/hiredis.h>

#include "redis/wire/script.h"

/* Sets the clock that the scripts of this server's database read. */
void script_clock_set(redisContext *context, int64_t now_us);

/* Runs the script with these arguments and those of hints. The caller frees the reply. */
redisReply *script_call(redisContext *context, const struct script *script, int count,
			const char *const *arguments);

#endif
