/* SPDX-License-Identifier: MIT */
/* These are the commands. Each returns an exit code, after a message on stderr if it failed. */
#ifndef TWR_COMMANDS_H
#define TWR_COMMANDS_H

#include "arguments.h"

/* ---- task_commands.c ---- */
int command_add(struct tw_redis *redis, struct arguments *arguments);
int command_move(struct tw_redis *redis, struct arguments *arguments);
int command_get(struct tw_redis *redis, struct arguments *arguments);
/* Does cancel, dead retry and dead drop. */
int command_key(struct tw_redis *redis, struct arguments *arguments);

/* Does add --file. It is in add_file.c. */
int command_add_file(struct tw_redis *redis, struct arguments *arguments);

/* ---- list_commands.c ---- */

/* Does list and dead list. */
int command_list(struct tw_redis *redis, struct arguments *arguments);
int command_stats(struct tw_redis *redis, struct arguments *arguments);
/* Does pause and resume. */
int command_pause(struct tw_redis *redis, struct arguments *arguments);
int command_limits(struct tw_redis *redis, struct arguments *arguments);
/* namespace delete */
int command_delete(struct tw_redis *redis, struct arguments *arguments);
int command_ping(struct tw_redis *redis, struct arguments *arguments);

/* ---- group_commands.c ---- */

int command_group_list(struct tw_redis *redis, struct arguments *arguments);
/* Does group limits, group pause and group resume. */
int command_group_limits(struct tw_redis *redis, struct arguments *arguments);
int command_group_drain(struct tw_redis *redis, struct arguments *arguments);

/* Opens its own connections. It is in worker_command.c. */
int command_worker(struct arguments *arguments);

/* Opens its own connection, if it needs one. It is in top_command.c. */
int command_top(struct arguments *arguments);

#endif
