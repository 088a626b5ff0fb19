/* SPDX-License-Identifier: MIT */
/*
 * swapcontext() makes a system call for the signal mask each time. On x86-64 a few instructions
 * replace it: push the registers that a called function keeps, exchange the stack pointers, pop.
 * Other processors use swapcontext().
 */
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"

#if SANITIZER_ADDRESS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(saved, bottom, size) ((void)(saved))
#define __sanitizer_finish_switch_fiber(saved, bottom, size) ((void)(bottom), (void)(size))
#define __asan_unpoison_memory_region(memory, size) ((void)(memory))
#endif

enum { STACK_SIZE = 512 << 10, GUARD_SIZE = 4096 };

static char *const stacks_at = (char *)0x210000000000;

void stacks_open(struct stack *stacks, unsigned count)
{
	size_t step = STACK_SIZE + GUARD_SIZE;
	char *memory = mmap(stacks_at, count * step, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory != stacks_at) {
		fprintf(stderr, "no room for stacks at %p\n", (void *)stacks_at);
		exit(2);
	}
	for (unsigned i = 0; i < count; i++) {
		mprotect(memory + i * step, GUARD_SIZE, PROT_NONE);
		stacks[i].bottom = memory + i * step + GUARD_SIZE;
		stacks[i].size = STACK_SIZE;
	}
}

#if defined(__x86_64__)

enum { SAVED_REGISTERS = 6 };

/* A naked function consists of only these instructions. */
__attribute__((naked, noinline)) static void registers_switch(__attribute__((unused)) void **from,
							      __attribute__((unused)) void *to)
{
	__asm__ volatile("pushq %rbp\n\t"
			 "pushq %rbx\n\t"
			 "pushq %r12\n\t"
			 "pushq %r13\n\t"
			 "pushq %r14\n\t"
			 "pushq %r15\n\t"
			 "movq %rsp, (%rdi)\n\t"
			 "movq %rsi, %rsp\n\t"
			 "popq %r15\n\t"
			 "popq %r14\n\t"
			 "popq %r13\n\t"
			 "popq %r12\n\t"
			 "popq %rbx\n\t"
			 "popq %rbp\n\t"
			 "retq");
}

void stack_prepare(struct stack *stack, void (*begin)(void))
{
	void **top = (void **)(void *)(stack->bottom + stack->size);

	__asan_unpoison_memory_region(stack->bottom, stack->size);
	/* After a call the stack pointer is 8 more than a multiple of 16. */
	*--top = NULL;
	*--top = (void *)(uintptr_t)begin;
	top -= SAVED_REGISTERS;
	memset(top, 0, SAVED_REGISTERS * sizeof(*top));
	stack->saved = top;
	stack->sanitizer = NULL;
}

static void stack_exchange(struct stack *from, struct stack *to)
{
	registers_switch(&from->saved, to->saved);
}

unsigned stack_places(const struct stack *stack, void *frame, void **places)
{
	void **saved = stack->saved;
	void **link = frame;
	char *end = stack->bottom + stack->size;
	unsigned count = 0;

	if (!frame) {
		places[count++] = saved[SAVED_REGISTERS];
		link = saved[SAVED_REGISTERS - 1];
	}
	while (count < STACK_PLACES_MOST && (char *)link >= stack->bottom &&
	       (char *)(link + 2) < end && link[1]) {
		places[count++] = link[1];
		link = link[0];
	}
	return count;
}

#else
#include <ucontext.h>

void stack_prepare(struct stack *stack, void (*begin)(void))
{
	ucontext_t *context = (ucontext_t *)(void *)stack->bottom;

	__asan_unpoison_memory_region(stack->bottom, stack->size);
	getcontext(context);
	context->uc_stack.ss_sp = stack->bottom + sizeof(*context);
	context->uc_stack.ss_size = stack->size - sizeof(*context);
	context->uc_link = NULL;
	makecontext(context, begin, 0);
	stack->saved = context;
	stack->sanitizer = NULL;
}

static void stack_exchange(struct stack *from, struct stack *to)
{
	static ucontext_t outermost;

	if (!from->saved)
		from->saved = &outermost;
	swapcontext(from->saved, to->saved);
}

unsigned stack_places(const struct stack *stack, void *frame, void **places)
{
	return 0;
}
#endif

/* This is the last stack that was switched from: only the sanitizer knows the program's own one. */
static struct stack *before;

static void stack_arrive(struct stack *here)
{
	const void *bottom = before->bottom;
	size_t size = before->size;

	__sanitizer_finish_switch_fiber(here ? here->sanitizer : NULL, &bottom, &size);
	before->bottom = (char *)(uintptr_t)bottom;
	before->size = size;
}

void stack_switch(struct stack *from, struct stack *to, bool ends)
{
	before = from;
	__sanitizer_start_switch_fiber(ends ? NULL : &from->sanitizer, to->bottom, to->size);
	stack_exchange(from, to);
	stack_arrive(from);
}

void stack_begun(void)
{
	stack_arrive(NULL);
}
