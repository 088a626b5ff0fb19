/* SPDX-License-Identifier: MIT */
/* What the servers of the tests share. What should not fail ends the program. */
#ifndef REDIS_SUPPORT_SOCKETS_H
#define REDIS_SUPPORT_SOCKETS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A port that nobody listens on, and that no other test takes until this program ends, also while
 * a server that had it is down.
 */
int port_free(void);
/* Listens on 127.0.0.1:*port; 0: on a free one, which is told. */
int socket_listen(int *port);
/* -1: nobody is there. */
int socket_connect(int port);
/* False: the other side is gone. */
bool socket_send(int descriptor, const void *data, size_t size);

/* A number that other threads change under the lock. */
size_t locked_read(pthread_mutex_t *lock, const size_t *number);

/* Says what failed, with errno, and ends the program. */
__attribute__((noreturn)) void support_failed(const char *what);

#endif
