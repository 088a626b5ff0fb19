/* SPDX-License-Identifier: MIT */
/* Call stacks as numbers, and sets of them. Neither takes memory from malloc. */
#ifndef FAULTS_STACKS_H
#define FAULTS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a number for the call stack of the caller, never 0. The program's own functions alone
 * count in it, by their places in the program: so it is the same in each run. */
uint64_t stack_number(void);

enum { STACK_SET_SIZE = 1 << 16 }; /* of which three quarters may be used */

/* Zeroed memory is an empty set. */
struct stack_set {
	uint64_t numbers[STACK_SET_SIZE]; /* by their hash, else in the next free place; 0: free */
	size_t count;
};

/* Adds a number that is not 0; returns false if it was there. A full set ends the program. Of one
 * thread at a time. */
bool stack_set_add(struct stack_set *set, uint64_t number);

#endif
