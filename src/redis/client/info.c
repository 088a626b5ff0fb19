/* SPDX-License-Identifier: MIT */
#include "info.h"

#include <stdlib.h>

/* This is where the second part begins. */
enum {
	REST = offsetof(struct tw_redis_info, state),
	REST_SIZE = sizeof(struct tw_redis_info) - REST
};
_Static_assert(REST == sizeof(struct tw_redis_task), "the info begins with its task");

bool info_read(struct tw_redis_info *own, const struct tw_redis_info *theirs, size_t info_size,
	       size_t task_size)
{
	return sized_read(own, REST, theirs, task_size) &&
	       sized_read((char *)own + REST, REST_SIZE, (const char *)theirs + task_size,
			  info_size - task_size);
}

enum tw_status infos_read(struct sized_array *array, const struct tw_redis_info *theirs,
			  size_t info_size, size_t task_size, size_t count)
{
	const char *from = (const char *)theirs;
	struct tw_redis_info *to;

	*array = (struct sized_array){theirs, NULL};
	if ((info_size == sizeof(*to) && task_size == sizeof(to->task)) || !count)
		return TW_OK;
	to = calloc(count, sizeof(*to));
	if (!to)
		return TW_NO_MEMORY;
	*array = (struct sized_array){to, to};
	for (size_t i = 0; i < count; i++, from += info_size)
		if (!info_read(&to[i], (const void *)from, info_size, task_size))
			return TW_INVALID;
	return TW_OK;
}

void info_write(struct tw_redis_info *theirs, size_t info_size, size_t task_size,
		const struct tw_redis_info *own)
{
	sized_write(theirs, task_size, own, REST);
	sized_write((char *)theirs + task_size, info_size - task_size, (const char *)own + REST,
		    REST_SIZE);
}
