/* SPDX-License-Identifier: MIT */
#include "host_name.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool name_is(const char *name, const char *host, size_t size)
{
	return strlen(name) == size && !strncasecmp(name, host, size);
}

/* Returns the size of the part before the port. */
static size_t port_strip(const char *header)
{
	size_t size = strlen(header);

	while (size && header[size - 1] >= '0' && header[size - 1] <= '9')
		size--;
	/* A header such as "127.0.0.1" has no port. */
	return size && header[size - 1] == ':' ? size - 1 : strlen(header);
}

/* Whether it is an address, which no name server can point elsewhere. */
static bool is_address(const char *host, size_t size)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (size >= sizeof(text))
		return false;
	memcpy(text, host, size);
	text[size] = '\0';
	return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

bool host_name_is_ours(const char *header, const char *own, const char *const *names, size_t count)
{
	size_t size = port_strip(header);

	if (size > 2 && header[0] == '[' && header[size - 1] == ']') {
		header++;
		size -= 2;
	}
	if (name_is(own, header, size) || name_is("localhost", header, size) ||
	    is_address(header, size))
		return true;
	for (size_t i = 0; i < count; i++)
		if (name_is(names[i], header, size))
			return true;
	return false;
}
