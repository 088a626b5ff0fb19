/* SPDX-License-Identifier: MIT */
/*
 * status.h declares the two functions by which a library above the core names statuses of its own.
 * One library of a program may define them. They are weak: without one they are NULL.
 */
#ifndef STATUS_H
#define STATUS_H

#include <timingwheel/timingwheel.h>

/* Return what tw_status_name() and tw_status_text() return for statuses that are not the core's. */
TW_API __attribute__((weak)) const char *tw_further_status_name(enum tw_status status);
TW_API __attribute__((weak)) const char *tw_further_status_text(enum tw_status status);

#endif
