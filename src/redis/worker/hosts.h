/* SPDX-License-Identifier: MIT */
/*
 * hosts says which callback begins next. Each host has a limit of concurrent callbacks, and hosts
 * take turns. Runs that wait for a host that does not answer, or asks for a pause, are put off, so
 * that they delay no other host's. One thread uses it.
 */
#ifndef REDIS_WORKER_HOSTS_H
#define REDIS_WORKER_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "run.h"

enum { HOST_CHAINS = 256 };

struct hosts {
	unsigned limit;                   /* the most running callbacks of a host */
	unsigned shards;                  /* the number of shards of the tasks */
	size_t clump;                     /* the most runs of a shard that come back together */
	struct host *chains[HOST_CHAINS]; /* by the hash of the name */
	struct list ready;                /* hosts with runs that may begin */
	struct run_list put_off;          /* runs to give back; each run's put_off is set */
	tw_duration check_at;             /* monotonic; when hosts_check() is due, or 0 */
};

/* Returns name and port, *size bytes in the URL, whose scheme is http or https. */
const char *url_host(const char *url, size_t *size);

void hosts_init(struct hosts *hosts, unsigned limit, unsigned shards, size_t clump);
/* Frees all hosts. No run may wait or run. */
void hosts_free(struct hosts *hosts);

/* Adds the run to the others of its host, or to those that are put off. */
void hosts_add(struct hosts *hosts, struct run *run, tw_duration now);
/* Takes the next run that may begin, or returns NULL. It runs until hosts_end(). */
struct run *hosts_take(struct hosts *hosts, tw_duration now);
/* Ends a run, whose time `took` is set. `answered` says whether the host did. `pause` is the pause
 * that the answer asks for, or 0. A pause sets run->put_off, unless the host has asked for pauses
 * long enough that attempts count. */
void hosts_end(struct hosts *hosts, struct run *run, tw_duration now, bool answered,
	       tw_duration pause);
/* Puts off runs that wait for hosts that do not answer, and finds hosts whose next run may begin,
 * if the time has come. */
void hosts_check(struct hosts *hosts, tw_duration now);
/* Puts off all waiting runs, for no time. */
void hosts_give_back(struct hosts *hosts, tw_duration now);

#endif
