/* SPDX-License-Identifier: MIT */
/* host_name checks the Host header of a request: which names a worker's pages have. */
#ifndef TWR_HOST_NAME_H
#define TWR_HOST_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the header names `own`, localhost, any address, or one of `names`. It may have
 * any port or none, because a proxy may change it. */
bool host_name_is_ours(const char *header, const char *own, const char *const *names, size_t count);

#endif
