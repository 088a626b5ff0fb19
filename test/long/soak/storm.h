/* SPDX-License-Identifier: MIT */
/* A storm is very many timers at once: due together, removed, drained, or stopped by handle. */
#ifndef SOAK_STORM_H
#define SOAK_STORM_H

#include "stage.h"

/* Sets all keys of the user, and removes them from the wheel; due ones run later. */
void storm(struct wheel_user *user, struct generator *generator);

#endif
