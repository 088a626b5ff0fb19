/* SPDX-License-Identifier: MIT */
/*
 * This is an echo server in one thread that closes idle connections.
 *
 *     tcp_server PORT IDLE_MS
 *
 * The thread drives the wheel (TW_DRIVE_CALLER), and sleeps in epoll until the next alarm.
 * Each connection has an alarm in it, which every message moves to later: one store, no memory, and
 * never refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <timingwheel/timingwheel.h>
#include <unistd.h>

enum { EVENTS = 256, MESSAGE = 512 };

struct connection {
	int socket;
	struct tw_alarm idle;
};

static struct tw_wheel *wheel;
static tw_duration idle_time;
static int poller;

/* The wheel frees the connection when it is done with the alarm. This is also the alarm's run. */
static void close_connection(void *argument)
{
	struct connection *connection = argument;

	close(connection->socket);
	tw_alarm_close(&connection->idle, free);
}

static void accept_connection(int listener)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct connection *connection = calloc(1, sizeof(*connection));
	int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (!connection || socket < 0 ||
	    tw_alarm_init(wheel, &connection->idle, close_connection, connection) != TW_OK) {
		free(connection);
		if (socket >= 0)
			close(socket);
		return;
	}
	connection->socket = socket;
	event.data.ptr = connection;
	if (tw_alarm_set(&connection->idle, idle_time) != TW_OK ||
	    epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) != 0)
		close_connection(connection);
}

static void echo(struct connection *connection)
{
	char message[MESSAGE];
	ssize_t size = read(connection->socket, message, sizeof(message));

	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size <= 0 || write(connection->socket, message, (size_t)size) != size) {
		close_connection(connection);
		return;
	}
	tw_alarm_set(&connection->idle, idle_time);
}

static int listen_at(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (void *)&address, sizeof(address)) != 0 ||
	    listen(listener, SOMAXCONN) != 0)
		return -1;
	return listener;
}

/* Returns the time as epoll_wait() takes it: rounded up, and -1 without a limit. */
static int milliseconds(tw_duration time)
{
	if (time == TW_FOREVER)
		return -1;
	if (time / TW_MILLISECOND >= INT_MAX)
		return INT_MAX;
	return (int)((time + TW_MILLISECOND - 1) / TW_MILLISECOND);
}

int main(int count, char **arguments)
{
	const struct tw_options options = {.drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct epoll_event events[EVENTS];
	int listener = count == 3 ? listen_at((unsigned)atoi(arguments[1])) : -1;

	if (listener < 0 || tw_create(&wheel, TW_MILLISECOND, 512, NULL, &options) != TW_OK) {
		fprintf(stderr, "tcp_server PORT IDLE_MS\n");
		return 1;
	}
	idle_time = atoi(arguments[2]) * TW_MILLISECOND;
	poller = epoll_create1(EPOLL_CLOEXEC);
	/* No connection has this address. */
	events[0] = (struct epoll_event){.events = EPOLLIN, .data.ptr = &listener};
	epoll_ctl(poller, EPOLL_CTL_ADD, listener, &events[0]);
	for (;;) {
		tw_duration until = TW_FOREVER;
		int ready;

		/* This comes after the other events: an alarm may free their connection. */
		tw_poll(wheel, &until);
		ready = epoll_wait(poller, events, EVENTS, milliseconds(until));
		for (int i = 0; i < ready; i++)
			if (events[i].data.ptr == &listener)
				accept_connection(listener);
			else
				echo(events[i].data.ptr);
	}
}
