/* SPDX-License-Identifier: MIT */
/* A worker's pages over HTTP: /, /status.json, /metrics, /healthz, /readyz. They only show. */
#ifndef TWR_LISTENER_H
#define TWR_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "board.h"

/* "127.0.0.1:9464", "[::1]:9464", "localhost:0"; port 0: one that is free. */
bool listen_address_is_valid(const char *address);

struct listener_options {
	const char *address;
	/* Names by which it may be asked for, beside its address and those of this machine. */
	const char *const *hosts;
	size_t host_count;
	tw_duration health_limit;
};

struct listener;

/* Listens; no request is answered yet. NULL: that is not possible, and why has been said on stderr.
 * The options' strings must outlive it. */
struct listener *listener_open(const struct listener_options *options);
/* "127.0.0.1:9464", with the port it has. */
const char *listener_name(const struct listener *listener);
/* Answers with what is on the board from now on. False: out of memory or threads. */
bool listener_serve(struct listener *listener, struct board *board);
/* Ends it; the board may go then. NULL is fine. */
void listener_close(struct listener *listener);

#endif
