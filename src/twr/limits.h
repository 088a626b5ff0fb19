/* SPDX-License-Identifier: MIT */
/* limits reads and sets the limits and the pause of a group or of the namespace. */
#ifndef TWR_LIMITS_H
#define TWR_LIMITS_H

#include "figures.h"

/* Fills *limits, whose group names whose limits they are. A group without limits has zeros. */
enum tw_status limits_read(struct tw_redis *redis, struct limit_figures *limits);
/* Replaces the limits and the pause of the group, or of the namespace if it is "". */
enum tw_status limits_write(struct tw_redis *redis, const struct limit_figures *limits);

#endif
