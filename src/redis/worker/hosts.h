/* SPDX-License-Identifier: MIT */
/*
 * hosts says which callback begins next: of the runs that wait here, the first that is due and
 * whose host may be called. Runs of a host that does not answer, or asks for a pause, are put off,
 * so that they delay no other host's. One thread uses it, and gives it the time.
 */
#ifndef REDIS_WORKER_HOSTS_H
#define REDIS_WORKER_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "run.h"

enum { HOST_CHAINS = 256 };

struct hosts {
	unsigned limit;                   /* the most requests to a host at a time */
	struct host *chains[HOST_CHAINS]; /* by the hash of the name */
	struct list waiting;              /* hosts with runs that wait */
	struct run_list put_off;          /* runs to give back */
	size_t aside;                     /* waiting runs that need no free place */
	uint64_t random;                  /* not 0 */
};

/* A sign is what the end of a request says about its host. */
enum host_sign {
	HOST_UNKNOWN, /* it was not asked, or was broken off */
	HOST_ANSWERED,
	HOST_AWAY /* it could not be reached, or its time was up */
};

void hosts_init(struct hosts *hosts, unsigned limit, uint64_t random);
/* Frees all hosts. No run may wait or run. */
void hosts_free(struct hosts *hosts);

/* Adds the run to those that wait, or to those that are put off. */
void hosts_add(struct hosts *hosts, struct run *run, tw_duration now);
/* Takes the next run that may begin, or returns NULL. It runs until hosts_end(). `spare` is the
 * number of places, less that of the requests. */
struct run *hosts_take(struct hosts *hosts, tw_duration now, unsigned spare);
/* Ends a run, whose time `took` is set. `pause` is what an answer asks for, or 0. With a pause
 * the run is put off. */
void hosts_end(struct run *run, tw_duration now, enum host_sign sign, tw_duration pause);
/* Puts off the runs that wait for hosts that are away. */
void hosts_check(struct hosts *hosts, tw_duration now);
/* Puts off all waiting runs, for no time. */
void hosts_give_back(struct hosts *hosts);
/* Returns how long a request has a place, while the host does not answer. */
tw_duration host_patience(const struct host *host);

#endif
