/* SPDX-License-Identifier: MIT */
/*
 * Shares room among those that want it, by their weights. One thread at a time.
 *
 * Each time: `most` of each is set, shares_give() tells how much each may take, and share_take()
 * is told what it took.
 */
#ifndef REDIS_WORKER_SHARES_H
#define REDIS_WORKER_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct share {
	unsigned weight; /* 1 to SHARE_WEIGHT_MAX; constant */
	size_t most;     /* it wants no more; 0: it wants nothing */
	size_t given;    /* it may take so much */

	uint64_t pass; /* the room that it took, over its weight */
	bool wanted;   /* something, the last time */
};

enum { SHARE_WEIGHT_MAX = 1000 };

struct shares {
	struct share *each;
	size_t count;
	uint64_t pass; /* the lowest of those that wanted something */
};

/* What is given to all is no more than the room, and no less if they want that much. */
void shares_give(struct shares *shares, size_t room);
void share_take(struct share *share, size_t taken);

#endif
