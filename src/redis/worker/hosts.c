/* SPDX-License-Identifier: MIT */
/*
 * hosts.c knows whom callbacks may call.
 *
 * A host that answers has as many requests as its limit allows. It is away when none of its
 * requests was answered for as long as it has patience, or when one of them timed out or could not
 * connect. An answer ends that at once. The failure of a request older than an answer says nothing:
 * `unanswered` is the time of the first request since the last answer.
 *
 * A host that is away has as many runs waiting here as requests, and at least one. The others are
 * put off, all to one time: a fifth of the time that the host has been away, from 2 s to 15 s, less
 * a random part. Shortly before they come back, one of those that wait here tries the host.
 *
 * A pause (429 or 503 with Retry-After) puts off all runs of the host to its end.
 *
 * A host exists while runs of it wait or run, and for a while after runs were put off.
 */
#include "hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"
#include "redis/client/record.h"

/* A host that never answered has less patience, because nothing is known of it. */
static const tw_duration patience = TW_SECOND;
static const tw_duration patience_at_first = 200 * TW_MILLISECOND;
static const tw_duration away_min = 2 * TW_SECOND;
static const tw_duration away_max = 15 * TW_SECOND;
/* Runs come back this much later than the host is tried, to find it answering. */
static const tw_duration try_time = 200 * TW_MILLISECOND;
static const tw_duration remember_time = TW_MINUTE;
/* Runs that wait for hosts that never answered hold up no others, up to about this number. */
static const size_t aside_max = 1024;

/* A host has monotonic times. */
struct host {
	struct host *next;       /* in the chain */
	struct list link;        /* in the list of hosts with waiting runs */
	struct run_list waiting; /* by their due times */
	size_t running;
	bool has_answered;
	bool failed;            /* a request timed out or could not connect */
	tw_duration unanswered; /* the first request since the last answer, or 0 */
	tw_duration begun;      /* the last request began */
	tw_duration try_at;     /* when a host that is away is called again */
	tw_duration paused;     /* the end of the last pause */
	size_t size;
	char name[];
};

void hosts_init(struct hosts *hosts, unsigned limit, uint64_t random)
{
	*hosts = (struct hosts){.limit = limit, .random = random};
	list_init(&hosts->waiting);
	run_list_init(&hosts->put_off);
}

void hosts_free(struct hosts *hosts)
{
	struct host *host;

	for (unsigned i = 0; i < HOST_CHAINS; i++)
		while ((host = hosts->chains[i])) {
			hosts->chains[i] = host->next;
			free(host);
		}
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
	return !host->running && !host->waiting.count && host->paused <= now &&
	       (!host->failed || now - host->try_at > remember_time);
}

/* Returns the host of the URL, or NULL without memory. Frees those of its chain that are over. */
static struct host *host_of(struct hosts *hosts, const char *url, tw_duration now)
{
	size_t size;
	const char *name = url_host(url, &size);
	struct host **at = &hosts->chains[name_chain(name, size)];
	struct host *host;

	while ((host = *at)) {
		if (host->size == size && !memcmp(host->name, name, size))
			return host;
		if (host_is_over(host, now)) {
			*at = host->next;
			free(host);
		} else {
			at = &host->next;
		}
	}
	host = calloc(1, sizeof(*host) + size);
	if (!host)
		return NULL;
	host->size = size;
	memcpy(host->name, name, size);
	run_list_init(&host->waiting);
	*at = host;
	return host;
}

tw_duration host_patience(const struct host *host)
{
	return host->has_answered ? patience : patience_at_first;
}

static bool host_is_away(const struct host *host, tw_duration now)
{
	return host->failed || (host->unanswered && now - host->unanswered >= host_patience(host));
}

/* A host that is away is tried by one request at a time, unless that is old. */
static bool host_may_be_tried(const struct hosts *hosts, const struct host *host, tw_duration now)
{
	return now >= host->paused && host->running < hosts->limit &&
	       (!host_is_away(host, now) ||
		(now >= host->try_at && (!host->running || now - host->begun >= away_max)));
}

/* A host that never answered may have one request, and more while that leaves others a part of the
 * places and at least an eighth. */
static bool host_may_begin(const struct hosts *hosts, const struct host *host, tw_duration now,
			   unsigned spare)
{
	unsigned kept = hosts->limit / 8;

	return host_may_be_tried(hosts, host, now) &&
	       (host->has_answered || !host->running || host_is_away(host, now) ||
		(spare > kept && host->running < 3 * (size_t)(spare - kept)));
}

