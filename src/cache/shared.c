/* SPDX-License-Identifier: MIT */
#include "shared.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((cold)) void callback_break(const struct shared_state *shared)
{
	fprintf(stderr,
		"timingwheel: a callback of the cache \"%s\" has not returned: it threw an "
		"exception or ended its thread\n",
		shared->name);
	abort();
}
