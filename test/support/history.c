/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <assert.h>
#include <string.h>

struct search {
	const struct call *calls;
	size_t count;
	/* This is what failed before: the calls done, as bits, and the value then. */
	bool tried[1 << HISTORY_MOST][HISTORY_MOST + 1];
};

/* Returns whether the call may have this result with `value`; *after is its value then. */
static bool call_fits(const struct call *call, unsigned value, unsigned *after)
{
	bool is_there = value != 0;

	*after = value;
	if (call->succeeded && (call->kind == CALL_DELETE || call->kind == CALL_POP))
		*after = 0;
	else if (call->kind == CALL_COMPUTE && value != 0 && value % 2 == 0)
		*after = 0;
	else if (call->succeeded && call->kind != CALL_GET)
		*after = call->value;
	switch (call->kind) {
	case CALL_GET:
		return call->value == value;
	case CALL_POP:
		return call->value == value && call->succeeded == is_there;
	case CALL_COMPUTE:
		return call->succeeded && call->seen == value;
	case CALL_SET:
		return call->succeeded;
	case CALL_ADD:
		return call->succeeded == !is_there;
	case CALL_REPLACE:
	case CALL_DELETE:
		return call->succeeded == is_there;
	case CALL_KINDS:
		break;
	}
	return false;
}

/* Returns whether none of the remaining calls had ended before this one began. */
static bool may_be_next(const struct search *search, unsigned done, size_t next)
{
	for (size_t i = 0; i < search->count; i++) {
		if (!(done & 1u << i) && search->calls[i].ended < search->calls[next].began)
			return false;
	}
	return true;
}

static bool search_from(struct search *search, unsigned done, unsigned value)
{
	unsigned after;

	if (done == (1u << search->count) - 1)
		return true;
	if (search->tried[done][value])
		return false;
	search->tried[done][value] = true;
	for (size_t i = 0; i < search->count; i++) {
		if (!(done & 1u << i) && may_be_next(search, done, i) &&
		    call_fits(&search->calls[i], value, &after) &&
		    search_from(search, done | 1u << i, after))
			return true;
	}
	return false;
}

bool history_is_linearizable(const struct call *calls, size_t count)
{
	struct search search = {.calls = calls, .count = count};

	assert(count <= HISTORY_MOST);
	return search_from(&search, 0, 0);
}
