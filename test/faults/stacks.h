/* SPDX-License-Identifier: MIT */
/* Call stacks are numbers, and kept in sets. Neither takes memory from malloc. */
#ifndef FAULTS_STACKS_H
#define FAULTS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a number for the caller's call stack, never 0. Only the program's own functions count, by
 * their places in the program, so it is the same in each run. */
uint64_t stack_number(void);

enum { STACK_SET_SIZE = 1 << 16 }; /* three quarters may be used */

/* Zeroed memory is an empty set. */
struct stack_set {
	uint64_t numbers[STACK_SET_SIZE]; /* by their hash or in the next free place; 0 is free */
	size_t count;
};

/* Adds a number that is not 0; returns false if it was there. A full set ends the program. Only one
 * thread may call it at a time. */
bool stack_set_add(struct stack_set *set, uint64_t number);

#endif
