/* SPDX-License-Identifier: MIT */
/* These are stacks that switch without a system call. */
#ifndef SIM_STACK_H
#define SIM_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack {
	char *bottom; /* lowest address; the page below it faults */
	size_t size;
	void *saved;     /* where its thread goes on */
	void *sanitizer; /* AddressSanitizer's part */
};

/* Makes `count` stacks, at the same addresses in each run. */
void stacks_open(struct stack *stacks, unsigned count);
/* Prepares a stack: the first switch to it calls `begin`, which never returns. */
void stack_prepare(struct stack *stack, void (*begin)(void));
/* Switches from the current stack to the other; returns after a switch back, which never comes with
 * `ends`. */
void stack_switch(struct stack *from, struct stack *to, bool ends);
/* `begin` calls this first. */
void stack_begun(void);

enum { STACK_PLACES_MOST = 24 };
/* Returns the number of return addresses on a stack that was switched from, or, with a frame, from
 * there on. */
unsigned stack_places(const struct stack *stack, void *frame, void **places);

#endif
