/* SPDX-License-Identifier: MIT */
#include "support/sockets.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void support_failed(const char *what)
{
	perror(what);
	exit(1);
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

int socket_listen(int *port)
{
	struct sockaddr_in address = loopback(*port);
	socklen_t size = sizeof(address);
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int yes = 1;

	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(descriptor, 1024) || getsockname(descriptor, (struct sockaddr *)&address, &size))
		support_failed("listening on loopback");
	send_at_once(descriptor);
	*port = ntohs(address.sin_port);
	return descriptor;
}

int port_free(void)
{
	int port = 0;

	close(socket_listen(&port));
	return port;
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
