/* SPDX-License-Identifier: MIT */
#include "host_name.h"

#include <string.h>
#include <strings.h>

static bool name_is(const char *name, const char *host, size_t size)
{
	return strlen(name) == size && !strncasecmp(name, host, size);
}

/* How much of it stands before the port. */
static size_t port_strip(const char *header)
{
	size_t size = strlen(header);

	while (size && header[size - 1] >= '0' && header[size - 1] <= '9')
		size--;
	/* "127.0.0.1", say, has no port. */
	return size && header[size - 1] == ':' ? size - 1 : strlen(header);
}

bool host_name_is_ours(const char *header, const char *own, const char *const *names, size_t count)
{
	static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
	size_t size = port_strip(header);

	if (size > 2 && header[0] == '[' && header[size - 1] == ']') {
		header++;
		size -= 2;
	}
	if (name_is(own, header, size))
		return true;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (name_is(local[i], header, size))
			return true;
	for (size_t i = 0; i < count; i++)
		if (name_is(names[i], header, size))
			return true;
	return false;
}
