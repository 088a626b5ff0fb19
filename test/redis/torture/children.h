/* SPDX-License-Identifier: MIT */
/* The processes that a torture is done to, each behind a proxy of its own. */
#ifndef TORTURE_CHILDREN_H
#define TORTURE_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/proxy.h"

enum { CLIENTS = 2, WORKERS = 3, CHILDREN = CLIENTS + WORKERS };

struct child {
	const char *kind; /* "client", "worker", "hand" */
	char name[16];    /* c0, w0, h0 */
	pid_t pid;        /* 0: it does not run */
	struct proxy proxy;
};

struct children {
	const char *folder;
	const char *url; /* NULL: each by its proxy */
	uint64_t seed;
	struct child all[CHILDREN]; /* clients, then workers */
};

/*
 * Starts all processes, and proxies to the port for them; url: they reach Redis by that instead.
 * What should not fail ends the program.
 */
void children_start(struct children *children, const char *folder, uint64_t seed, int port,
		    const char *url);
void child_start(struct children *children, struct child *child);
/* Sends SIGKILL, and waits for its end. */
void child_kill(struct child *child);
/* Sends SIGTERM, and waits for its end. False: it did not end well. */
bool child_stop(struct child *child);
/* Whether all run that should. */
bool children_run(const struct children *children);
/* Ends the proxies. */
void children_end(struct children *children);

#endif
