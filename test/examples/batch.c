/* SPDX-License-Identifier: MIT */
/*
 * batch loads many keys by one query. The cache's loader keeps each load and notes its key; an
 * alarm of the wheel asks the database for all keys that were noted in the last few milliseconds,
 * and ends their loads.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timingwheel/cache.h>

enum { USERS = 100, UNKNOWN = 5 };

/* One user that is to be loaded. */
struct wanted {
	struct wanted *next;
	int id;
	struct tw_cache_loading *loading;
};

struct batcher {
	struct tw_alarm alarm;
	pthread_mutex_t lock;
	struct wanted *first; /* under the lock */
	atomic_int queries;
};

/* Notes a user, on the pool of the wheel. */
static enum tw_status load_later(void *argument, const void *id, size_t id_size,
				 struct tw_cache_loading *loading)
{
	struct batcher *batcher = argument;
	struct wanted *wanted = malloc(sizeof(*wanted));

	if (!wanted)
		return TW_NO_MEMORY;
	if (tw_cache_load_keep(loading) != TW_OK) {
		free(wanted);
		return TW_LOAD_FAILED;
	}
	memcpy(&wanted->id, id, id_size);
	wanted->loading = loading;
	pthread_mutex_lock(&batcher->lock);
	wanted->next = batcher->first;
	batcher->first = wanted;
	/* The first one waits for others to come. */
	if (!wanted->next)
		(void)tw_alarm_set(&batcher->alarm, 5 * TW_MILLISECOND);
	pthread_mutex_unlock(&batcher->lock);
	return TW_OK; /* the load is kept, and goes on */
}

/* Answers all that are wanted: SELECT id, name FROM users WHERE id IN (...). */
static void query(void *argument)
{
	struct batcher *batcher = argument;
	struct wanted *wanted;
	struct wanted *next;
	char name[32];
	struct tw_cache_value value = {.data = name};

	pthread_mutex_lock(&batcher->lock);
	next = batcher->first;
	batcher->first = NULL;
	pthread_mutex_unlock(&batcher->lock);
	atomic_fetch_add(&batcher->queries, 1);
	while ((wanted = next)) {
		enum tw_status status = TW_NOT_FOUND;

		next = wanted->next;
		if (wanted->id < USERS) {
			snprintf(name, sizeof(name), "name %d", wanted->id);
			value.size = strlen(name);
			status = tw_cache_load_give(wanted->loading, &value);
		}
		tw_cache_load_end(wanted->loading, status);
		free(wanted);
	}
}

/* The takes that are to be answered. */
struct answers {
	sem_t semaphore;
	atomic_int found;
	atomic_int unknown;
};

static void be_answered(void *argument, enum tw_status status, const struct tw_cache_entry *entry)
{
	struct answers *answers = argument;

	atomic_fetch_add(&answers->found, entry != NULL);
	atomic_fetch_add(&answers->unknown, status == TW_NOT_FOUND);
	sem_post(&answers->semaphore);
}

/* Takes all users, without a thread for each. */
static void take_all(struct tw_cache *users, const struct batcher *batcher)
{
	struct answers answers = {.found = 0};

	sem_init(&answers.semaphore, 0, 0);
	for (int id = 0; id < USERS + UNKNOWN; id++)
		if (tw_cache_take_async(users, &id, sizeof(id), be_answered, &answers) != TW_OK)
			sem_post(&answers.semaphore);
	for (int id = 0; id < USERS + UNKNOWN; id++)
		sem_wait(&answers.semaphore);
	printf("%d users found, %d unknown, %d queries\n", atomic_load(&answers.found),
	       atomic_load(&answers.unknown), atomic_load(&batcher->queries));
	sem_destroy(&answers.semaphore);
}

int main(void)
{
	struct batcher batcher = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct tw_cache_options options = {
		.load = load_later, .load_context = &batcher, .negative_expire = TW_MINUTE};
	struct tw_cache *users;

	if (tw_create(&options.wheel, TW_MILLISECOND, 512, NULL, NULL) != TW_OK ||
	    tw_alarm_init(options.wheel, &batcher.alarm, query, &batcher) != TW_OK ||
	    tw_cache_create(&users, TW_MINUTE, &options) != TW_OK)
		return 1;
	take_all(users, &batcher);
	take_all(users, &batcher);
	tw_cache_destroy(users);
	tw_alarm_destroy(&batcher.alarm);
	tw_destroy(options.wheel);
	return 0;
}
