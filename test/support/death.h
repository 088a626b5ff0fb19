/* SPDX-License-Identifier: MIT */
/* Child processes of tests: a death is the end of one by abort(). */
#ifndef SUPPORT_DEATH_H
#define SUPPORT_DEATH_H

#include <stdbool.h>

/* Checks that run(argument), called in a child process, aborts it within a minute, after it has
 * written `message` to stderr. */
void assert_dies(void (*run)(void *argument), void *argument, const char *message);

/* Returns whether run(argument), called in a child process, returns 0 within a minute. */
bool child_ends_well(int (*run)(void *argument), void *argument);

#endif
