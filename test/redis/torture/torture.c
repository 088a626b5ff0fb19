/* SPDX-License-Identifier: MIT */
/*
 * Torture of workers and Redis: does any promise of redis.h break when processes are killed and
 * frozen, connections cut, and the server killed?
 *
 *     torture run MODE SECONDS SEED [SUMMARY]   prints a summary, also into that file
 *     torture check HISTORY [SUMMARY]           checks a saved history
 *
 * MODE is single, one server; cluster, three nodes and a replica; sentinel, a master and a replica
 * with three Sentinels; durable, these with durability both, and the master is killed while its
 * replica is cut off; clock, one server whose clock of day is stepped, too; power, one server whose
 * power is cut, with durability disk; careless, as power and without durability, which must fail.
 *
 * Clients and workers are processes that write histories (history.h). After SECONDS all is healed
 * and the clients end; the workers have some time to run the remaining tasks. Then the inventory of
 * Redis is written, too, and the checker (checker.h) reads it all.
 */
#include "torture.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checker.h"
#include "children.h"
#include "history.h"
#include "nemesis.h"
#include "summary.h"
#include "servers.h"
#include "support/sockets.h"
#include "support/wait.h"

/* Once nothing is in the way any more, the number of tasks must reach a new low within this
 * time. */
static const int64_t quiet_time = 60 * TW_SECOND;

/* Reads the history, and prints its faults. Returns the exit status. */
static int check(const char *path, const char *summary_path)
{
	struct story story;
	struct faults faults;
	FILE *summary;
	int status;

	story_read_file(&story, path);
	story_check(&story, &faults);
	faults_print(&faults, &story);
	summary_write(stdout, &story, &faults);
	if (summary_path) {
		summary = fopen(summary_path, "w");
		if (!summary)
			support_failed(summary_path);
		fputs("<!-- Made by make torture-redis; edits are lost. -->\n", summary);
		summary_write(summary, &story, &faults);
		fclose(summary);
	}
	status = faults.count > 0 || !story.runs.count;
	if (!story.runs.count)
		puts("FAULT: nothing has run");
	faults_free(&faults);
	story_free(&story);
	return status;
}

/* Waits until no task is left, or their number stops falling. */
static void await_quiet(struct tw_redis *redis)
{
	int64_t end = wall_clock() + quiet_time;
	uint64_t least = UINT64_MAX;
	struct tw_redis_stats stats;

	while (wall_clock() < end && least) {
		if (tw_redis_get_stats(redis, &stats) == TW_OK && stats.tasks < least) {
			least = stats.tasks;
			end = wall_clock() + quiet_time;
		}
		wait_for(100 * TW_MILLISECOND);
	}
}

static bool note_rest(void *context, const struct tw_redis_info *info)
{
	struct plan plan = {.id = "?"};

	(void)plan_read(&plan, info->task.body, info->task.body_size);
	history_write("rest", "rest %s %.*s %s", (const char *)context, (int)info->task.key_size,
		      (const char *)info->task.key, plan.id);
	return true;
}

/* Writes what is in Redis to the history. */
static void take_inventory(struct tw_redis *redis)
{
	if (tw_redis_each(redis, TW_REDIS_TASKS, note_rest, (void *)(uintptr_t) "task") != TW_OK ||
	    tw_redis_each(redis, TW_REDIS_LETTERS, note_rest, (void *)(uintptr_t) "dead") != TW_OK)
		support_failed("the inventory");
	history_write("rest", "rest all -");
}

/*
 * Sets limits of groups that are reached, but not for long, so that tasks do not pile up: claims by
 * hand have no limits.
 */
static void limit_groups(struct tw_redis *redis)
{
	static const struct {
		const char *group;
		unsigned running;
	} all[] = {{"a", 2}, {"c", 4}, {"d", 1}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const struct tw_redis_limits limits = {.running = all[i].running};

		if (tw_redis_set_limits(redis, all[i].group, &limits) != TW_OK)
			support_failed(all[i].group);
		history_write("main", "limit %s %u", all[i].group, all[i].running);
	}
}

/* Runs all from the start to the inventory. Returns false if a process failed. */
static bool torture(const char *folder, enum mode mode, uint64_t seed, int64_t duration)
{
	static struct children children;
	static struct servers servers;
	struct nemesis nemesis;
	const struct tw_redis_limits limits = {.running = RUNNING_MOST};
	const bool has_limits = mode != MODE_CLUSTER;
	struct part part = {.name = "rest", .folder = folder};
	struct tw_redis_options options;
	struct tw_redis *redis;
	bool is_fine;

	servers_start(&servers, mode, seed);
	part.url = servers.url;
	options = part_options(&part);
	/* The parts take the number of the namespace. Limits need one shard. */
	options.shards = has_limits ? 1 : SHARDS;
	if (tw_redis_open(&redis, &options, NULL) != TW_OK ||
	    (has_limits && tw_redis_set_limits(redis, NULL, &limits) != TW_OK))
		support_failed("no Redis");
	if (has_limits && seed_has_groups(seed))
		limit_groups(redis);
	children_start(&children, folder, seed, servers.cluster.nodes[0].port,
		       mode & (MODE_SINGLE | MODE_CLOCK) ? NULL : servers.url);
	nemesis_init(&nemesis, &children, &servers, seed);
	is_fine = nemesis_run(&nemesis, duration);
	for (int i = 0; i < CLIENTS; i++)
		is_fine &= child_stop(&children.all[i]);
	await_quiet(redis);
	for (int i = CLIENTS; i < CHILDREN; i++)
		is_fine &= child_stop(&children.all[i]);
	take_inventory(redis);
	tw_redis_close(redis);
	children_end(&children);
	if (mode & (MODE_POWER | MODE_CARELESS))
		printf("taken from the disk: %" PRIu64 " bytes, %" PRIu64
		       " changes of names; %" PRIu64 " files torn\n",
		       servers.cut.bytes, servers.cut.names, servers.cut.torn);
	servers_stop(&servers);
	return is_fine;
}

