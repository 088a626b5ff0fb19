/* SPDX-License-Identifier: MIT */
/* Very many timers at once: due together, removed, drained, or stopped by handle. */
#ifndef SOAK_STORM_H
#define SOAK_STORM_H

#include "stage.h"

/* Sets up to so many, and has the wheel get rid of them; those that are due run later. */
void storm(struct place *place, struct book *book, struct generator *generator, int64_t count);

#endif
