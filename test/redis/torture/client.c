/* SPDX-License-Identifier: MIT */
/*
 * A client is a process of threads that add, move, cancel and look at tasks, one call at a time
 * each. Keys shared by all threads make conflicts; keys of one thread make tasks whose history is
 * exact. Only tasks whose keys are never used again may become dead letters, so that no dead letter
 * replaces another. Each thread sometimes has a recurring task, whose key no other thread uses.
 * Where the seed has groups, half of the tasks have one. The first client pauses and resumes the
 * namespace.
 */
#include "torture.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "support/seed.h"
#include "support/sockets.h"
#include "support/wait.h"

enum { THREADS = 3, HOT_KEYS = 6, RECENT = 64, DELAY_MOST_MS = 1500, PAUSE_MOST_MS = 24 };
enum { PERIOD_LEAST_MS = 100, PERIOD_MOST_MS = 800 };
/* The namespace is paused and resumed for these times. */
enum { PAUSED_LEAST_MS = 50, PAUSED_MOST_MS = 500, RESUMED_LEAST_MS = 500, RESUMED_MOST_MS = 4000 };

struct thread {
	pthread_t thread;
	char name[16];
	struct random random;
	struct tw_redis *redis;
	bool has_groups;
	unsigned number; /* the next task's number */
	char recent[RECENT][NAME_SIZE];
	char recurring[NAME_SIZE + 8]; /* the key of its recurring task, or "" */
};

static atomic_bool is_over;

static struct plan plan_draw(struct thread *thread, bool may_die)
{
	struct random *random = &thread->random;
	struct plan plan = {.kind = PLAN_DONE,
			    .takes_ms = (int)random_below(random, 60),
			    .wait_ms = (int)random_between(random, 10, 500)};

	snprintf(plan.id, sizeof(plan.id), "%s.%u", thread->name, thread->number++);
	if (random_once_in(random, 16))
		plan.takes_ms = (int)random_between(random, LEASE_MS / 2, 2 * LEASE_MS);
	if (random_once_in(random, 8))
		plan.kind = PLAN_RETRY;
	else if (may_die && random_once_in(random, 12))
		plan.kind = random_once_in(random, 2) ? PLAN_KILL : PLAN_FAIL;
	return plan;
}

/* Returns the group of the next task, or NULL. */
static const char *group_draw(struct thread *thread)
{
	static const char *const groups[] = {"a", "b", "c", "d", "c"};
	uint64_t drawn = random_below(&thread->random, 10);

	return thread->has_groups && drawn < 5 ? groups[drawn] : NULL;
}

static void add(struct thread *thread, const char *key, enum tw_redis_mode mode, bool may_die)
{
	static const char *const modes[] = {
		[TW_REDIS_ANY] = "any", [TW_REDIS_NEW] = "new", [TW_REDIS_REPLACE] = "replace"};
	struct plan plan = plan_draw(thread, may_die);
	int64_t delay_ms = (int64_t)random_below(&thread->random, DELAY_MOST_MS);
	char body[PLAN_TEXT_SIZE];
	struct tw_redis_task task = {.key = key, .key_size = strlen(key), .mode = mode};
	enum tw_status status;
	struct tw_redis_added added = {0};

	if (random_once_in(&thread->random, 5))
		delay_ms = 0;
	plan_write(&plan, body);
	task.delay = delay_ms * TW_MILLISECOND;
	task.body = body;
	task.body_size = strlen(body);
	task.max_attempts = may_die ? 4 : TW_REDIS_ATTEMPTS_MAX;
	task.group = group_draw(thread);
	history_write(thread->name, "call add %s %s %s %" PRId64 " %s", key, plan.id, modes[mode],
		      delay_ms, task.group ? task.group : "-");
	status = tw_redis_add(thread->redis, &task, 1, &added);
	history_write(thread->name, "answer %s %" PRId64, tw_status_name(status), added.due_ms);
}

static void move(struct thread *thread, const char *key)
{
	int64_t delay_ms = (int64_t)random_below(&thread->random, DELAY_MOST_MS);
	enum tw_status status;
	int64_t due_ms = 0;

	history_write(thread->name, "call move %s %" PRId64, key, delay_ms);
	status = tw_redis_move(thread->redis, key, strlen(key), 0, delay_ms * TW_MILLISECOND,
			       &due_ms);
	history_write(thread->name, "answer %s %" PRId64, tw_status_name(status), due_ms);
}