/* Merges the histories of all processes by time into one file beside their folder. */
static void merge(const char *folder, const char *path)
{
	static const char *const names[] = {"main", "c0", "c1", "w0", "w1", "h2"};
	char command[1024];
	int size = snprintf(command, sizeof(command), "sort -n -s");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		size += snprintf(command + size, sizeof(command) - (size_t)size, " %s/%s.log",
				 folder, names[i]);
	snprintf(command + size, sizeof(command) - (size_t)size, " >%s && rm -r %s", path, folder);
	if (system(command))
		support_failed("merging the histories");
}

static const char *build_folder(void)
{
	const char *build = getenv("BUILD");

	return build ? build : "build";
}

/* Returns 0 if there is no such mode. */
static enum mode mode_named(const char *name)
{
	static const struct {
		const char *name;
		enum mode mode;
	} all[] = {{"single", MODE_SINGLE},     {"cluster", MODE_CLUSTER},
		   {"sentinel", MODE_SENTINEL}, {"durable", MODE_DURABLE},
		   {"clock", MODE_CLOCK},       {"power", MODE_POWER},
		   {"careless", MODE_CARELESS}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(name, all[i].name))
			return all[i].mode;
	return 0;
}

/* The next server reads another clock, which is in the folder. */
static void set_environment(const char *folder)
{
	const char *server = getenv("REDIS_SERVER");
	char path[300];

	snprintf(path, sizeof(path), "%s/clock", folder);
	if (server && *server)
		setenv("TORTURE_SERVER", server, 1);
	setenv("TORTURE_CLOCK", path, 1);
	setenv("REDIS_SERVER", "test/redis/torture/shifted_server.sh", 1);
	setenv("BUILD", build_folder(), 1);
}

static int run(const char *mode_text, const char *seconds_text, const char *seed_text,
	       const char *summary_path)
{
	uint64_t seed = strtoull(seed_text, NULL, 0);
	int64_t seconds = strtoll(seconds_text, NULL, 0);
	char folder[256];
	char path[300];
	const char *commit = getenv("COMMIT");
	enum mode mode = mode_named(mode_text);
	bool is_fine;

	if (!mode) {
		fputs("MODE must be single, cluster, sentinel, durable, clock, power or careless\n",
		      stderr);
		return 2;
	}
	if (seconds < 1 || seconds > 1000000) {
		fputs("SECONDS must be 1 to 1000000\n", stderr);
		return 2;
	}
	snprintf(folder, sizeof(folder), "%s/test/redis/torture/history-%" PRIu64 "-XXXXXX",
		 build_folder(), seed);
	if (!mkdtemp(folder))
		support_failed(folder);
	snprintf(path, sizeof(path), "%s.txt", folder);
	printf("SEED=%" PRIu64 ", the history: %s\n", seed, path);
	history_open(folder, "main");
	history_write("main", "settings %" PRIu64 " %" PRId64 " %d %s %d %s", seed, seconds,
		      LEASE_MS, mode_text, mode == MODE_CLUSTER ? INT_MAX : RUNNING_MOST,
		      commit ? commit : "unknown");
	if (mode == MODE_CLOCK)
		set_environment(folder);
	is_fine = torture(folder, mode, seed, seconds * TW_SECOND);
	merge(folder, path);
	return check(path, summary_path) || !is_fine;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct part part;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "run") && (argc == 5 || argc == 6))
		return run(argv[2], argv[3], argv[4], argc == 6 ? argv[5] : NULL);
	if (!strcmp(what, "check") && (argc == 3 || argc == 4))
		return check(argv[2], argc == 4 ? argv[3] : NULL);
	if (argc != 6) {
		fputs("torture run MODE SECONDS SEED [SUMMARY] | torture check HISTORY [SUMMARY]\n",
		      stderr);
		return 2;
	}
	part = (struct part){.name = argv[2],
			     .url = argv[3],
			     .folder = argv[4],
			     .seed = strtoull(argv[5], NULL, 10)};
	if (!strcmp(what, "client"))
		return client_main(&part);
	if (!strcmp(what, "worker"))
		return worker_main(&part);
	if (!strcmp(what, "hand"))
		return hand_main(&part);
	return 2;
}
