/* SPDX-License-Identifier: MIT */
/* These are the process's resources in the system, beside its memory. */
#ifndef SOAK_RESOURCES_H
#define SOAK_RESOURCES_H

#include <stdint.h>

/* Returns the number of threads, 0 if the system does not report it. */
int64_t resources_threads(void);
int64_t resources_descriptors(void);

#endif
