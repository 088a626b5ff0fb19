/* SPDX-License-Identifier: MIT */
/*
 * What was acknowledged with durability outlives a power cut, and the loss of the master with its
 * disk. Without durability the same cuts lose something, which shows that the test would see it.
 *
 * CUTS in the environment is the number of power cuts at appendfsync always; the default is 4. All
 * other cases have a tenth of that, and at least 2.
 */
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "powercut/clients.h"
#include "powercut/disk.h"
#include "support/proxy.h"
#include "support/redis_server.h"

enum { CALLS_MOST = 300, URL_SIZE = 128 };

/* A trial is a kind of power cut. */
struct trial {
	/* The server has appendfsync always, and rewrites its file now and then. At everysec Redis
	 * may refuse to start if the power is cut after a rewrite has begun a new file, and before
	 * the old one is synced. */
	bool fsync_always;
	int64_t calls_most;  /* the power is cut after a random number of calls up to this */
	const char *setting; /* in the clients' URL */
};

static struct random random_now;

static int cuts_wanted(void)
{
	const char *given = getenv("CUTS");

	return given && *given ? atoi(given) : 4;
}

static int tenth(int cuts)
{
	return cuts < 20 ? 2 : cuts / 10;
}

static void name_next(char name[32])
{
	static unsigned number;

	snprintf(name, 32, "cut-%u", ++number);
}

static int64_t draw(int64_t least, int64_t most)
{
	return random_between(&random_now, least, most);
}

static void report(int times, const char *what, const char *setting, const struct losses *losses,
		   int64_t began)
{
	print_message("%d %s, %s, %.1f s: %" PRIu64 " calls acknowledged, %" PRIu64
		      " keys; lost: %" PRIu64 " tasks, %" PRIu64 " changes, %" PRIu64
		      " cancels, %" PRIu64 " acknowledgements\n",
		      times, what, *setting ? setting + 1 : "without durability",
		      (double)(wall_clock() - began) / 1e9, losses->calls, losses->keys,
		      losses->tasks, losses->changes, losses->cancels, losses->acks);
}

/* Runs clients until the power is cut, perhaps while the server rewrites its file, and restarts the
 * server with what the disk has. Then the server gets an empty disk: after a cut that tears a
 * MULTI, Redis appends to its beginning, and may lose at the next start what it has acknowledged
 * since. `redis-check-aof --fix` before the first start prevents that. */
static void cut_power(struct redis_server *server, const struct trial *trial, struct losses *losses,
		      struct cut *cut)
{
	uint64_t calls = (uint64_t)draw(1, trial->calls_most);
	struct clients *clients;
	char url[URL_SIZE];
	char name[32];

	name_next(name);
	snprintf(url, sizeof(url), "%s%s", server->url, trial->setting);
	clients = clients_start(url, name, &random_now);
	if (trial->fsync_always && random_once_in(&random_now, 3)) {
		uint64_t before = random_below(&random_now, calls);

		clients_await(clients, before);
		redis_server_number(server, "BGREWRITEAOF");
		calls -= before;
	}
	clients_await(clients, calls);
	/* This may be anywhere between two acknowledgements. */
	wait_for(draw(0, 2 * TW_MILLISECOND));
	redis_server_end(server, SIGKILL);
	clients_join(clients);
	disk_cut(server->folder, &random_now, cut);
	redis_server_restart(server);
	clients_check(clients, server->url, losses);
	redis_server_end(server, SIGKILL);
	redis_server_clear(server);
	redis_server_restart(server);
}

static struct losses cut_power_often(int times, const struct trial *trial)
{
	const struct redis_server_options options = {.append_only = true,
						     .fsync_always = trial->fsync_always,
						     .preload =
							     "test/redis/powercut/noted_disk.so"};
	int64_t began = wall_clock();
	struct redis_server server;
	struct losses losses = {0};
	struct cut cut = {0};

	redis_server_start(&server, &options);
	for (int i = 0; i < times; i++)
		cut_power(&server, trial, &losses, &cut);
	redis_server_stop(&server);
	report(times,
	       trial->fsync_always ? "power cuts at appendfsync always"
				   : "power cuts at appendfsync everysec",
	       trial->setting, &losses, began);
	print_message("taken from the disk: %" PRIu64 " bytes, %" PRIu64
		      " changes of names; %" PRIu64 " files torn\n",
		      cut.bytes, cut.names, cut.torn);
	return losses;
}

TEST(once, power_cuts_lose_nothing_acknowledged)
{
	const struct trial trial = {true, CALLS_MOST, "?durability=disk"};
	struct losses losses;

	losses = cut_power_often(cuts_wanted(), &trial);
	assert_int_equal(losses_sum(&losses), 0);
}

/* Returns whether a handle with this setting opens at a server with fsync each second. */
static bool server_fits(const char *setting)
{
	const struct redis_server_options options = {.append_only = true};
	struct tw_redis_options redis_options = {0};
	struct redis_server server;
	struct tw_redis *redis;
	enum tw_status status;
	char url[URL_SIZE];

	redis_server_start(&server, &options);
	snprintf(url, sizeof(url), "%s%s", server.url, setting);
	redis_options.url = url;
	status = tw_redis_open(&redis, &redis_options, NULL);
	tw_redis_close(redis);
	redis_server_stop(&server);
	return status == TW_OK;
}

/* This fails with a server whose WAITAOF replies before the fsync: Valkey 8.0.1, and Redis 7.4
 * until its change 13793. */
TEST(once, power_cuts_with_fsync_each_second_lose_nothing_acknowledged)
{
	/* A call waits for up to a second. */
	const struct trial trial = {false, 6, "?durability=disk"};
	struct losses losses;

	if (!server_fits(trial.setting))
		TEST_SKIP("the server can't wait for its fsync: it is older than 7.2");
	losses = cut_power_often(tenth(cuts_wanted()), &trial);
	assert_int_equal(losses_sum(&losses), 0);
}

