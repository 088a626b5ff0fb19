/* SPDX-License-Identifier: MIT */
/*
 * info copies struct tw_redis_info between the library and a program that knows another size of it
 * (base/sized.h). Its task comes first, and may have grown, too; so the copy has two parts.
 */
#ifndef REDIS_CLIENT_INFO_H
#define REDIS_CLIENT_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "base/sized.h"

/* Copies a program's info to the library's, as sized_read() does. */
bool info_read(struct tw_redis_info *own, const struct tw_redis_info *theirs, size_t info_size,
	       size_t task_size);
/* Makes the array of a program's infos, as sized_array_read() does. */
enum tw_status infos_read(struct sized_array *array, const struct tw_redis_info *theirs,
			  size_t info_size, size_t task_size, size_t count);
/* Copies the library's info to a program's, as sized_write() does. */
void info_write(struct tw_redis_info *theirs, size_t info_size, size_t task_size,
		const struct tw_redis_info *own);

#endif
