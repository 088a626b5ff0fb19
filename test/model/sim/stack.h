/* SPDX-License-Identifier: MIT */
/* Stacks, and going from one to another without a call of the system. */
#ifndef SIM_STACK_H
#define SIM_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack {
	char *bottom; /* lowest address; below it is a page that faults */
	size_t size;
	void *saved;     /* where its thread goes on */
	void *sanitizer; /* AddressSanitizer's part */
};

/* So many stacks, at the same addresses in each run. */
void stacks_open(struct stack *stacks, unsigned count);
/* A first switch to it calls `begin`, which never returns. */
void stack_prepare(struct stack *stack, void (*begin)(void));
/* From the stack that this runs on to the other; returns when somebody switches back. `ends`: this
 * never happens. */
void stack_switch(struct stack *from, struct stack *to, bool ends);
/* The first thing that `begin` does. */
void stack_begun(void);

enum { STACK_PLACES_MOST = 24 };
/* Return addresses on a stack that was switched from, or, with a frame, from there on. */
unsigned stack_places(const struct stack *stack, void *frame, void **places);

#endif
