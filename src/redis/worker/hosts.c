/* SPDX-License-Identifier: MIT */
/*
 * hosts.c gives hosts their turns.
 *
 * Invariant: a host is in `ready` if runs of it wait, it is not full, and begin_at has come.
 *
 * A host exists while runs of it wait or run, while runs that were put off will come back, and for
 * a while after it asked for a pause. It is full when its limit of running ones is reached. It has
 * stalled when it has been full for stall_time and no run began or ended.
 *
 * Runs are put off, which makes room for tasks of other hosts, if their host has stalled, or if it
 * is limited and they could not begin within keep_time. They come back in clumps, which form a line
 * in time. A clump is of one shard, so that one claim finds it. The distance between clumps is the
 * host's time for a run, by its last answer. It grows up to distance_max while no answer comes, so
 * a line of any length costs few commands a second.
 *
 * An answer that asks for a pause (429 or 503 with Retry-After) limits the host. No run begins
 * before the pause is over, and runs begin with a gap between them. The gap doubles after each
 * pause, and shrinks with each other answer. The run with this answer is put off, too, unless the
 * host has given no other answer for free_time.
 */
#include "hosts.h"

#include <stdlib.h>
#include <string.h>

static const tw_duration stall_time = 100 * TW_MILLISECOND;
/* This is the longest distance between small clumps, and what each further run of a clump adds. */
static const tw_duration distance_max = 500 * TW_MILLISECOND;
static const tw_duration each_max = 5 * TW_MILLISECOND;
/* A line of this length has each_max for each run, whatever the distance. */
static const tw_duration line_long = 4 * TW_SECOND;
static const tw_duration line_max = TW_HOUR;
static const tw_duration put_off_without_memory = TW_SECOND;
/* For limited hosts these are how early a run may wait here, the bounds of a gap, and how much time
 * may be made up for. */
static const tw_duration keep_time = 500 * TW_MILLISECOND;
static const tw_duration gap_min = TW_MILLISECOND;
static const tw_duration gap_max = 10 * TW_SECOND;
static const tw_duration burst_time = 20 * TW_MILLISECOND;
static const tw_duration free_time = TW_HOUR;
static const tw_duration remember_time = TW_MINUTE;

/* A clump is runs of a shard that come back together. */
struct clump {
	tw_duration due; /* monotonic */
	size_t count;
	size_t expected; /* the runs of the clump before; the line has time for these */
};

/* A host has monotonic times. */
struct host {
	struct host *next; /* in the chain */
	struct list ready;
	bool is_ready;
	unsigned running;
	struct run_list waiting;
	tw_duration moved;    /* when a run last began or ended */
	tw_duration answered; /* the last answer; at first, when the host came */
	tw_duration line;     /* when the next clump comes back */
	struct clump *clumps; /* the last clump of each shard; NULL until a run is put off */
	tw_duration interval; /* the mean time between beginnings */

	tw_duration gap;      /* the shortest time between beginnings; 0 means no limit */
	tw_duration widest;   /* the gap from which it shrinks */
	tw_duration begin_at; /* when the next run may begin */
	tw_duration slowed;   /* when the gap was widened */
	tw_duration taken;    /* the last answer that did not ask for a pause */

	unsigned chain;
	size_t size;
	char name[];
};

static tw_duration earlier(tw_duration a, tw_duration b)
{
	return a < b ? a : b;
}

static tw_duration later(tw_duration a, tw_duration b)
{
	return a > b ? a : b;
}

void hosts_init(struct hosts *hosts, unsigned limit, unsigned shards, size_t clump)
{
	*hosts = (struct hosts){.limit = limit, .shards = shards, .clump = clump};
	list_init(&hosts->ready);
	run_list_init(&hosts->put_off);
}

static void host_free(struct host *host)
{
	free(host->clumps);
	free(host);
}

