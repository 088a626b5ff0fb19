/* SPDX-License-Identifier: MIT */
/* Children are the client and worker processes of a torture, each behind a proxy of its own. */
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
	pid_t pid;        /* 0 while it does not run */
	struct proxy proxy;
};

struct children {
	const char *folder;
	const char *url; /* NULL means that each uses its proxy */
	uint64_t seed;
	struct child all[CHILDREN]; /* clients, then workers */
};

/*
 * Starts all processes, and a proxy to the port for each. If `url` is not NULL, they use that in
 * place of the proxies. A failure ends the program.
 */
void children_start(struct children *children, const char *folder, uint64_t seed, int port,
		    const char *url);
void child_start(struct children *children, struct child *child);
/* Sends SIGKILL, and waits for the end. */
void child_kill(struct child *child);
/* Sends SIGTERM, and waits for the end. Returns false if the exit status is not 0. */
bool child_stop(struct child *child);
/* Returns whether all expected processes run. */
bool children_run(const struct children *children);
void children_end(struct children *children);

#endif
