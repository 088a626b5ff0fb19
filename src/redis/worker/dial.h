/* SPDX-License-Identifier: MIT */
/*
 * A dial is one attempt to connect, on a thread of its own: looking up a name, connecting and
 * logging in may each take seconds, and the worker's main thread has leases to extend meanwhile.
 */
#ifndef REDIS_WORKER_DIAL_H
#define REDIS_WORKER_DIAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/thread.h"
#include "redis/wire/node_map.h"
#include "run.h"

struct dial {
	struct thread thread;
	bool under_way; /* begun and not taken; the owner alone uses it */
	atomic_bool made;
	const struct settings *settings;
	struct mailbox *mailbox;
	/* This request is made at once. A count of 0 means none. */
	int word_count;
	const char **words;
	struct attempt attempt;
	bool refused; /* the request was, not the login */
};

/* Begins to connect to the address, then makes the request, whose reply must be an array. The
 * mailbox rings when that has been done. Settings, mailbox and words must outlive the dial. */
void dial_begin(struct dial *dial, const struct settings *settings, const struct address *address,
		int word_count, const char **words, struct mailbox *mailbox);
/* Returns whether the dial has ended. Then `attempt` is the caller's. */
bool dial_take(struct dial *dial);
/* Waits for the end of a dial that is under way, and closes the connection. */
void dial_end(struct dial *dial);

#endif
