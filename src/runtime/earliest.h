/* SPDX-License-Identifier: MIT */
/* The earliest deadline of all that is pending, for tw_next. Owner only. */
#ifndef EARLIEST_H
#define EARLIEST_H

#include <timingwheel/timingwheel.h>

#include "owner_state.h"

/* Returns the earliest deadline, or TW_FOREVER. Files what it finds to be put off by its new
 * deadline, and takes out what is stopped. */
tw_duration owner_next_deadline(struct owner *owner);

#endif
