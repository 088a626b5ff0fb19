/* SPDX-License-Identifier: MIT */
/* Very many timers at once: due together, removed, drained, or stopped by handle. */
#ifndef SOAK_STORM_H
#define SOAK_STORM_H

#include "stage.h"

/* Sets all keys of the user, and has the wheel get rid of them; those that are due run later. */
void storm(struct wheel_user *user, struct generator *generator);

#endif
