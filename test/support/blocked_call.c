/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "blocked_call.h"

#include "wait.h"

#include <unistd.h>

static void *call_run(void *argument)
{
	struct blocked_call *call = argument;

	atomic_store(&call->id, gettid());
	call->make(call->argument);
	atomic_store(&call->has_returned, true);
	pthread_testcancel();
	return NULL;
}

void blocked_call_start(struct blocked_call *call, void (*make)(void *argument), void *argument)
{
	*call = (struct blocked_call){.make = make, .argument = argument};
	assert_int_equal(pthread_create(&call->thread, NULL, call_run, call), 0);
}

bool blocked_call_is_asleep(struct blocked_call *call)
{
	return atomic_load(&call->id) != 0 && thread_is_asleep(atomic_load(&call->id));
}

void blocked_call_falls_asleep(struct blocked_call *call)
{
	int looks = 0;

	WAIT_UNTIL((looks = blocked_call_is_asleep(call) ? looks + 1 : 0) == 5);
}

bool blocked_call_has_returned(struct blocked_call *call)
{
	return atomic_load(&call->has_returned);
}

void blocked_call_end(struct blocked_call *call)
{
	WAIT_UNTIL(blocked_call_has_returned(call));
	pthread_join(call->thread, NULL);
}
