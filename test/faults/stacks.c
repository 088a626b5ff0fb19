/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include <stdlib.h>
#include <unwind.h>

enum { DEPTH = 64 };

struct stack {
	int depth;
	uint64_t number;
};

/* These are the linker's names for the beginning and the end of the program's code. */
extern const char __executable_start;
extern const char etext;

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *frame, void *stack_pointer)
{
	struct stack *stack = stack_pointer;
	uintptr_t place = (uintptr_t)_Unwind_GetIP(frame) - (uintptr_t)&__executable_start;

	if (place < (uintptr_t)&etext - (uintptr_t)&__executable_start)
		stack->number = (stack->number ^ place) * 0x9e3779b97f4a7c15u;
	return ++stack->depth < DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

uint64_t stack_number(void)
{
	struct stack stack = {0};

	_Unwind_Backtrace(add_frame, &stack);
	return stack.number | 1;
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
