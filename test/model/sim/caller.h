/* SPDX-License-Identifier: MIT */
/*
 * A caller is a thread of a simulated program. It notes the call that it is in, for the check when
 * all sleep, and does what goes with every call.
 */
#ifndef SIM_CALLER_H
#define SIM_CALLER_H

#include <pthread.h>
#include <stdbool.h>

#include <timingwheel/timingwheel.h>

#include "memory.h"
#include "threads.h"

struct caller {
	unsigned number;
	pthread_t thread;
	const char *call; /* the current call, or NULL */
};

static inline void caller_begin(struct caller *caller, const char *call)
{
	caller->call = call;
	sim_call_begin();
}

static inline void caller_end(struct caller *caller)
{
	sim_call_end();
	caller->call = NULL;
}

static inline void caller_check(const struct caller *caller, const char *call,
				enum tw_status status, uint64_t refused)
{
	sim_trace("user %u: %s: %s", caller->number, call, tw_status_name(status));
	if (status == TW_NO_MEMORY && refused == sim_memory_refused())
		sim_fail("%s: TW_NO_MEMORY, and no memory was refused", call);
}

/* CALLER_CALLS(caller, tw_flush(wheel)) makes the call and returns its status. */
#define CALLER_CALLS(caller, expression)                                        \
	__extension__({                                                         \
		uint64_t call_refused = sim_memory_refused();                   \
		enum tw_status call_status;                                     \
		caller_begin((caller), #expression);                            \
		call_status = (expression);                                     \
		caller_end(caller);                                             \
		caller_check((caller), #expression, call_status, call_refused); \
		call_status;                                                    \
	})

#endif
