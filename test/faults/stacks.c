/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <execinfo.h>
#include <stdlib.h>

enum { DEPTH = 64 };

/* The linker's names for where the program's code begins and ends. */
extern const char __executable_start;
extern const char etext;

/* The C library's first call for a stack loads what it needs for it, with memory from malloc. */
__attribute__((constructor)) static void load_at_once(void)
{
	void *stack[1];

	backtrace(stack, 1);
}

uint64_t stack_number(void)
{
	void *stack[DEPTH];
	int depth = backtrace(stack, DEPTH);
	uint64_t number = 0;

	for (int i = 0; i < depth; i++) {
		uintptr_t place = (uintptr_t)stack[i] - (uintptr_t)&__executable_start;

		if (place < (uintptr_t)&etext - (uintptr_t)&__executable_start)
			number = (number ^ place) * 0x9e3779b97f4a7c15u;
	}
	return number | 1;
}

bool stack_set_add(struct stack_set *set, uint64_t number)
{
	size_t i = (number * 0x9e3779b97f4a7c15u >> 32) % STACK_SET_SIZE;

	for (; set->numbers[i] != 0; i = (i + 1) % STACK_SET_SIZE)
		if (set->numbers[i] == number)
			return false;
	if (++set->count > STACK_SET_SIZE / 4 * 3)
		abort();
	set->numbers[i] = number;
	return true;
}
