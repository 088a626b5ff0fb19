/* SPDX-License-Identifier: MIT */
/*
 * shares divides room by weights. One thread may use it at a time.
 *
 * In each round the caller sets `most` of each share, shares_give() sets `given`, and share_take()
 * notes the room that was taken.
 */
#ifndef REDIS_WORKER_SHARES_H
#define REDIS_WORKER_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct share {
	unsigned weight; /* 1 to SHARE_WEIGHT_MAX; constant */
	size_t most;     /* the room it wants */
	size_t given;    /* the room it may take */

	uint64_t pass; /* the room that it took, divided by its weight */
	bool wanted;   /* it wanted room in the last round */
};

enum { SHARE_WEIGHT_MAX = 1000 };

struct shares {
	struct share *each;
	size_t count;
	uint64_t pass; /* the lowest of the shares that wanted room */
};

/* Gives the shares as much of the room as they want together. */
void shares_give(struct shares *shares, size_t room);
void share_take(struct share *share, size_t taken);

#endif
