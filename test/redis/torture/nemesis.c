/* SPDX-License-Identifier: MIT */
/*
 * A deed is done to a target that is well, and healed after a random time; meanwhile others are
 * done to other targets. The random numbers do not depend on events. Whether a deed is done does,
 * for the target has to be well at that time.
 */
#include "nemesis.h"

#include <signal.h>
#include <string.h>

#include "history.h"
#include "support/wait.h"
#include "torture.h"

enum { PAUSE_LEAST_MS = 50, PAUSE_MOST_MS = 650, CLOCK_MOST_MS = 2000 };
static const int64_t look_time = 10 * TW_MILLISECOND;

/* A cluster's nodes publish each other's addresses, and so do Sentinels, so no proxy is before
 * them. A server whose power is cut has its durability in its URL. */
enum {
	ON_ONE_SERVER = MODE_SINGLE | MODE_CLOCK,
	ON_SEVERAL = MODE_CLUSTER | MODE_SENTINEL | MODE_DURABLE,
	ON_ONE_DISK = MODE_POWER | MODE_CARELESS
};
enum { EVERYWHERE = ON_ONE_SERVER | ON_SEVERAL | ON_ONE_DISK };

struct deed_kind {
	const char *name; /* in the history; the checker knows those that break connections */
	enum target_kind target;
	unsigned weight; /* relative frequency */
	void (*harm)(struct nemesis *nemesis, int target);
	void (*heal)(struct nemesis *nemesis, int target); /* NULL if nothing needs healing */
	int64_t least_ms;
	int64_t most_ms;
	unsigned modes; /* the modes that use it */
};

static struct child *worker_of(struct nemesis *nemesis, int target)
{
	return &nemesis->children->all[CLIENTS + target];
}

static void worker_kill(struct nemesis *nemesis, int target)
{
	child_kill(worker_of(nemesis, target));
}

static void worker_start_again(struct nemesis *nemesis, int target)
{
	child_start(nemesis->children, worker_of(nemesis, target));
}

static void worker_freeze(struct nemesis *nemesis, int target)
{
	kill(worker_of(nemesis, target)->pid, SIGSTOP);
}

static void worker_thaw(struct nemesis *nemesis, int target)
{
	kill(worker_of(nemesis, target)->pid, SIGCONT);
}

static void connections_cut(struct nemesis *nemesis, int target)
{
	proxy_cut(&nemesis->children->all[target].proxy);
}

static void connections_mend(struct nemesis *nemesis, int target)
{
	proxy_mend(&nemesis->children->all[target].proxy);
}

static void reply_lose(struct nemesis *nemesis, int target)
{
	proxy_lose_reply(&nemesis->children->all[target].proxy, "EVALSHA");
}

static void reply_keep(struct nemesis *nemesis, int target)
{
	proxy_lose_reply(&nemesis->children->all[target].proxy, "");
}

static void server_kill(struct nemesis *nemesis, int target)
{
	uint64_t count = (uint64_t)nemesis->servers->count;

	(void)target;
	servers_kill(nemesis->servers, (int)random_below(&nemesis->random, count));
}

static void server_start(struct nemesis *nemesis, int target)
{
	(void)target;
	servers_heal(nemesis->servers);
}

static void memory_fill(struct nemesis *nemesis, int target)
{
	(void)target;
	servers_ask(nemesis->servers, "CONFIG SET maxmemory 1");
}

static void memory_free(struct nemesis *nemesis, int target)
{
	(void)target;
	servers_ask(nemesis->servers, "CONFIG SET maxmemory 0");
}

static void scripts_flush(struct nemesis *nemesis, int target)
{
	(void)target;
	servers_ask(nemesis->servers, "SCRIPT FLUSH");
}

static void connections_drop(struct nemesis *nemesis, int target)
{
	(void)target;
	servers_ask(nemesis->servers, "CLIENT KILL TYPE normal SKIPME yes");
}

static void shard_move(struct nemesis *nemesis, int target)
{
	unsigned shard = (unsigned)random_below(&nemesis->random, SHARDS);

	(void)target;
	servers_move_shard(nemesis->servers, shard,
			   (int)random_below(&nemesis->random, CLUSTER_NODES));
}

static void fail_over(struct nemesis *nemesis, int target)
{
	(void)target;
	servers_fail_over(nemesis->servers);
}

/* Steps the clock. The sum of the steps stays within CLOCK_MOST_MS either way: after a step back of
 * more than 5 s a recurring task would begin its times again, which the checker does not know. */
static void clock_step(struct nemesis *nemesis, int target)
{
	(void)target;
	history_shift_clock(random_between(&nemesis->random, -CLOCK_MOST_MS, CLOCK_MOST_MS) * 1000);
}