static void cancel(struct thread *thread, const char *key)
{
	enum tw_status status;

	history_write(thread->name, "call cancel %s", key);
	status = tw_redis_cancel(thread->redis, key, strlen(key), TW_REDIS_OCCURRENCE);
	history_write(thread->name, "answer %s 0", tw_status_name(status));
}

static bool note_found(void *context, const struct tw_redis_info *info)
{
	struct plan plan;

	if (plan_read(&plan, info->task.body, info->task.body_size))
		memcpy(context, plan.id, sizeof(plan.id));
	return true;
}

static void get(struct thread *thread, const char *key)
{
	char id[NAME_SIZE] = "-";
	enum tw_status status;

	history_write(thread->name, "call get %s", key);
	status = tw_redis_get(thread->redis, key, strlen(key), note_found, id);
	history_write(thread->name, "answer %s %s", tw_status_name(status), id);
}

/* Adds a task with a new key, which other tasks may take later or not. */
static void add_fresh(struct thread *thread)
{
	bool may_die = random_once_in(&thread->random, 2);
	char *key = thread->recent[random_below(&thread->random, RECENT)];
	char fresh[NAME_SIZE];

	if (may_die) {
		snprintf(fresh, sizeof(fresh), "alone-%s-%u", thread->name, thread->number);
		add(thread, fresh, TW_REDIS_ANY, true);
		return;
	}
	snprintf(fresh, sizeof(fresh), "key-%s-%u", thread->name, thread->number);
	strcpy(key, fresh);
	add(thread, key, random_once_in(&thread->random, 2) ? TW_REDIS_NEW : TW_REDIS_ANY, false);
}

static void recur(struct thread *thread)
{
	static const char *const names[] = {[TW_REDIS_MISSED_ONE] = "one",
					    [TW_REDIS_MISSED_SKIP] = "skip",
					    [TW_REDIS_MISSED_ALL] = "all"};
	struct random *random = &thread->random;
	struct plan plan = plan_draw(thread, false);
	enum tw_redis_missed missed = (enum tw_redis_missed)random_below(random, 3);
	int64_t period_ms = random_between(random, PERIOD_LEAST_MS, PERIOD_MOST_MS);
	int64_t delay_ms = (int64_t)random_below(random, DELAY_MOST_MS);
	char body[PLAN_TEXT_SIZE];
	struct tw_redis_task task = {.key = thread->recurring,
				     .delay = delay_ms * TW_MILLISECOND,
				     .every = period_ms * TW_MILLISECOND,
				     .missed = missed,
				     .max_attempts = TW_REDIS_ATTEMPTS_MAX,
				     .group = group_draw(thread),
				     .body = body};
	enum tw_status status;
	struct tw_redis_added added = {0};

	/* The shortest calendar period is a minute, which only longer tortures reach. */
	if (random_once_in(random, 3)) {
		task.cron = "* * * * *";
		task.every = task.delay = 0;
		period_ms = TW_MINUTE / TW_MILLISECOND;
		delay_ms = 0;
	} else if (random_once_in(random, 3)) {
		/* Times are missed by a run that outlasts the period. */
		plan.takes_ms = (int)random_between(random, period_ms, 2 * period_ms);
	}
	snprintf(thread->recurring, sizeof(thread->recurring), "every-%s", plan.id);
	task.key_size = strlen(thread->recurring);
	plan_write(&plan, body);
	task.body_size = strlen(body);
	history_write(thread->name, "call every %s %s %" PRId64 " %" PRId64 " %s %s",
		      thread->recurring, plan.id, delay_ms, period_ms, names[missed],
		      task.group ? task.group : "-");
	status = tw_redis_add(thread->redis, &task, 1, &added);
	history_write(thread->name, "answer %s %" PRId64, tw_status_name(status), added.due_ms);
}

