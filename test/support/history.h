/* SPDX-License-Identifier: MIT */
/*
 * Whether what several threads did to one key could have been done one after the other, each call
 * at some moment between its begin and end (Wing and Gong's search). The key has a value or none.
 */
#ifndef SUPPORT_HISTORY_H
#define SUPPORT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most calls of a history; their values are 1 to this. */
enum { HISTORY_MOST = 12 };

enum call_kind {
	CALL_GET,
	CALL_SET,
	CALL_ADD,
	CALL_REPLACE,
	CALL_DELETE,
	CALL_POP,
	CALL_COMPUTE, /* sets the value if it finds none or an odd one, else deletes it */
	CALL_KINDS
};

struct call {
	enum call_kind kind;
	unsigned value; /* that it gave or, CALL_GET and CALL_POP, was given; 0: none */
	bool succeeded; /* set, added, replaced, deleted */
	unsigned seen;  /* by CALL_COMPUTE; 0: none */
	/* Drawn from one counter. */
	uint64_t began;
	uint64_t ended;
};

/* The key has no value before. */
bool history_is_linearizable(const struct call *calls, size_t count);

#endif
