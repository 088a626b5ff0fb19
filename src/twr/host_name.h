/* SPDX-License-Identifier: MIT */
/* The Host header of a request: by which names a worker's pages may be asked for. */
#ifndef TWR_HOST_NAME_H
#define TWR_HOST_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the header names `own`, localhost, any address, or one of `names`; with any port, for a
 * proxy may forward one, or none. */
bool host_name_is_ours(const char *header, const char *own, const char *const *names, size_t count);

#endif
