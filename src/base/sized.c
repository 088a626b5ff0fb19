/* SPDX-License-Identifier: MIT */
#include "base/sized.h"

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
