/* SPDX-License-Identifier: MIT */
/*
 * A host is there while something of it waits or runs. It is full when as many run as may; it has
 * stalled when it has been full for stall_time without one that began or ended. What waits for it
 * then goes back to Redis for a while, which makes room for tasks of others; the more there are of
 * them the longer, so that they cost little however many they are.
 *
 * Invariant: a host is in `ready` if something of it waits and it is not full.
 */
#include "hosts.h"

#include <stdlib.h>
#include <string.h>

static const tw_duration stall_time = 100 * TW_MILLISECOND;
static const tw_duration put_off_each = TW_MILLISECOND;
static const tw_duration put_off_max = 10 * TW_SECOND;

struct host {
	struct host *next; /* in its chain */
	struct list ready;
	bool is_ready;
	unsigned running;
	struct run_list waiting;
	tw_duration moved; /* monotonic: when one began or ended */
	int64_t put_off;   /* so many were, since it last answered */
	unsigned chain;
	size_t size;
	char name[];
};

void hosts_init(struct hosts *hosts, unsigned limit)
{
	*hosts = (struct hosts){.limit = limit};
	list_init(&hosts->ready);
	run_list_init(&hosts->put_off);
}

const char *url_host(const char *url, size_t *size)
{
	const char *host = strstr(url, "://") + 3;
	const char *at;

	*size = strcspn(host, "/?#");
	at = memrchr(host, '@', *size);
	if (at) {
		*size -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	return host;
}

static unsigned name_chain(const char *name, size_t size)
{
	unsigned hash = 2166136261U; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	return (hash ^ hash >> 16) % HOST_CHAINS;
}

/* NULL without memory. */
static struct host *host_of(struct hosts *hosts, const char *url)
{
	size_t size;
	const char *name = url_host(url, &size);
	unsigned chain = name_chain(name, size);
	struct host *host = hosts->chains[chain];

	while (host && (host->size != size || memcmp(host->name, name, size)))
		host = host->next;
	if (host)
		return host;
	host = calloc(1, sizeof(*host) + size);
	if (!host)
		return NULL;
	host->size = size;
	host->chain = chain;
	memcpy(host->name, name, size);
	run_list_init(&host->waiting);
	host->next = hosts->chains[chain];
	hosts->chains[chain] = host;
	return host;
}

static void host_forget(struct hosts *hosts, struct host *host)
{
	struct host **at = &hosts->chains[host->chain];

	while (*at != host)
		at = &(*at)->next;
	*at = host->next;
	free(host);
}

/* Keeps the invariant, at the end of the turns; frees a host of which nothing is left. */
static void host_settle(struct hosts *hosts, struct host *host)
{
	bool ready = host->waiting.count && host->running < hosts->limit;

	if (host->is_ready)
		list_remove(&host->ready);
	if (ready)
		list_append(&hosts->ready, &host->ready);
	host->is_ready = ready;
	if (!host->running && !host->waiting.count)
		host_forget(hosts, host);
}

static bool host_has_stalled(const struct hosts *hosts, const struct host *host, tw_duration now)
{
	return host->running >= hosts->limit && now - host->moved >= stall_time;
}

static void run_put_off(struct hosts *hosts, struct host *host, struct run *run)
{
	run->put_off = stall_time + put_off_each * host->put_off++;
	if (run->put_off > put_off_max)
		run->put_off = put_off_max;
	run_list_add(&hosts->put_off, run);
}

void hosts_add(struct hosts *hosts, struct run *run, tw_duration now)
{
	struct host *host = host_of(hosts, run->job->url);

	if (!host) {
		run->put_off = put_off_max;
		run_list_add(&hosts->put_off, run);
		return;
	}
	run->host = host;
	if (host_has_stalled(hosts, host, now)) {
		run_put_off(hosts, host, run);
		return;
	}
	run_list_add(&host->waiting, run);
	if (host->running >= hosts->limit && !hosts->check_at)
		hosts->check_at = now + stall_time;
	if (!host->is_ready)
		host_settle(hosts, host);
}

struct run *hosts_take(struct hosts *hosts, tw_duration now)
{
	struct host *host;
	struct run *run;

	if (list_is_empty(&hosts->ready))
		return NULL;
	host = list_entry(hosts->ready.next, struct host, ready);
	run = run_list_take(&host->waiting);
	host->running++;
	host->moved = now;
	if (host->waiting.count && host->running >= hosts->limit && !hosts->check_at)
		hosts->check_at = now + stall_time;
	host_settle(hosts, host);
	return run;
}

void hosts_end(struct hosts *hosts, struct run *run, tw_duration now, bool answered)
{
	struct host *host = run->host;

	host->running--;
	host->moved = now;
	if (answered)
		host->put_off = 0;
	host_settle(hosts, host);
}

/* Calls with each host that has runs waiting; the call may free it. */
static void hosts_visit(struct hosts *hosts,
			void (*visit)(struct hosts *hosts, struct host *host, tw_duration now),
			tw_duration now)
{
	for (unsigned i = 0; i < HOST_CHAINS; i++) {
		struct host *next;

		for (struct host *host = hosts->chains[i]; host; host = next) {
			next = host->next;
			if (host->waiting.count)
				visit(hosts, host, now);
		}
	}
}

static void host_check(struct hosts *hosts, struct host *host, tw_duration now)
{
	struct run *run;

	if (!host_has_stalled(hosts, host, now)) {
		if (host->running >= hosts->limit)
			hosts->check_at = now + stall_time / 4;
		return;
	}
	while ((run = run_list_take(&host->waiting)))
		run_put_off(hosts, host, run);
}

void hosts_check(struct hosts *hosts, tw_duration now)
{
	if (!hosts->check_at || now < hosts->check_at)
		return;
	hosts->check_at = 0;
	hosts_visit(hosts, host_check, now);
}

static void host_give_back(struct hosts *hosts, struct host *host, tw_duration now)
{
	(void)now;
	run_list_move(&hosts->put_off, &host->waiting);
	host_settle(hosts, host);
}

void hosts_give_back(struct hosts *hosts)
{
	hosts_visit(hosts, host_give_back, 0);
}
