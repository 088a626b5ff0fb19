/* SPDX-License-Identifier: MIT */
/* A worker of build/twr that listens, and what a stranger can ask it. */
#ifndef REDIS_SUPPORT_PAGES_H
#define REDIS_SUPPORT_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "support/program.h"

/* Starts `twr worker` with these options at a free port of 127.0.0.1, and answers the port. What
 * should not fail ends the program. */
int pages_start(struct program *worker, const struct program_environment *environment,
		const char *const *options);

struct page_reply {
	int status; /* 0: the connection was closed without an answer */
	char *text; /* all of it; free it */
	const char *body;
};

/* Sends the bytes, and reads until the other side closes. */
struct page_reply pages_ask(int port, const char *request, size_t size);
/* GET of the path, by the name 127.0.0.1. */
struct page_reply pages_get(int port, const char *path);
/* Whether it has that line among its headers. */
bool page_has_header(const struct page_reply *reply, const char *line);

/* The value of the metric, which stands there once: "twr_done_total", with its labels if it has
 * any; -1: it is not there. */
double page_metric(const struct page_reply *reply, const char *name);
/* Asks for /metrics until the metric has the value, for half a minute at most. The reply is that
 * which has it; else the test fails. */
struct page_reply pages_await_metric(int port, const char *name, double value);

#endif
