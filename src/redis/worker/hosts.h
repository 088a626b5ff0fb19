/* SPDX-License-Identifier: MIT */
/*
 * Which callback begins next: each host has so many at a time, and hosts take turns. Runs that wait
 * for a host which does not answer are put off, so that they hold up no other's. One thread.
 */
#ifndef REDIS_WORKER_HOSTS_H
#define REDIS_WORKER_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "run.h"

enum { HOST_CHAINS = 256 };

struct hosts {
	unsigned limit;                   /* of those that run for one host */
	struct host *chains[HOST_CHAINS]; /* by the hash of the name */
	struct list ready;                /* with runs that may begin */
	struct run_list put_off;          /* to be given back; each run's put_off is set */
	tw_duration check_at;             /* monotonic: when to look for stalled hosts; 0: never */
};

/* Name and port, `size` bytes in the URL, which is one of http or https. */
const char *url_host(const char *url, size_t *size);

void hosts_init(struct hosts *hosts, unsigned limit);

/* Lays the run to the others of its host, or among those that are put off. */
void hosts_add(struct hosts *hosts, struct run *run, tw_duration now);
/* The next that may begin; NULL: none. It then runs, until hosts_end. */
struct run *hosts_take(struct hosts *hosts, tw_duration now);
void hosts_end(struct hosts *hosts, struct run *run, tw_duration now, bool answered);
/* If the time has come: puts off what waits for hosts that do not answer. */
void hosts_check(struct hosts *hosts, tw_duration now);
/* Puts off all that wait, for no time. */
void hosts_give_back(struct hosts *hosts);

#endif
