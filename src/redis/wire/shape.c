/* SPDX-License-Identifier: MIT */
/*
 * shape.c compares replies with shapes. A shape is one of ours, so it is short and not deep, and
 * recursion over it is bounded.
 */
#include "shape.h"

#include <string.h>

enum { DIGITS_MAX = 18 };

/* Returns whether the reply is a string of these letters alone. */
static bool is_of(const redisReply *reply, const char *letters)
{
	return reply->type == REDIS_REPLY_STRING && strspn(reply->str, letters) == reply->len;
}

static bool fits_one(char kind, size_t answers, const redisReply *reply)
{
	switch (kind) {
	case 'i':
		return reply->type == REDIS_REPLY_INTEGER;
	case 'n':
		return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
	case 's':
		return reply->type == REDIS_REPLY_STRING;
	case 'd':
		return is_of(reply, "0123456789") && reply->len && reply->len <= DIGITS_MAX;
	default:
		return is_of(reply, "ogs") && reply->len == answers;
	}
}

/* Returns what follows the shape's first item. */
static const char *item_skip(const char *shape)
{
	int depth = 0;

	do {
		depth += *shape == '[';
		depth -= *shape == ']';
		shape++;
	} while (depth);
	return shape;
}

/* Returns whether the array has the shape, which begins after its '['. */
static bool fits_array(const char *shape, size_t answers, const redisReply *reply)
{
	const char *round = NULL;
	size_t i = 0;

	for (;;) {
		if (*shape == '*') {
			round = ++shape;
			if (answers && (reply->elements - i) != answers)
				return false;
		}
		if (*shape == ']' && (!round || i == reply->elements))
			return i == reply->elements;
		if (*shape == ']')
			shape = round;
		if (i == reply->elements)
			return shape == round;
		if (!shape_fits(shape, answers, reply->element[i++]))
			return false;
		shape = item_skip(shape);
	}
}

bool shape_fits(const char *shape, size_t answers, const redisReply *reply)
{
	if (*shape != '[')
		return fits_one(*shape, answers, reply);
	return reply->type == REDIS_REPLY_ARRAY && fits_array(shape + 1, answers, reply);
}
