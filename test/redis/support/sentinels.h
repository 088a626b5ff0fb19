/* SPDX-License-Identifier: MIT */
/*
 * These are three Sentinels that watch a master with one replica, with a quorum of two. A failure
 * ends the program.
 */
#ifndef REDIS_SUPPORT_SENTINELS_H
#define REDIS_SUPPORT_SENTINELS_H

#include "support/redis_server.h"

enum { SENTINELS = 3 };

struct sentinels {
	struct redis_server all[SENTINELS];
	char url[256]; /* redis+sentinel://..., without a query */
};

/* Starts them, and waits until each knows the others and the replica. */
void sentinels_start(struct sentinels *sentinels, int master_port);
void sentinels_stop(struct sentinels *sentinels);
/* Sets down-after-milliseconds, at first 500. */
void sentinels_set_patience(struct sentinels *sentinels, int ms);
/* Waits until all report the master at that port and the end of its fail-over. */
void sentinels_await_master(struct sentinels *sentinels, int port);
/* Waits until all know a replica that answers. */
void sentinels_await_replica(struct sentinels *sentinels);

#endif