static const struct deed_kind deed_kinds[] = {
	{"kill", TARGET_WORKER, 6, worker_kill, worker_start_again, 0, 800, EVERYWHERE},
	{"freeze", TARGET_WORKER, 8, worker_freeze, worker_thaw, LEASE_MS / 2, 2500, EVERYWHERE},
	{"cut", TARGET_PROXY, 6, connections_cut, connections_mend, 0, 1500, ON_ONE_SERVER},
	{"lose", TARGET_PROXY, 12, reply_lose, reply_keep, 100, 500, ON_ONE_SERVER},
	{"server", TARGET_SERVER, 4, server_kill, server_start, 0, 1500, ON_ONE_SERVER},
	/* A cluster needs seconds to recover. */
	{"server", TARGET_SERVER, 1, server_kill, server_start, 0, 1500, MODE_CLUSTER},
	{"server", TARGET_SERVER, 8, server_kill, server_start, 0, 1500, MODE_SENTINEL},
	{"master", TARGET_SERVER, 8, server_kill, server_start, 0, 1500, MODE_DURABLE},
	{"master", TARGET_SERVER, 40, server_kill, server_start, 0, 300, ON_ONE_DISK},
	{"full", TARGET_SERVER, 2, memory_fill, memory_free, 100, 1000, EVERYWHERE},
	{"flush", TARGET_SERVER, 2, scripts_flush, NULL, 0, 0, EVERYWHERE},
	{"drop", TARGET_SERVER, 1, connections_drop, NULL, 0, 0, ON_SEVERAL},
	{"move-slot", TARGET_SERVER, 12, shard_move, NULL, 0, 0, MODE_CLUSTER},
	{"clock", TARGET_SERVER, 12, clock_step, NULL, 0, 0, MODE_CLOCK},
	{"fail-over", TARGET_SERVER, 3, fail_over, NULL, 0, 0, ON_SEVERAL},
};
enum { DEED_KINDS = sizeof(deed_kinds) / sizeof(*deed_kinds) };
static const int target_counts[TARGET_KINDS] = {WORKERS, CHILDREN, 1};

void nemesis_init(struct nemesis *nemesis, struct children *children, struct servers *servers,
		  uint64_t seed)
{
	memset(nemesis, 0, sizeof(*nemesis));
	nemesis->children = children;
	nemesis->servers = servers;
	nemesis->random = random_from(seed, 0);
}

static void line_write(struct nemesis *nemesis, const char *what, const struct deed_kind *deed,
		       int target)
{
	const char *name = "server";

	if (deed->target == TARGET_WORKER)
		name = worker_of(nemesis, target)->name;
	else if (deed->target == TARGET_PROXY)
		name = nemesis->children->all[target].name;
	history_write("nemesis", "%s %s %s", what, deed->name, name);
}

static void harm_end(struct nemesis *nemesis, struct harm *harm, int target)
{
	const struct deed_kind *deed = harm->deed;

	if (deed->heal)
		deed->heal(nemesis, target);
	line_write(nemesis, "heal", deed, target);
	harm->deed = NULL;
}

/* Heals the deeds that are to end by then. */
static void heal(struct nemesis *nemesis, int64_t now)
{
	for (int kind = 0; kind < TARGET_KINDS; kind++)
		for (int target = 0; target < target_counts[kind]; target++) {
			struct harm *harm = &nemesis->harms[kind][target];

			if (harm->deed && now >= harm->heals_at)
				harm_end(nemesis, harm, target);
		}
}

static unsigned deed_weight(const struct nemesis *nemesis, const struct deed_kind *deed)
{
	return deed->modes & nemesis->servers->mode ? deed->weight : 0;
}

static const struct deed_kind *deed_draw(struct nemesis *nemesis)
{
	uint64_t all = 0;
	uint64_t drawn;
	int i;

	for (i = 0; i < DEED_KINDS; i++)
		all += deed_weight(nemesis, &deed_kinds[i]);
	drawn = random_below(&nemesis->random, all);
	for (i = 0; drawn >= deed_weight(nemesis, &deed_kinds[i]); i++)
		drawn -= deed_weight(nemesis, &deed_kinds[i]);
	return &deed_kinds[i];
}

static bool deed_is_possible(const struct nemesis *nemesis, const struct deed_kind *deed)
{
	if (deed->harm == server_kill)
		return servers_may_kill(nemesis->servers);
	return deed->harm != fail_over || servers_may_fail_over(nemesis->servers);
}

static void harm_begin(struct nemesis *nemesis, int64_t now)
{
	struct random *random = &nemesis->random;
	const struct deed_kind *deed = deed_draw(nemesis);
	int target = (int)random_below(random, (uint64_t)target_counts[deed->target]);
	int64_t lasts_ms = random_between(random, deed->least_ms, deed->most_ms);
	struct harm *harm = &nemesis->harms[deed->target][target];

	if (harm->deed || !deed_is_possible(nemesis, deed))
		return;
	/* The line is written first, so its effects have later times. */
	line_write(nemesis, "deed", deed, target);
	harm->deed = deed;
	harm->heals_at = now + lasts_ms * TW_MILLISECOND;
	deed->harm(nemesis, target);
}

bool nemesis_run(struct nemesis *nemesis, int64_t duration)
{
	int64_t end = wall_clock() + duration;
	int64_t next = 0;
	bool all_run = true;

	for (int64_t now = wall_clock(); now < end && all_run; now = wall_clock()) {
		heal(nemesis, now);
		if (now >= next) {
			harm_begin(nemesis, now);
			next = now +
			       random_between(&nemesis->random, PAUSE_LEAST_MS, PAUSE_MOST_MS) *
				       TW_MILLISECOND;
		}
		wait_for(look_time);
		all_run = children_run(nemesis->children);
	}
	heal(nemesis, INT64_MAX);
	return all_run;
}
