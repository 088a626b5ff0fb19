/* SPDX-License-Identifier: MIT */
#include "powercut/clients.h"

#include "support/fixture.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/sockets.h"

enum { THREADS = 4, ENTRIES_MOST = 16384, SHARDS = 4, TOGETHER = 10, CLAIMED_MOST = 10 };
enum { ACK_NONE, ACK_OPEN, ACK_DONE };

static const int64_t year_2100 = INT64_C(4102444800000);
static const tw_duration lease = TW_MINUTE;

/* This is a key's task. Its body has the version; version 0 means that there is no task. */
struct state {
	int64_t due_ms; /* 1 means due now */
	unsigned version;
};

struct entry {
	/* These are the owner's. */
	struct state acknowledged;
	struct state open; /* after the call that had no answer */
	bool is_open;
	_Atomic uint8_t ack; /* any thread writes it */
	/* This is the check's. */
	struct state found;
};

struct thread {
	pthread_t id;
	int number;
	struct random random;
	struct clients *clients;
	unsigned version; /* the last used version */
	int count;        /* entries in use */
	struct entry entries[ENTRIES_MOST];
};

struct clients {
	struct tw_redis *redis;
	char name_space[32];
	struct thread threads[THREADS];

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t changed;
	uint64_t calls;
	enum tw_status failed; /* why the first thread ended */
};

/* A plan is a task to add, with what it points to. */
struct plan {
	struct entry *entry;
	struct tw_redis_task task;
	char key[KEY_SIZE];
	char body[KEY_SIZE];
};

uint64_t losses_sum(const struct losses *losses)
{
	return losses->tasks + losses->changes + losses->cancels + losses->acks;
}

/* Counts a call, and returns whether it has succeeded. */
static bool acknowledge(struct clients *clients, enum tw_status status)
{
	pthread_mutex_lock(&clients->lock);
	if (status == TW_OK)
		clients->calls++;
	else if (clients->failed == TW_OK)
		clients->failed = status;
	pthread_cond_broadcast(&clients->changed);
	pthread_mutex_unlock(&clients->lock);
	return status == TW_OK;
}

static void entry_open(struct entry *entry, struct state state)
{
	entry->open = state;
	entry->is_open = true;
}

static void entry_close(struct entry *entry)
{
	entry->acknowledged = entry->open;
	entry->is_open = false;
}

static int64_t later(struct thread *thread)
{
	return year_2100 + (int64_t)random_below(&thread->random, 1000000000);
}

static void key_write(char key[KEY_SIZE], const struct thread *thread, const struct entry *entry)
{
	snprintf(key, KEY_SIZE, "t%d-%d", thread->number, (int)(entry - thread->entries));
}

static void plan_add(struct plan *plan, struct thread *thread, struct entry *entry, int64_t due_ms)
{
	entry_open(entry, (struct state){due_ms, ++thread->version});
	key_write(plan->key, thread, entry);
	snprintf(plan->body, sizeof(plan->body), "%u", thread->version);
	plan->entry = entry;
	plan->task = (struct tw_redis_task){.key = plan->key,
					    .key_size = strlen(plan->key),
					    .at_ms = due_ms,
					    .body = plan->body,
					    .body_size = strlen(plan->body)};
}

static bool add(struct thread *thread, struct entry *entry, int64_t due_ms)
{
	struct plan plan;
	enum tw_status status;

	plan_add(&plan, thread, entry, due_ms);
	status = tw_redis_add(thread->clients->redis, &plan.task, 1, NULL);
	if (status == TW_OK)
		entry_close(entry);
	return acknowledge(thread->clients, status);
}

/* Adds a task, which is due in half of the cases. */
static bool add_new(struct thread *thread)
{
	return add(thread, &thread->entries[thread->count++],
		   random_once_in(&thread->random, 2) ? 1 : later(thread));
}

