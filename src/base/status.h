/* SPDX-License-Identifier: MIT */
/* status.h has what the libraries share of statuses and of checks of what programs give. */
#ifndef STATUS_H
#define STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include <timingwheel/timingwheel.h>

/* These return what tw_status_name() and tw_status_text() return for statuses that are not the
 * core's. One library of a program may define them. They are weak: without one they are NULL. */
TW_API __attribute__((weak)) const char *tw_further_status_name(enum tw_status status);
TW_API __attribute__((weak)) const char *tw_further_status_text(enum tw_status status);

/* Returns whether all reserved fields of a struct are 0. A later version may give them a meaning,
 * so a program that sets one asks for what this version cannot do. */
static inline bool reserved_are_0(const uint64_t reserved[4])
{
	return (reserved[0] | reserved[1] | reserved[2] | reserved[3]) == 0;
}

#endif
