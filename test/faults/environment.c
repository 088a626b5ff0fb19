/* SPDX-License-Identifier: MIT */
/*
 * For a program that runs as a process of its own: FAIL_ALLOCATION=n in its environment has its
 * n-th allocation fail, FAIL_DESCRIPTOR and FAIL_THREAD likewise, FAIL_CALL=name the calls of that
 * name. It is linked with this beside faults.c, libraries.c and pages.c.
 */
#include "faults.h"

#include <errno.h>
#include <stdlib.h>

#include <jansson.h>

static long number_of(const char *name)
{
	const char *value = getenv(name);

	return value ? atol(value) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
	json_set_alloc_funcs(malloc, free);
	if (getenv("FAIL_CALL"))
		fail_calls(getenv("FAIL_CALL"), EAGAIN);
	if (number_of("FAIL_DESCRIPTOR") > 0)
		fail_descriptor(number_of("FAIL_DESCRIPTOR"));
	if (number_of("FAIL_THREAD") > 0)
		fail_thread(number_of("FAIL_THREAD"));
	if (number_of("FAIL_ALLOCATION") > 0)
		fail_allocation(number_of("FAIL_ALLOCATION"), false);
}