static bool add_together(struct thread *thread)
{
	struct plan plans[TOGETHER];
	struct tw_redis_task tasks[TOGETHER];
	struct tw_redis_added each[TOGETHER];
	enum tw_status status;

	for (int i = 0; i < TOGETHER; i++) {
		plan_add(&plans[i], thread, &thread->entries[thread->count++], later(thread));
		tasks[i] = plans[i].task;
		each[i].status = TW_INVALID;
	}
	status = tw_redis_add(thread->clients->redis, tasks, TOGETHER, each);
	for (int i = 0; i < TOGETHER; i++)
		if (each[i].status == TW_OK)
			entry_close(plans[i].entry);
	return acknowledge(thread->clients, status);
}

static bool move(struct thread *thread, struct entry *entry)
{
	char key[KEY_SIZE];
	int64_t due_ms = later(thread);
	enum tw_status status;

	key_write(key, thread, entry);
	entry_open(entry, (struct state){due_ms, entry->acknowledged.version});
	status = tw_redis_move(thread->clients->redis, key, strlen(key), due_ms, 0, NULL);
	if (status == TW_OK)
		entry_close(entry);
	return acknowledge(thread->clients, status);
}

static bool cancel(struct thread *thread, struct entry *entry)
{
	char key[KEY_SIZE];
	enum tw_status status;

	key_write(key, thread, entry);
	entry_open(entry, (struct state){0});
	status = tw_redis_cancel(thread->clients->redis, key, strlen(key), TW_REDIS_OCCURRENCE);
	if (status == TW_OK)
		entry_close(entry);
	return acknowledge(thread->clients, status);
}

/* Finds the entry of a key, which may be another thread's. */
static struct entry *entry_of(struct clients *clients, const void *key, size_t key_size)
{
	char text[KEY_SIZE];
	int thread = 0;
	int number = 0;

	snprintf(text, sizeof(text), "%.*s", (int)key_size, (const char *)key);
	if (sscanf(text, "t%d-%d", &thread, &number) != 2 || thread < 0 || thread >= THREADS ||
	    number < 0 || number >= ENTRIES_MOST)
		support_failed("a key that nobody has added");
	return &clients->threads[thread].entries[number];
}

/* Claims from a shard, and acknowledges the first half, or more, of what it gets. */
static bool work(struct thread *thread)
{
	struct clients *clients = thread->clients;
	unsigned shard = (unsigned)random_below(&thread->random, SHARDS);
	struct tw_redis_batch *batch;
	const struct tw_redis_job *jobs;
	enum tw_status each[CLAIMED_MOST];
	enum tw_status status;
	size_t count;

	status = tw_redis_claim(clients->redis, shard, CLAIMED_MOST, lease, &batch, NULL);
	count = status == TW_OK ? batch->count : 0;
	if (!count) {
		tw_redis_batch_free(batch);
		return status == TW_OK || acknowledge(clients, status);
	}
	jobs = batch->jobs;
	count = (size_t)random_between(&thread->random, (int64_t)(count + 1) / 2, (int64_t)count);
	for (size_t i = 0; i < count; i++) {
		/* relaxed: read after the threads were joined */
		atomic_store_explicit(&entry_of(clients, jobs[i].key, jobs[i].key_size)->ack,
				      ACK_OPEN, memory_order_relaxed);
		each[i] = TW_INVALID;
	}
	status = tw_redis_finish(clients->redis, jobs, count, TW_REDIS_DONE, NULL, each);
	for (size_t i = 0; i < count; i++)
		if (each[i] == TW_OK)
			/* relaxed: read after the threads were joined */
			atomic_store_explicit(
				&entry_of(clients, jobs[i].key, jobs[i].key_size)->ack, ACK_DONE,
				memory_order_relaxed);
	tw_redis_batch_free(batch);
	return acknowledge(clients, status);
}

/* Returns one of the thread's tasks that are due in 2100 or later, or NULL if a few tries find
 * none. */
static struct entry *waiting(struct thread *thread)
{
	for (int tries = 0; tries < 8 && thread->count; tries++) {
		struct entry *entry =
			&thread->entries[random_below(&thread->random, (uint64_t)thread->count)];

		if (!entry->is_open && entry->acknowledged.due_ms > 1)
			return entry;
	}
	return NULL;
}

