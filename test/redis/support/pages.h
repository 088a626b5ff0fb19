/* SPDX-License-Identifier: MIT */
/* pages.h starts a worker of build/twr that listens, and asks it for pages. */
#ifndef REDIS_SUPPORT_PAGES_H
#define REDIS_SUPPORT_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "support/program.h"

/* Starts `twr worker` with these options at a free port of 127.0.0.1, and returns the port. A
 * failure ends the program. */
int pages_start(struct program *worker, const struct program_environment *environment,
		const char *const *options);

/* Stops it if it still runs, so that a sanitizer can report, too. */
void pages_stop(struct program *worker);

struct page_reply {
	int status; /* 0 if the connection was closed without an answer */
	char *text; /* the whole reply, valid until the next one */
	const char *body;
};

/* Sends the bytes, and reads until the worker closes the connection. */
struct page_reply pages_ask(int port, const char *request, size_t size);
/* Sends a GET of the path, with 127.0.0.1 as the host. */
struct page_reply pages_get(int port, const char *path);
/* Returns whether the line is one of the headers. */
bool page_has_header(const struct page_reply *reply, const char *line);

/* Returns the value of the metric, such as "twr_done_total", with its labels if it has any. Returns
 * -1 if it is missing; fails the test if it appears twice. */
double page_metric(const struct page_reply *reply, const char *name);
/* Asks for /metrics until the metric has the value, and returns that reply. Fails the test after
 * half a minute. */
struct page_reply pages_await_metric(int port, const char *name, double value);
/* Checks metrics, each a name and its value: "twr_dead_total 3 twr_held_tasks 0". */
void assert_metrics(const struct page_reply *reply, const char *all);

#endif
