/* SPDX-License-Identifier: MIT */
/*
 * A callback is a scope in which functions of the program are called, and return. An exception,
 * pthread_exit() or a cancellation that leaves one unwinds to the scope's end, which ends the
 * process. So nothing else has to be undone. free_value alone has none: a pin may outlive the
 * cache.
 *
 *     struct callback callback __attribute__((cleanup(callback_end))) = {.shared = shared};
 *
 *     function(context);
 *     callback.has_returned = true;
 *
 * A file that does this is compiled with -fexceptions (Makefile).
 */
#ifndef CACHE_CALLBACK_H
#define CACHE_CALLBACK_H

#include <stdbool.h>

#include "shared.h"

struct callback {
	const struct shared_state *shared;
	bool has_returned; /* constant in each of the two copies of callback_end() */
};

/* Ends the process, because a function of the program has not returned. */
_Noreturn void callback_break(const struct shared_state *shared);

static inline __attribute__((always_inline)) void callback_end(const struct callback *callback)
{
	if (!callback->has_returned)
		callback_break(callback->shared);
}

#endif
