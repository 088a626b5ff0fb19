/* SPDX-License-Identifier: MIT */
#include "base/sized.h"

#include <stdlib.h>
#include <string.h>

bool sized_read(void *own, size_t own_size, const void *theirs, size_t their_size)
{
	const unsigned char *more = theirs;

	memset(own, 0, own_size);
	if (!theirs)
		return true;
	memcpy(own, theirs, their_size < own_size ? their_size : own_size);
	for (size_t i = own_size; i < their_size; i++)
		if (more[i])
			return false;
	return true;
}

void sized_write(void *theirs, size_t their_size, const void *own, size_t own_size)
{
	size_t size = their_size < own_size ? their_size : own_size;

	memcpy(theirs, own, size);
	memset((unsigned char *)theirs + size, 0, their_size - size);
}

const void *sized_view(void *own, size_t own_size, const void *theirs, size_t their_size)
{
	if (!theirs || their_size == own_size)
		return theirs;
	return sized_read(own, own_size, theirs, their_size) ? own : NULL;
}

enum tw_status sized_array_read(struct sized_array *array, size_t own_size, const void *theirs,
				size_t their_size, size_t count)
{
	const char *from = theirs;
	char *to;

	*array = (struct sized_array){theirs, NULL};
	if (their_size == own_size || !count)
		return TW_OK;
	to = calloc(count, own_size);
	if (!to)
		return TW_NO_MEMORY;
	*array = (struct sized_array){to, to};
	for (size_t i = 0; i < count; i++, to += own_size, from += their_size)
		if (!sized_read(to, own_size, from, their_size))
			return TW_INVALID;
	return TW_OK;
}