/* Sets when a host that is away is tried next. */
static void host_try_later(struct hosts *hosts, struct host *host, tw_duration now)
{
	tw_duration wait = (now - host->unanswered) / 5;

	wait = wait < away_min ? away_min : wait > away_max ? away_max : wait;
	/* Several workers should not try it together. */
	host->try_at = now + wait -
		       (tw_duration)(xorshift_next(&hosts->random) % (uint64_t)(wait / 4 + 1));
}

/* Takes the run out of those that wait. */
static void host_take(struct host *host, struct run *run)
{
	list_remove(&run->link);
	if (!--host->waiting.count)
		list_remove(&host->link);
}

/* Puts the run off. One that would be too late then is over. */
static void run_put_off(struct run *run, tw_duration now, tw_duration until)
{
	if (run->late_at < until)
		run->fate = FATE_LATE;
	else
		run->put_off = until - now;
}

/* Puts off the last of the runs that wait for a host that is away or paused. If the host can be
 * tried, one begins first. */
static void host_check(struct hosts *hosts, struct host *host, tw_duration now)
{
	bool is_paused = now < host->paused;
	size_t most = is_paused ? 0 : host->running + !host->running;

	if (!is_paused && !host_is_away(host, now)) {
		if (!host->has_answered && host->running && hosts->aside < aside_max)
			hosts->aside += host->waiting.count;
		return;
	}
	if (host_may_be_tried(hosts, host, now))
		return;
	while (host->waiting.count > most) {
		struct run *last = list_entry(host->waiting.runs.previous, struct run, link);

		if (!is_paused && host->try_at <= now)
			host_try_later(hosts, host, now);
		host_take(host, last);
		run_put_off(last, now, is_paused ? host->paused : host->try_at + try_time);
		run_list_add(&hosts->put_off, last);
	}
	hosts->aside += host->waiting.count;
}

void hosts_check(struct hosts *hosts, tw_duration now)
{
	struct list *next;

	hosts->aside = 0;
	for (struct list *at = hosts->waiting.next; at != &hosts->waiting; at = next) {
		next = at->next;
		host_check(hosts, list_entry(at, struct host, link), now);
	}
}

void hosts_add(struct hosts *hosts, struct run *run, tw_duration now)
{
	struct host *host = host_of(hosts, run->job->url, now);
	struct list *before;

	if (!host) {
		run->put_off = TW_SECOND; /* there may be memory then */
		run_list_add(&hosts->put_off, run);
		return;
	}
	run->host = host;
	if (!host->waiting.count++)
		list_append(&hosts->waiting, &host->link);
	before = host->waiting.runs.previous;
	while (before != &host->waiting.runs &&
	       list_entry(before, struct run, link)->job->due_ms > run->job->due_ms)
		before = before->previous;
	list_append(before->next, &run->link);
}

/* Returns the run that may begin and is due first, or NULL. */
static struct run *hosts_first(const struct hosts *hosts, tw_duration now, unsigned spare)
{
	struct run *first = NULL;

	for (struct list *at = hosts->waiting.next; at != &hosts->waiting; at = at->next) {
		const struct host *host = list_entry(at, struct host, link);
		struct run *run = list_entry(host->waiting.runs.next, struct run, link);

		if (host_may_begin(hosts, host, now, spare) &&
		    (!first || run->job->due_ms < first->job->due_ms))
			first = run;
	}
	return first;
}

struct run *hosts_take(struct hosts *hosts, tw_duration now, unsigned spare)
{
	struct run *run;

	while ((run = hosts_first(hosts, now, spare))) {
		struct host *host = run->host;

		host_take(host, run);
		if (!run_may_begin(run, now)) {
			run_list_add(&hosts->put_off, run);
			continue;
		}
		host->running++;
		host->begun = now;
		if (!host->unanswered) {
			host->unanswered = now;
			host->try_at = now + patience;
		}
		if (host_is_away(host, now)) {
			host_try_later(hosts, host, now);
			host_check(hosts, host, now);
		}
		return run;
	}
	return NULL;
}

void hosts_end(struct run *run, tw_duration now, enum host_sign sign, tw_duration pause)
{
	struct host *host = run->host;

	host->running--;
	if (sign == HOST_ANSWERED) {
		host->has_answered = true;
		host->failed = false;
		host->unanswered = 0;
	} else if (sign == HOST_AWAY && host->unanswered && now - run->took >= host->unanswered) {
		host->failed = true;
	} else if (!host->running && !host->failed) {
		host->unanswered = 0;
	}
	if (pause && now + pause > host->paused)
		host->paused = now + pause;
	if (pause)
		run_put_off(run, now, host->paused);
}

void hosts_give_back(struct hosts *hosts)
{
	struct list *first;

	while ((first = list_take_first(&hosts->waiting)))
		run_list_move(&hosts->put_off, &list_entry(first, struct host, link)->waiting);
}