/* Ends the recurring task, until that is certain. */
static void recur_no_more(struct thread *thread)
{
	const char *key = thread->recurring;
	enum tw_status status;

	do {
		history_write(thread->name, "call end %s", key);
		status = tw_redis_cancel(thread->redis, key, strlen(key), TW_REDIS_WHOLE);
		history_write(thread->name, "answer %s 0", tw_status_name(status));
	} while (status != TW_OK && status != TW_RUNNING && status != TW_NOT_FOUND);
	*thread->recurring = '\0';
}

static void change_recurring(struct thread *thread)
{
	uint64_t kind = random_below(&thread->random, 32);

	if (!*thread->recurring)
		recur(thread);
	else if (kind < 3)
		cancel(thread, thread->recurring);
	else if (kind < 31)
		get(thread, thread->recurring);
	else
		recur_no_more(thread);
}

static void change(struct thread *thread, const char *key)
{
	uint64_t kind = random_below(&thread->random, 10);

	if (kind < 4)
		add(thread, key, (enum tw_redis_mode)random_below(&thread->random, 3), false);
	else if (kind < 6)
		move(thread, key);
	else if (kind < 8)
		cancel(thread, key);
	else
		get(thread, key);
}

static void *thread_run(void *argument)
{
	struct thread *thread = argument;
	char hot[NAME_SIZE];

	/* relaxed: a flag alone, orders nothing */
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		const char *recent = thread->recent[random_below(&thread->random, RECENT)];
		uint64_t kind = random_below(&thread->random, 10);

		snprintf(hot, sizeof(hot), "hot-%d", (int)random_below(&thread->random, HOT_KEYS));
		if (random_once_in(&thread->random, 32))
			change_recurring(thread);
		else if (kind < 4 || !*recent)
			add_fresh(thread);
		else
			change(thread, kind < 7 ? recent : hot);
		wait_for((int64_t)random_below(&thread->random, PAUSE_MOST_MS) * TW_MILLISECOND);
	}
	if (*thread->recurring)
		recur_no_more(thread);
	return NULL;
}

static enum tw_status call_pause(struct thread *thread, bool paused)
{
	struct tw_redis_limits limits;
	enum tw_status status;

	history_write(thread->name, "call %s -", paused ? "pause" : "resume");
	status = tw_redis_get_limits(thread->redis, NULL, &limits);
	limits.paused = paused;
	if (status == TW_OK)
		status = tw_redis_set_limits(thread->redis, NULL, &limits);
	history_write(thread->name, "answer %s 0", tw_status_name(status));
	return status;
}

static void wait_between(struct thread *thread, int64_t least_ms, int64_t most_ms)
{
	wait_for(random_between(&thread->random, least_ms, most_ms) * TW_MILLISECOND);
}

/* Pauses the namespace and resumes it. */
static void *keeper_run(void *argument)
{
	struct thread *thread = argument;

	/* relaxed: a flag alone, orders nothing */
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		wait_between(thread, RESUMED_LEAST_MS, RESUMED_MOST_MS);
		if (call_pause(thread, true) == TW_OK)
			wait_between(thread, PAUSED_LEAST_MS, PAUSED_MOST_MS);
		/* A pause that failed may have paused some shards. */
		while (call_pause(thread, false) != TW_OK)
			;
	}
	return NULL;
}

int client_main(const struct part *part)
{
	struct tw_redis_options options = part_options(part);
	static struct thread threads[THREADS + 1];
	int count = THREADS + !strcmp(part->name, "c0"); /* the last is the thread that pauses */
	struct tw_redis *redis;

	signal_block();
	history_open(part->folder, part->name);
	/* Redis may be down now. */
	while (tw_redis_open(&redis, &options, NULL) != TW_OK)
		wait_for(50 * TW_MILLISECOND);
	for (int i = 0; i < count; i++) {
		snprintf(threads[i].name, sizeof(threads[i].name), "%st%d", part->name, i);
		threads[i].random = random_from(part->seed, (uint64_t)i);
		threads[i].redis = redis;
		threads[i].has_groups = seed_has_groups(part->seed);
		if (pthread_create(&threads[i].thread, NULL, i < THREADS ? thread_run : keeper_run,
				   &threads[i]))
			support_failed("pthread_create");
	}
	signal_await();
	/* relaxed: a flag alone, orders nothing */
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i].thread, NULL);
	tw_redis_close(redis);
	return 0;
}
