/* SPDX-License-Identifier: MIT */
/* A listener serves a worker's pages by HTTP: /, /status.json, /metrics, /healthz, /readyz. They
 * change nothing. */
#ifndef TWR_LISTENER_H
#define TWR_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "board.h"

/* Returns whether the text is an address as "127.0.0.1:9464", "[::1]:9464" or "localhost:0". Port 0
 * means a free one. */
bool listen_address_is_valid(const char *address);

struct listener_options {
	const char *address;
	/* These are its names, beside its address and those of this machine. */
	const char *const *hosts;
	size_t host_count;
	tw_duration health_limit;
};

struct listener;

/* Listens, and answers that the worker is starting. Returns NULL after a message on stderr if it
 * cannot. The options' strings must outlive it. */
struct listener *listener_open(const struct listener_options *options);
/* Returns "127.0.0.1:9464", with its real port. */
const char *listener_name(const struct listener *listener);
/* Answers requests from the board from now on. */
void listener_serve(struct listener *listener, struct board *board);
/* Ends the listener, which may be NULL. Then the board may be freed. */
void listener_close(struct listener *listener);

#endif
