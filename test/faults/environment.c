/* SPDX-License-Identifier: MIT */
/*
 * This is linked to a program that runs as a process of its own, beside faults.c, stacks.c,
 * libraries.c and pages.c. In its environment FAIL_ALLOCATION=n makes its n-th allocation fail,
 * FAIL_DESCRIPTOR=n and FAIL_THREAD=n its n-th descriptor or thread, and FAIL_STACK=n the first
 * allocation from the call stack of that number. ALLOCATIONS=path writes the numbers of the call
 * stacks of all allocations to that file, 8 bytes each.
 */
#include "faults.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "stacks.h"

static uint64_t failing_stack; /* 0 if none is chosen */
static int allocations = -1;   /* the descriptor to which stacks are written, or -1 */

static bool is_to_fail(void)
{
	uint64_t stack = stack_number();

	if (allocations >= 0 && write(allocations, &stack, sizeof(stack)) < 0)
		abort();
	return stack == failing_stack && !fault_was_met();
}

static long number_of(const char *name)
{
	const char *value = getenv(name);

	return value ? atol(value) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
	json_set_alloc_funcs(malloc, free);
	if (number_of("FAIL_DESCRIPTOR") > 0)
		fail_descriptor(number_of("FAIL_DESCRIPTOR"));
	if (number_of("FAIL_THREAD") > 0)
		fail_thread(number_of("FAIL_THREAD"));
	if (number_of("FAIL_ALLOCATION") > 0)
		fail_allocation(number_of("FAIL_ALLOCATION"), false);
	if (getenv("FAIL_STACK"))
		failing_stack = strtoull(getenv("FAIL_STACK"), NULL, 10);
	if (getenv("ALLOCATIONS"))
		allocations = open(getenv("ALLOCATIONS"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (failing_stack != 0 || allocations >= 0)
		choose_allocations(is_to_fail);
}
