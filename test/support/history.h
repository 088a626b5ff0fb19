/* SPDX-License-Identifier: MIT */
/*
 * A history is what several threads did to one key. It is linearizable if the calls could have been
 * made one after the other, each at some moment between its begin and end (Wing and Gong's search).
 * The key has a value or none.
 */
#ifndef SUPPORT_HISTORY_H
#define SUPPORT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A history has at most this number of calls; their values are from 1 to it. */
enum { HISTORY_MOST = 12 };

enum call_kind {
	CALL_GET,
	CALL_SET,
	CALL_ADD,
	CALL_REPLACE,
	CALL_DELETE,
	CALL_POP,
	CALL_COMPUTE, /* sets the value if it finds none or an odd one, otherwise deletes it */
	CALL_KINDS
};

struct call {
	enum call_kind kind;
	unsigned value; /* its argument or, for CALL_GET and CALL_POP, its result; 0 for none */
	bool succeeded; /* set, added, replaced, deleted */
	unsigned seen;  /* by CALL_COMPUTE; 0 for none */
	/* These are drawn from one counter. */
	uint64_t began;
	uint64_t ended;
};

/* Returns whether the calls are linearizable, from a key without a value. */
bool history_is_linearizable(const struct call *calls, size_t count);

#endif
