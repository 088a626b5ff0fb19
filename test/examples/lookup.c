/* SPDX-License-Identifier: MIT */
/*
 * lookup is a look-up service: a cache in front of a database. If several threads want a key at the
 * same time, one thread asks the database, and the others get its answer. While the database fails,
 * they get its last answer. A timer of the wheel shows the statistics.
 *
 * The wheel has a manual clock, so that the program shows several minutes in no time.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <timingwheel/cache.h>

enum { THREADS = 8, USERS = 100 };

struct service {
	sqlite3 *database;
	struct tw_cache *users;
	atomic_int queries;
	atomic_bool database_fails;
};

/* Loads a user. One thread at a time calls it for each key. It may take long. */
static enum tw_status load_user(void *argument, const void *id, size_t id_size,
				struct tw_cache_loading *loading)
{
	struct service *service = argument;
	struct tw_cache_value name = {.data = NULL};
	enum tw_status status = TW_LOAD_FAILED;
	sqlite3_stmt *query;

	atomic_fetch_add(&service->queries, 1);
	if (atomic_load(&service->database_fails) ||
	    sqlite3_prepare_v2(service->database, "SELECT name FROM users WHERE id = ?", -1, &query,
			       NULL) != SQLITE_OK)
		return TW_LOAD_FAILED;
	sqlite3_bind_text(query, 1, id, (int)id_size, SQLITE_STATIC);
	switch (sqlite3_step(query)) {
	case SQLITE_ROW:
		name.data = sqlite3_column_text(query, 0);
		name.size = (size_t)sqlite3_column_bytes(query, 0);
		status = tw_cache_load_give(loading, &name);
		break;
	case SQLITE_DONE:
		status = TW_NOT_FOUND; /* the cache stores this, too: negative_expire */
		break;
	}
	sqlite3_finalize(query);
	return status;
}

/* Copies the user's name. Returns TW_STALE if the name is out of date. */
static enum tw_status look_up(struct service *service, const char *id, char *name, size_t size)
{
	const struct tw_cache_entry *entry;
	enum tw_status status = tw_cache_take(service->users, id, strlen(id), load_user, service,
					      10 * TW_SECOND, &entry);
	size_t name_size;
	const char *value;

	if (status != TW_OK && status != TW_STALE)
		return status;
	value = tw_cache_entry_value(entry, &name_size);
	snprintf(name, size, "%.*s", (int)name_size, value);
	tw_cache_entry_release(entry);
	return status;
}

static void *look_all_up(void *argument)
{
	char id[16];
	char name[64];

	for (int i = 0; i < USERS; i++) {
		snprintf(id, sizeof(id), "%d", i);
		if (look_up(argument, id, name, sizeof(name)) != TW_OK)
			return argument;
	}
	return NULL;
}

static void show(struct service *service, const char *when, const char *id)
{
	char name[64] = "-";
	enum tw_status status = look_up(service, id, name, sizeof(name));

	printf("%s: user %s is %s (%s), %d queries\n", when, id, name, tw_status_name(status),
	       atomic_load(&service->queries));
}

/* Shows the statistics, in a task of the wheel. */
static void show_statistics(void *argument)
{
	struct service *service = argument;
	struct tw_cache_stats stats;

	if (tw_cache_get_stats(service->users, &stats) == TW_OK)
		printf("statistics: %d lookups, %d loads\n",
		       (int)(stats.hits + stats.misses + stats.absent), (int)stats.loads);
}

static void pass(struct tw_wheel *wheel, tw_duration time)
{
	tw_advance(wheel, time);
	tw_wait_idle(wheel);
}

static bool fill(sqlite3 *database)
{
	char row[64];

	if (sqlite3_exec(database, "CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT)", NULL,
			 NULL, NULL) != SQLITE_OK)
		return false;
	for (int i = 0; i < USERS; i++) {
		snprintf(row, sizeof(row), "INSERT INTO users VALUES ('%d', 'name %d')", i, i);
		if (sqlite3_exec(database, row, NULL, NULL, NULL) != SQLITE_OK)
			return false;
	}
	return true;
}

int main(void)
{
	const struct tw_options wheel_options = {.clock = TW_CLOCK_MANUAL};
	struct tw_cache_options options = {.max_entries = 10000,
					   .jitter = -1,
					   .negative_expire = TW_SECOND,
					   .stale_if_error = TW_HOUR};
	struct service service = {0};
	pthread_t threads[THREADS];
	struct tw_timer statistics;
	struct tw_wheel *wheel;

	if (sqlite3_open(":memory:", &service.database) != SQLITE_OK || !fill(service.database) ||
	    tw_create(&wheel, TW_SECOND, 512, NULL, &wheel_options) != TW_OK)
		return 1;
	options.wheel = wheel;
	if (tw_cache_create(&service.users, TW_MINUTE, &options) != TW_OK ||
	    tw_every(wheel, 2 * TW_MINUTE, 2 * TW_MINUTE, TW_MISSED_SKIP, show_statistics, &service,
		     &statistics) != TW_OK)
		return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, look_all_up, &service);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	show(&service, "all threads are done", "42");
	show(&service, "unknown", "4711");
	show(&service, "unknown again", "4711");
	pass(wheel, 2 * TW_MINUTE);
	show(&service, "two minutes later", "42");
	atomic_store(&service.database_fails, true);
	pass(wheel, 2 * TW_MINUTE);
	show(&service, "the database fails", "42");
	atomic_store(&service.database_fails, false);
	show(&service, "it is back", "42");
	tw_timer_stop_wait(wheel, statistics);
	tw_cache_destroy(service.users);
	tw_destroy(wheel);
	sqlite3_close(service.database);
	return 0;
}