static bool step(struct thread *thread)
{
	uint64_t kind = random_below(&thread->random, 10);
	struct entry *entry = kind < 4 ? waiting(thread) : NULL;

	if (entry && kind == 0)
		return add(thread, entry, later(thread));
	if (entry && kind == 1)
		return cancel(thread, entry);
	if (entry)
		return move(thread, entry);
	if (kind < 6)
		return work(thread);
	return kind < 7 ? add_together(thread) : add_new(thread);
}

static void *thread_run(void *argument)
{
	struct thread *thread = argument;

	while (step(thread))
		if (thread->count > ENTRIES_MOST - TOGETHER)
			support_failed("more keys than there are entries");
	return NULL;
}

static struct tw_redis *open_at(const char *url, const char *name_space)
{
	const struct tw_redis_options options = {
		.url = url, .name_space = name_space, .shards = SHARDS, .patience = -1};

	return client_open(&options);
}

struct clients *clients_start(const char *url, const char *name_space, struct random *random)
{
	struct clients *clients = calloc(1, sizeof(*clients));

	if (!clients)
		support_failed("memory");
	snprintf(clients->name_space, sizeof(clients->name_space), "%s", name_space);
	clients->redis = open_at(url, name_space);
	pthread_mutex_init(&clients->lock, NULL);
	pthread_cond_init(&clients->changed, NULL);
	for (int i = 0; i < THREADS; i++) {
		struct thread *thread = &clients->threads[i];

		thread->number = i;
		thread->clients = clients;
		thread->random = random_from(random_next(random), (uint64_t)i);
		if (pthread_create(&thread->id, NULL, thread_run, thread))
			support_failed("pthread_create");
	}
	return clients;
}

void clients_await(struct clients *clients, uint64_t calls)
{
	enum tw_status failed;

	pthread_mutex_lock(&clients->lock);
	calls += clients->calls;
	while (clients->calls < calls && clients->failed == TW_OK)
		pthread_cond_wait(&clients->changed, &clients->lock);
	failed = clients->failed;
	pthread_mutex_unlock(&clients->lock);
	assert_ok(clients->redis, failed);
}

void clients_join(struct clients *clients)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(clients->threads[i].id, NULL);
	client_close(clients->redis);
}

static bool note_found(void *context, const struct tw_redis_info *info)
{
	char body[KEY_SIZE];

	snprintf(body, sizeof(body), "%.*s", (int)info->task.body_size,
		 (const char *)info->task.body);
	entry_of(context, info->task.key, info->task.key_size)->found =
		(struct state){info->due_ms, (unsigned)strtoul(body, NULL, 10)};
	return true;
}

/* Compares states, except the due time of tasks that are due or on lease. */
static bool is_state(struct state found, struct state state)
{
	return found.version == state.version &&
	       (!state.version || state.due_ms == 1 || found.due_ms == state.due_ms);
}

static void entry_check(const struct entry *entry, struct losses *losses)
{
	struct state found = entry->found;
	/* relaxed: the threads were joined */
	uint8_t ack = atomic_load_explicit(&entry->ack, memory_order_relaxed);

	losses->keys++;
	if (ack == ACK_DONE) {
		losses->acks += found.version != 0;
		return;
	}
	if (is_state(found, entry->acknowledged) ||
	    (entry->is_open && is_state(found, entry->open)) || (ack == ACK_OPEN && !found.version))
		return;
	losses->tasks += !found.version;
	losses->changes += found.version && entry->acknowledged.version;
	losses->cancels += found.version && !entry->acknowledged.version;
}

void clients_check(struct clients *clients, const char *url, struct losses *losses)
{
	struct tw_redis *redis = open_at(url, clients->name_space);

	assert_ok(redis, tw_redis_each(redis, TW_REDIS_TASKS, note_found, clients));
	client_close(redis);
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < clients->threads[i].count; k++)
			entry_check(&clients->threads[i].entries[k], losses);
	losses->calls += clients->calls;
	pthread_mutex_destroy(&clients->lock);
	pthread_cond_destroy(&clients->changed);
	free(clients);
}
