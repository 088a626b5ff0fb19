/* SPDX-License-Identifier: MIT */
/*
 * Stride scheduling (Waldspurger and Weihl, 1995). A pass goes on by a stride, which is the longer
 * the lower the weight, for each unit of room, and the next unit goes to the lowest pass. Passes go
 * on by what was taken, not by what was given: one that found less than it was given is ahead the
 * next time. One that wanted nothing saves nothing up: it comes back with the pass of the others.
 */
#include "shares.h"

/* Large room is given in parts, for it costs a look at all of them each time. */
enum { STRIDE = 1 << 20, PARTS = 256 };

static uint64_t stride_of(const struct share *share, size_t units)
{
	return (uint64_t)units * STRIDE / share->weight;
}

/* Begins anew what wants something again. */
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

/* The one that is next; NULL: none wants more. */
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
