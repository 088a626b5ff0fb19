/* SPDX-License-Identifier: MIT */
#include "support/sockets.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* These ports are below those that the system assigns. */
enum { PORT_FIRST = 10000, PORT_COUNT = 20000 };

void support_failed(const char *what)
{
	perror(what);
	exit(1);
}

size_t locked_read(pthread_mutex_t *lock, const size_t *number)
{
	size_t value;

	pthread_mutex_lock(lock);
	value = *number;
	pthread_mutex_unlock(lock);
	return value;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void send_at_once(int descriptor)
{
	const int yes = 1;

	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/* Returns -1 if the port is in use. */
static int socket_try_listen(int *port)
{
	struct sockaddr_in address = loopback(*port);
	socklen_t size = sizeof(address);
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1;

	if (descriptor < 0)
		support_failed("socket");
	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(descriptor, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(descriptor, 1024) ||
	    getsockname(descriptor, (struct sockaddr *)&address, &size)) {
		close(descriptor);
		return -1;
	}
	send_at_once(descriptor);
	*port = ntohs(address.sin_port);
	return descriptor;
}

int socket_listen(int *port)
{
	int descriptor = socket_try_listen(port);

	if (descriptor < 0)
		support_failed("listening on loopback");
	return descriptor;
}

/* Binds a name for the port in the abstract namespace, which ends with this program. */
static bool port_reserve(int port)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size;

	if (descriptor < 0)
		support_failed("socket");
	size = (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
				   "timingwheel-test-%d", port);
	size += offsetof(struct sockaddr_un, sun_path) + 1;
	if (!bind(descriptor, (struct sockaddr *)&name, size))
		return true;
	close(descriptor);
	return false;
}

int port_free(void)
{
	for (int i = 0; i < PORT_COUNT; i++) {
		unsigned number;
		int port;
		int listener;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			support_failed("getrandom");
		port = PORT_FIRST + (int)(number % PORT_COUNT);
		if (!port_reserve(port))
			continue;
		listener = socket_try_listen(&port);
		if (listener < 0)
			continue;
		close(listener);
		return port;
	}
	support_failed("no port is free");
}

int socket_connect(int port)
{
	struct sockaddr_in address = loopback(port);
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (descriptor < 0)
		support_failed("socket");
	if (connect(descriptor, (struct sockaddr *)&address, sizeof(address))) {
		close(descriptor);
		return -1;
	}
	send_at_once(descriptor);
	return descriptor;
}

bool socket_send(int descriptor, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t sent = send(descriptor, at, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		size -= (size_t)sent;
	}
	return true;
}
