/* SPDX-License-Identifier: MIT */
/* What each command does. All return an exit code, and have said on stderr what went wrong. */
#ifndef TWR_COMMANDS_H
#define TWR_COMMANDS_H

#include "arguments.h"

/* task_commands.c */
int command_add(struct tw_redis *redis, struct arguments *arguments);
int command_move(struct tw_redis *redis, struct arguments *arguments);
int command_get(struct tw_redis *redis, struct arguments *arguments);
/* cancel, dead retry, dead drop */
int command_key(struct tw_redis *redis, struct arguments *arguments);

/* add_file.c: add --file */
int command_add_file(struct tw_redis *redis, struct arguments *arguments);

/* list_commands.c */
/* list, dead list */
int command_list(struct tw_redis *redis, struct arguments *arguments);
int command_stats(struct tw_redis *redis, struct arguments *arguments);
/* pause, resume */
int command_pause(struct tw_redis *redis, struct arguments *arguments);
int command_limits(struct tw_redis *redis, struct arguments *arguments);
/* namespace delete */
int command_delete(struct tw_redis *redis, struct arguments *arguments);
int command_ping(struct tw_redis *redis, struct arguments *arguments);

/* worker_command.c: opens its own connections. */
int command_worker(struct arguments *arguments);

/* top_command.c: opens its own connection, if it needs one. */
int command_top(struct arguments *arguments);

#endif
