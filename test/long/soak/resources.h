/* SPDX-License-Identifier: MIT */
/* What the process holds of the system, beside its memory. */
#ifndef SOAK_RESOURCES_H
#define SOAK_RESOURCES_H

#include <stdint.h>

/* 0: the system does not say. */
int64_t resources_threads(void);
int64_t resources_descriptors(void);

#endif
