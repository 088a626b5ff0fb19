/* SPDX-License-Identifier: MIT */
/*
 * shares.c is stride scheduling (Waldspurger and Weihl, 1995). Each unit of room advances the pass
 * of a share by its stride, which is inverse to its weight, and the next unit goes to the lowest
 * pass. A pass advances by the room taken, not by the room given, so a share that found less comes
 * first the next time. A share that wanted nothing saves nothing: it returns with the lowest pass
 * of the others.
 */
#include "shares.h"

/* Large room is given in parts, because each part costs a look at all shares. */
enum { STRIDE = 1 << 20, PARTS = 256 };

static uint64_t stride_of(const struct share *share, size_t units)
{
	return (uint64_t)units * STRIDE / share->weight;
}

/* Moves the shares that want room again to the lowest pass of the others. */
static void shares_join(struct shares *shares)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t i = 0; i < shares->count; i++) {
		const struct share *share = &shares->each[i];

		if (share->most && share->wanted && share->pass < lowest)
			lowest = share->pass;
	}
	if (lowest != UINT64_MAX)
		shares->pass = lowest;
	for (size_t i = 0; i < shares->count; i++) {
		struct share *share = &shares->each[i];

		if (share->most && !share->wanted && share->pass < shares->pass)
			share->pass = shares->pass;
		share->wanted = share->most;
		share->given = 0;
	}
}

/* Returns the next share, or NULL if none wants more. */
static struct share *shares_next(const struct shares *shares)
{
	struct share *next = NULL;
	uint64_t lowest = 0;

	for (size_t i = 0; i < shares->count; i++) {
		struct share *share = &shares->each[i];
		uint64_t pass = share->pass + stride_of(share, share->given);

		if (share->given == share->most || (next && pass >= lowest))
			continue;
		next = share;
		lowest = pass;
	}
	return next;
}

void shares_give(struct shares *shares, size_t room)
{
	const size_t part = 1 + room / PARTS;
	struct share *next;

	shares_join(shares);
	while (room && (next = shares_next(shares))) {
		size_t units = next->most - next->given;

		units = units < part ? units : part;
		units = units < room ? units : room;
		next->given += units;
		room -= units;
	}
}

void share_take(struct share *share, size_t taken)
{
	share->pass += stride_of(share, taken);
}