void hosts_free(struct hosts *hosts)
{
	for (unsigned i = 0; i < HOST_CHAINS; i++) {
		struct host *next;

		for (struct host *host = hosts->chains[i]; host; host = next) {
			next = host->next;
			host_free(host);
		}
	}
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

static bool host_is_over(const struct host *host, tw_duration now)
{
	return !host->running && !host->waiting.count && host->line <= now &&
	       (!host->gap || now - host->moved > remember_time);
}

/* Returns the host of the chain, or NULL. Frees those that are over. */
static struct host *chain_search(struct host **at, const char *name, size_t size, tw_duration now)
{
	struct host *found = NULL;
	struct host *host;

	while ((host = *at)) {
		if (host->size == size && !memcmp(host->name, name, size)) {
			found = host;
		} else if (host_is_over(host, now)) {
			*at = host->next;
			host_free(host);
			continue;
		}
		at = &host->next;
	}
	return found;
}

/* Returns the host of the URL, or NULL without memory. */
static struct host *host_of(struct hosts *hosts, const char *url, tw_duration now)
{
	size_t size;
	const char *name = url_host(url, &size);
	unsigned chain = name_chain(name, size);
	struct host *host = chain_search(&hosts->chains[chain], name, size, now);

	if (host)
		return host;
	host = calloc(1, sizeof(*host) + size);
	if (!host)
		return NULL;
	host->size = size;
	host->chain = chain;
	host->moved = host->answered = host->taken = now;
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
	host_free(host);
}

static void check_by(struct hosts *hosts, tw_duration time)
{
	if (!hosts->check_at || time < hosts->check_at)
		hosts->check_at = time;
}

/* Keeps the invariant: the host is put at the end of the turns. Frees a host that is over. */
static void host_settle(struct hosts *hosts, struct host *host, tw_duration now)
{
	bool may = host->waiting.count && host->running < hosts->limit;
	bool ready = may && host->begin_at <= now;

	if (host->is_ready)
		list_remove(&host->ready);
	if (ready)
		list_append(&hosts->ready, &host->ready);
	host->is_ready = ready;
	if (may && !ready)
		check_by(hosts, host->begin_at);
	if (host_is_over(host, now))
		host_forget(hosts, host);
}

static bool host_has_stalled(const struct hosts *hosts, const struct host *host, tw_duration now)
{
	return host->running >= hosts->limit && now - host->moved >= stall_time;
}

/* Returns the most runs of a clump. A limited host has small clumps, so that their runs can
 * begin. */
static size_t host_clump_most(const struct hosts *hosts, const struct host *host)
{
	size_t most = host->gap ? (size_t)(distance_max / host->gap) + 1 : hosts->clump;

	return most < hosts->clump ? most : hosts->clump;
}

/* Puts the run into its shard's clump, or makes a new one at the line's end. Returns when it is
 * due, or 0 without memory. */
static tw_duration clump_add(struct hosts *hosts, struct host *host, unsigned shard,
			     tw_duration now)
{
	tw_duration first = later(now + stall_time, host->begin_at);
	tw_duration distance = earlier((now - host->answered) / hosts->limit, distance_max);
	tw_duration each =
		host->line - first > line_long ? each_max : earlier(distance / 8, each_max);
	struct clump *clump;

	each = later(each, host->gap);
	if (!host->clumps)
		host->clumps = calloc(hosts->shards, sizeof(*host->clumps));
	if (!host->clumps)
		return 0;
	clump = &host->clumps[shard % hosts->shards];
	if (clump->count < host_clump_most(hosts, host) && clump->due > first) {
		if (clump->count >= clump->expected)
			host->line += each;
	} else {
		host->line = earlier(later(host->line, first), now + line_max);
		*clump = (struct clump){.due = host->line, .expected = clump->count};
		host->line +=
			later(later(distance, host->gap), (tw_duration)clump->expected * each);
	}
	clump->count++;
	return clump->due;
}

static void run_put_off(struct hosts *hosts, struct host *host, struct run *run, tw_duration now)
{
	tw_duration due = clump_add(hosts, host, run->job->shard, now);

	run->put_off = due ? due - now : put_off_without_memory;
}

/* Returns whether a run that comes now could not begin for long. */
static bool host_is_slow(const struct host *host, tw_duration now)
{
	tw_duration line = host->gap * (tw_duration)host->waiting.count;

	return host->gap && later(host->begin_at, now) + line > now + keep_time;
}

void hosts_add(struct hosts *hosts, struct run *run, tw_duration now)
{
	struct host *host = host_of(hosts, run->job->url, now);

	if (!host) {
		run->put_off = put_off_without_memory;
		run_list_add(&hosts->put_off, run);
		return;
	}
	run->host = host;
	if (host_has_stalled(hosts, host, now) || host_is_slow(host, now)) {
		run_put_off(hosts, host, run, now);
		run_list_add(&hosts->put_off, run);
		return;
	}
	run_list_add(&host->waiting, run);
	if (host->running >= hosts->limit)
		check_by(hosts, now + stall_time);
	if (!host->is_ready)
		host_settle(hosts, host, now);
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
	host->interval += (earlier(now - host->moved, TW_SECOND) - host->interval) / 8;
	host->moved = now;
	if (host->gap)
		host->begin_at = later(host->begin_at, now - burst_time) + host->gap;
	if (host->waiting.count && host->running >= hosts->limit)
		check_by(hosts, now + stall_time);
	host_settle(hosts, host, now);
	return run;
}

/* Puts off all runs that wait for the host. */
static void host_put_off(struct hosts *hosts, struct host *host, tw_duration now)
{
	struct run *run;

	while ((run = run_list_take(&host->waiting))) {
		run_put_off(hosts, host, run, now);
		run_list_add(&hosts->put_off, run);
	}
}

/* Limits a host that asks for a pause. Answers to runs that began before it count once. */
static void host_slow_down(struct hosts *hosts, struct host *host, tw_duration pause,
			   tw_duration began, tw_duration now)
{
	if (!host->gap || began >= host->slowed) {
		host->gap = later(2 * (host->gap ? host->gap : host->interval), gap_min);
		host->gap = host->widest = earlier(host->gap, gap_max);
		host->slowed = now;
	}
	host->begin_at = later(host->begin_at, now + pause);
	host_put_off(hosts, host, now);
}

/* Shrinks the gap: the rate grows by a constant, which doubles it in 8 s or so. */
static void host_speed_up(struct host *host)
{
	double rate = 1e9 / (double)host->gap;

	rate += (double)host->gap / (8.0 * (double)host->widest);
	host->gap = (tw_duration)(1e9 / rate);
	if (2 * host->gap <= host->widest)
		host->widest = host->gap;
	if (host->gap < gap_min)
		host->gap = host->begin_at = 0;
}

void hosts_end(struct hosts *hosts, struct run *run, tw_duration now, bool answered,
	       tw_duration pause)
{
	struct host *host = run->host;

	host->running--;
	host->moved = now;
	if (answered)
		host->answered = now;
	if (pause) {
		host_slow_down(hosts, host, pause, now - run->took, now);
		if (now - host->taken < free_time)
			run_put_off(hosts, host, run, now);
	} else if (answered) {
		host->taken = now;
		if (host->gap)
			host_speed_up(host);
	}
	host_settle(hosts, host, now);
}

/* Calls the function with each host that has waiting runs. It may free the host. */
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
	if (!host_has_stalled(hosts, host, now)) {
		if (host->running >= hosts->limit)
			check_by(hosts, now + stall_time / 4);
		host_settle(hosts, host, now);
		return;
	}
	host_put_off(hosts, host, now);
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
	run_list_move(&hosts->put_off, &host->waiting);
	host_settle(hosts, host, now);
}

void hosts_give_back(struct hosts *hosts, tw_duration now)
{
	hosts_visit(hosts, host_give_back, now);
}
