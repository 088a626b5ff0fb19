/* SPDX-License-Identifier: MIT */
/* These are the commands. Each returns an exit code, after a message on stderr if it failed. The
 * worker is called without a handle: it opens its own connections. */
#ifndef TWR_COMMANDS_H
#define TWR_COMMANDS_H

#include "arguments.h"

#define COMMAND_FUNCTION(enumerator, name, word, help) \
	int command_##name(struct tw_redis *redis, struct arguments *arguments);
COMMANDS(COMMAND_FUNCTION)

#endif
