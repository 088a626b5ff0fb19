/* SPDX-License-Identifier: MIT */
/* A death is the end of a process by abort(). */
#ifndef SUPPORT_DEATH_H
#define SUPPORT_DEATH_H

/* Checks that run(argument), called in a child process, aborts it within a minute, after it has
 * written `message` to stderr. */
void assert_dies(void (*run)(void *argument), void *argument, const char *message);

#endif
