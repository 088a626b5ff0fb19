/* SPDX-License-Identifier: MIT */
/* These functions report how many processors there are for the program. */
#ifndef PROCESSOR_H
#define PROCESSOR_H

#include <stddef.h>

/* Returns the number of processors that the calling thread may use, at least 1: those of its
 * affinity mask, or fewer by the quotas of the program's control groups. It reads some files. */
size_t processors_available(void);

/*
 * Returns the number of processors by the quotas of the groups in the file `list`, such as
 * /proc/self/cgroup, and of all groups above them; SIZE_MAX without a quota. A part of a processor
 * counts as one. The groups of both versions are looked for in the folder `root`.
 */
size_t processors_by_quota(const char *list, const char *root);

#endif
