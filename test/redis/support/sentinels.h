/* SPDX-License-Identifier: MIT */
/*
 * Three Sentinels, which watch a master with one replica. Two have to agree. What should not
 * fail ends the program.
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
/* After how long a silence they take the master for one that is down; at first 500 ms. */
void sentinels_set_patience(struct sentinels *sentinels, int ms);
/* Waits until all name that port as the master's, and its fail-over has ended. */
void sentinels_await_master(struct sentinels *sentinels, int port);
/* Waits until all know of a replica that answers. */
void sentinels_await_replica(struct sentinels *sentinels);

#endif