TEST(once, power_cuts_without_durability_lose_something)
{
	struct losses losses;

	losses = cut_power_often(tenth(cuts_wanted()), &(struct trial){false, CALLS_MOST, ""});
	assert_true(losses_sum(&losses) > 0);
}

/* Makes the folder of a server whose file was renamed, without an fsync of the folder, after 3 of
 * its 6 bytes were synced. */
static void make_disk(char *folder)
{
	static const char notes[] =
		"create 7 old-aof\nsync 7 3\nnames 27\nrename old-aof new-aof\n";
	static const char *const files[] = {"disk/notes", "disk/7"};
	static const char *const texts[] = {notes, "abcdef"};
	int directory;

	assert_non_null(mkdtemp(folder));
	directory = open(folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(directory, "disk", 0700), 0);
	for (int i = 0; i < 2; i++) {
		int file = openat(directory, files[i], O_WRONLY | O_CREAT, 0600);

		assert_int_equal(write(file, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(file);
	}
	assert_int_equal(linkat(directory, "disk/7", directory, "new-aof", 0), 0);
	close(directory);
}

static void remove_disk(const char *folder)
{
	static const char *const names[] = {"old-aof",    "new-aof", "disk/7",
					    "disk/notes", "disk",    ""};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)remove(path);
	}
}

/* Returns the size of the file in the folder, or -1. */
static int64_t size_of(const char *folder, const char *name)
{
	struct stat status;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return stat(path, &status) ? -1 : status.st_size;
}

TEST(once, disk_loses_what_was_not_synced)
{
	enum { TRIES = 200 };
	bool seen[2][7] = {{false}};

	for (int i = 0; i < TRIES; i++) {
		char folder[] = "/tmp/disk-XXXXXX";
		struct cut cut = {0};
		int64_t sizes[2];
		bool is_renamed;

		make_disk(folder);
		disk_cut(folder, &random_now, &cut);
		sizes[0] = size_of(folder, "old-aof");
		sizes[1] = size_of(folder, "new-aof");
		is_renamed = sizes[0] < 0;
		assert_int_equal(sizes[!is_renamed], -1);
		assert_int_equal(cut.names, !is_renamed);
		assert_int_equal(cut.bytes, 6 - sizes[is_renamed]);
		seen[is_renamed][sizes[is_renamed]] = true;
		remove_disk(folder);
	}
	for (int size = 0; size < 7; size++) {
		assert_int_equal(seen[0][size], size >= 3);
		assert_int_equal(seen[1][size], size >= 3);
	}
}

/* A pair is a master and its replica, which reaches the master by a proxy. */
struct pair {
	struct redis_server servers[2];
	struct proxy proxy;
	int master;
};

static void replicate(struct pair *pair)
{
	struct redis_server *master = &pair->servers[pair->master];

	proxy_start(&pair->proxy, master->port);
	redis_server_number(&pair->servers[!pair->master], "REPLICAOF 127.0.0.1 %d",
			    pair->proxy.port);
	redis_server_number(master, "SET is-there 1");
	assert_int_equal(redis_server_number(master, "WAIT 1 30000"), 1);
}

/* Kills the master, perhaps after its replica was cut off, and makes the replica the master. The
 * old master restarts without data: it writes no file. */
static void lose_master(struct pair *pair, bool is_cut_off, const char *setting,
			struct losses *losses)
{
	struct redis_server *master = &pair->servers[pair->master];
	struct redis_server *replica = &pair->servers[!pair->master];
	struct clients *clients;
	char url[URL_SIZE];
	char name[32];

	name_next(name);
	replicate(pair);
	snprintf(url, sizeof(url), "%s%s", master->url, setting);
	clients = clients_start(url, name, &random_now);
	clients_await(clients, (uint64_t)draw(1, CALLS_MOST));
	if (is_cut_off) {
		proxy_cut(&pair->proxy);
		/* With durability no call returns now. */
		if (!*setting)
			clients_await(clients, 10);
	}
	wait_for(draw(0, 10 * TW_MILLISECOND));
	redis_server_end(master, SIGKILL);
	clients_join(clients);
	proxy_stop(&pair->proxy);
	redis_server_number(replica, "REPLICAOF NO ONE");
	clients_check(clients, replica->url, losses);
	redis_server_number(replica, "FLUSHALL");
	redis_server_restart(master);
	pair->master = !pair->master;
}

static struct losses lose_masters(int times, const char *setting)
{
	static struct pair pair;
	int64_t began = wall_clock();
	struct losses losses = {0};

	for (int i = 0; i < 2; i++)
		redis_server_start(&pair.servers[i], NULL);
	for (int i = 0; i < times; i++)
		lose_master(&pair, i % 2 == 0, setting, &losses);
	for (int i = 0; i < 2; i++)
		redis_server_stop(&pair.servers[i]);
	report(times, "failovers", setting, &losses, began);
	return losses;
}

TEST(once, failovers_lose_nothing_acknowledged)
{
	struct losses losses;

	losses = lose_masters(tenth(cuts_wanted()), "?durability=replica");
	assert_int_equal(losses_sum(&losses), 0);
}

TEST(once, failovers_without_durability_lose_something)
{
	struct losses losses;

	losses = lose_masters(tenth(cuts_wanted()), "");
	assert_true(losses_sum(&losses) > 0);
}

static int choose_seed(void **state)
{
	random_now = random_from(seed_choose(), 0);
	return 0;
}

TEST_FILE(choose_seed, NULL)
