/* SPDX-License-Identifier: MIT */
/* sockets.h is what the tests' servers share. A failure ends the program. */
#ifndef REDIS_SUPPORT_SOCKETS_H
#define REDIS_SUPPORT_SOCKETS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns a port that nobody listens on. No other test takes it until this program ends, even while
 * its server is down.
 */
int port_free(void);
/* Listens on 127.0.0.1:*port. Port 0 takes a free one and sets *port. */
int socket_listen(int *port);
/* Returns -1 if nobody listens there. */
int socket_connect(int port);
/* Returns false if the peer has closed the connection. */
bool socket_send(int descriptor, const void *data, size_t size);

/* Reads a number that other threads change under the lock. */
size_t locked_read(pthread_mutex_t *lock, const size_t *number);

/* Prints what failed, with errno, and ends the program. */
__attribute__((noreturn)) void support_failed(const char *what);

#endif
