/* SPDX-License-Identifier: MIT */
/*
 * These functions choose which callback begins next: each host has a limit of those that run at a
 * time, and hosts take turns. Runs that wait for a host which does not answer, or which asks for a
 * pause, are put off, so that they hold up no other's. One thread calls all of them.
 */
#ifndef REDIS_WORKER_HOSTS_H
#define REDIS_WORKER_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "run.h"

enum { HOST_CHAINS = 256 };

struct hosts {
	unsigned limit;                   /* the most that run for one host */
	unsigned shards;                  /* how many the tasks come from */
	size_t clump;                     /* the most runs of a shard that come back together */
	struct host *chains[HOST_CHAINS]; /* by the hash of the name */
	struct list ready;                /* with runs that may begin */
	struct run_list put_off;          /* to be given back; each run's put_off is set */
	tw_duration check_at;             /* monotonic: when hosts_check() is due, or 0 */
};

/* Name and port, `size` bytes in the URL, which is one of http or https. */
const char *url_host(const char *url, size_t *size);

void hosts_init(struct hosts *hosts, unsigned limit, unsigned shards, size_t clump);
/* None may wait or run. */
void hosts_free(struct hosts *hosts);

/* Lays the run to the others of its host, or among those that are put off. */
void hosts_add(struct hosts *hosts, struct run *run, tw_duration now);
/* Takes the next run that may begin, or returns NULL. It runs until hosts_end(). */
struct run *hosts_take(struct hosts *hosts, tw_duration now);
/* Ends a run, whose time `took` is set. `answered` is whether the host did. A `pause` is what the
 * answer asks for; then run->put_off is set, unless the host has asked for pauses for so long that
 * attempts count. */
void hosts_end(struct hosts *hosts, struct run *run, tw_duration now, bool answered,
	       tw_duration pause);
/* If the time has come: puts off what waits for hosts that do not answer, and looks for hosts whose
 * next run may begin. */
void hosts_check(struct hosts *hosts, tw_duration now);
/* Puts off all that wait, for no time. */
void hosts_give_back(struct hosts *hosts, tw_duration now);

#endif
