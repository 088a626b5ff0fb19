/* SPDX-License-Identifier: MIT */
/* An answer belongs to its actor's last call; an end and a report belong to the run of that
 * token. */
#include "story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/sockets.h"

enum { WORDS_MAX = 11 };

/* This is a line, split into words. */
struct words {
	char *all[WORDS_MAX];
	size_t count;
	int64_t time;
	int64_t real_us;
	const char *line;
};

static void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		support_failed("calloc");
	return memory;
}

static char *copy(const char *text)
{
	char *copied = strdup(text);

	if (!copied)
		support_failed("strdup");
	return copied;
}

void list_add(struct list_of *list, const void *item)
{
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 8;
		list->items = realloc(list->items, list->room * sizeof(*list->items));
		if (!list->items)
			support_failed("realloc");
	}
	list->items[list->count++] = (void *)(uintptr_t)item;
}

static struct key *key_of(struct story *story, const char *name)
{
	struct key *key;

	HASH_FIND_STR(story->keys, name, key);
	if (key)
		return key;
	key = allocate(sizeof(*key));
	key->name = copy(name);
	HASH_ADD_KEYPTR(hh, story->keys, key->name, strlen(key->name), key);
	return key;
}

/* Returns the task of that id. The first line that names it sets its key. */
static struct task *task_of(struct story *story, struct key *key, const char *id)
{
	struct task *task;

	HASH_FIND_STR(story->tasks, id, task);
	if (task)
		return task;
	task = allocate(sizeof(*task));
	task->id = copy(id);
	task->key = key;
	list_add(&key->tasks, task);
	HASH_ADD_KEYPTR(hh, story->tasks, task->id, strlen(task->id), task);
	return task;
}

static struct actor *actor_of(struct story *story, const char *name)
{
	struct actor *actor;

	HASH_FIND_STR(story->actors, name, actor);
	if (actor)
		return actor;
	actor = allocate(sizeof(*actor));
	actor->name = copy(name);
	HASH_ADD_KEYPTR(hh, story->actors, actor->name, strlen(actor->name), actor);
	return actor;
}

static bool is(const struct words *words, size_t index, const char *word)
{
	return index < words->count && !strcmp(words->all[index], word);
}

/* Returns the group at that word, or NULL. */
static const char *group_at(const struct words *words, size_t index)
{
	return index < words->count && !is(words, index, "-") ? words->all[index] : NULL;
}

static bool read_add(struct story *story, const struct words *words, struct call *call,
		     struct key *key)
{
	if (words->count != 9 && words->count != 10)
		return false;
	call->kind = CALL_ADD;
	call->mode = is(words, 7, "new")       ? ADD_NEW
		     : is(words, 7, "replace") ? ADD_REPLACE
					       : ADD_ANY;
	call->delay_ms = strtoll(words->all[8], NULL, 10);
	call->task = task_of(story, key, words->all[6]);
	if (call->task->added || call->task->key != key)
		return false;
	call->task->added = call;
	call->task->group = group_at(words, 9);
	return true;
}

/* Reads the add of a recurring task, whose key no other task has. */
static bool read_every(struct story *story, const struct words *words, struct call *call,
		       struct key *key)
{
	if (words->count != 10 && words->count != 11)
		return false;
	call->kind = CALL_ADD;
	call->delay_ms = strtoll(words->all[7], NULL, 10);
	call->task = task_of(story, key, words->all[6]);
	call->task->period_ms = strtoll(words->all[8], NULL, 10);
	call->task->missed = is(words, 9, "all")    ? MISSED_ALL
			     : is(words, 9, "skip") ? MISSED_SKIP
						    : MISSED_ONE;
	if (call->task->added || key->tasks.count != 1 || call->task->period_ms < 1)
		return false;
	call->task->added = call;
	call->task->group = group_at(words, 10);
	return true;
}

/* Reads a call that has only a key. */
static bool read_plain_call(const struct words *words, struct call *call)
{
	static const char *const names[CALL_KINDS] = {[CALL_CANCEL] = "cancel",
						      [CALL_GET] = "get",
						      [CALL_END] = "end",
						      [CALL_PAUSE] = "pause",
						      [CALL_RESUME] = "resume"};

	for (call->kind = 0; call->kind < CALL_KINDS; call->kind++)
		if (names[call->kind] && is(words, 4, names[call->kind]))
			return true;
	return false;
}

static bool read_call(struct story *story, const struct words *words)
{
	struct actor *actor = actor_of(story, words->all[2]);
	struct call *call;
	struct key *key;

	if (words->count < 6)
		return false;
	call = allocate(sizeof(*call));
	list_add(&story->calls, call);
	key = key_of(story, words->all[5]);
	call->begin = words->time;
	call->begin_real_us = words->real_us;
	call->end = INT64_MAX;
	call->line = words->line;
	if (is(words, 4, "add")) {
		if (!read_add(story, words, call, key))
			return false;
	} else if (is(words, 4, "move") && words->count == 7) {
		call->kind = CALL_MOVE;
		call->delay_ms = strtoll(words->all[6], NULL, 10);
	} else if (is(words, 4, "every")) {
		if (!read_every(story, words, call, key))
			return false;
	} else if (!read_plain_call(words, call)) {
		return false;
	}
	call->index = key->calls.count;
	list_add(&key->calls, call);
	list_add(&key->lines, words->line);
	actor->open = call;
	return true;
}

/* Returns the key that a call's line names. */
static struct key *key_of_call(struct story *story, const struct call *call)
{
	char name[64];

	if (sscanf(call->line, "%*s %*s %*s call %*s %63s", name) != 1)
		return NULL;
	return key_of(story, name);
}

static bool read_answer(struct story *story, const struct words *words)
{
	struct actor *actor = actor_of(story, words->all[2]);
	struct call *call = actor->open;
	struct key *key = call ? key_of_call(story, call) : NULL;
	int64_t least_us;

	if (!key || words->count != 6)
		return false;
	actor->open = NULL;
	call->end = words->time;
	/* The server's clock may have been stepped back before the call reached it. */
	least_us = words->real_us - (call->end - call->begin) / 1000;
	if (call->begin_real_us > least_us)
		call->begin_real_us = least_us;
	call->status = words->all[4];
	call->answer = words->line;
	if (call->kind != CALL_GET) {
		call->due_ms = strtoll(words->all[5], NULL, 10);
	} else if (!is(words, 5, "-")) {
		call->task = task_of(story, key, words->all[5]);
		list_add(&call->task->gets, call);
	}
	list_add(&key->lines, words->line);
	return true;
}

static struct run *run_of(const struct task *task, uint64_t token)
{
	for (size_t i = task->runs.count; i > 0; i--) {
		struct run *run = task->runs.items[i - 1];

		if (run->token == token && run->report == INT64_MAX)
			return run;
	}
	return NULL;
}

static void run_begin(struct story *story, const struct words *words, struct task *task,
		      uint64_t token)
{
	struct run *run = allocate(sizeof(*run));

	run->task = task;
	run->actor = actor_of(story, words->all[2]);
	run->token = token;
	run->attempt = (unsigned)strtoul(words->all[7], NULL, 10);
	run->due_ms = words->count > 8 ? strtoll(words->all[8], NULL, 10) : 0;
	run->begin = words->time;
	run->claim = words->time - (words->real_us - (int64_t)token) * 1000;
	if (run->claim > run->begin)
		run->claim = run->begin;
	run->end = INT64_MAX;
	run->report = INT64_MAX;
	run->begin_line = words->line;
	list_add(&task->runs, run);
	list_add(&story->runs, run);
}

static enum run_end end_named(const char *name)
{
	static const char *const names[] = {[RUN_DONE] = "done",
					    [RUN_RETRIED] = "retried",
					    [RUN_DEAD] = "dead",
					    [RUN_STALE] = "stale",
					    [RUN_UNCONFIRMED] = "unconfirmed"};

	for (enum run_end end = RUN_DONE; end <= RUN_UNCONFIRMED; end++)
		if (!strcmp(name, names[end]))
			return end;
	return RUN_NO_END;
}

static bool read_run(struct story *story, const struct words *words)
{
	struct key *key;
	struct task *task;
	struct run *run;
	uint64_t token;

	if (words->count < 7)
		return false;
	key = key_of(story, words->all[4]);
	task = task_of(story, key, words->all[5]);
	token = strtoull(words->all[6], NULL, 10);
	list_add(&key->lines, words->line);
	if (is(words, 3, "begin")) {
		if (words->count != 8 && words->count != 9)
			return false;
		run_begin(story, words, task, token);
		return true;
	}
	run = run_of(task, token);
	/* A run may be given back before it begins. */
	if (!run)
		return is(words, 7, "released") || is(words, 7, "unconfirmed");
	if (is(words, 3, "end")) {
		run->end = words->time;
		run->end_real_us = words->real_us;
		run->end_line = words->line;
		return true;
	}
	if (words->count != 9)
		return false;
	run->report = words->time;
	run->outcome = end_named(words->all[7]);
	run->is_exact = is(words, 3, "exact");
	run->wait_ms = strtoll(words->all[8], NULL, 10);
	run->report_line = words->line;
	return run->outcome != RUN_NO_END;
}

static bool read_deed(struct story *story, const struct words *words)
{
	struct deed *deed;

	if (words->count != 6)
		return false;
	if (is(words, 3, "deed")) {
		deed = allocate(sizeof(*deed));
		deed->name = copy(words->all[4]);
		deed->target = copy(words->all[5]);
		deed->begin = words->time;
		deed->end = INT64_MAX;
		deed->line = words->line;
		list_add(&story->deeds, deed);
		return true;
	}
	for (size_t i = story->deeds.count; i > 0; i--) {
		deed = story->deeds.items[i - 1];
		if (is(words, 4, deed->name) && is(words, 5, deed->target)) {
			deed->end = words->time;
			return true;
		}
	}
	return false;
}

static bool read_rest(struct story *story, const struct words *words)
{
	struct key *key;
	struct task *task;

	if (is(words, 4, "all")) {
		story->has_rest = true;
		return true;
	}
	if (words->count != 7)
		return false;
	key = key_of(story, words->all[5]);
	task = task_of(story, key, words->all[6]);
	task->rest = is(words, 4, "dead") ? REST_DEAD : REST_TASK;
	task->rest_line = words->line;
	list_add(&key->lines, words->line);
	return true;
}

static void limit_add(struct story *story, const char *group, const char *most)
{
	struct limit *limit = allocate(sizeof(*limit));

	limit->group = group;
	limit->most = strtoul(most, NULL, 10);
	list_add(&story->limits, limit);
}

static bool read_words(struct story *story, const struct words *words)
{
	if (is(words, 3, "call"))
		return read_call(story, words);
	if (is(words, 3, "answer"))
		return read_answer(story, words);
	if (is(words, 3, "begin") || is(words, 3, "end") || is(words, 3, "report") ||
	    is(words, 3, "exact"))
		return read_run(story, words);
	if (is(words, 3, "deed") || is(words, 3, "heal"))
		return read_deed(story, words);
	if (is(words, 3, "rest"))
		return read_rest(story, words);
	if (is(words, 3, "settings") && words->count >= 8) {
		story->seed = strtoll(words->all[4], NULL, 10);
		story->seconds = strtoll(words->all[5], NULL, 10);
		story->lease_ms = strtoll(words->all[6], NULL, 10);
		story->mode = words->all[7];
		if (words->count > 8 && !is(words, 8, "0"))
			limit_add(story, "", words->all[8]);
		story->commit = words->count > 9 ? words->all[9] : NULL;
		return true;
	}
	if (is(words, 3, "limit") && words->count == 6) {
		limit_add(story, words->all[4], words->all[5]);
		return true;
	}
	return false;
}

/* Splits the line into its words. */
static bool words_cut(struct words *words, const char *line, char *copied)
{
	char *rest = NULL;

	*words = (struct words){.line = line};
	for (char *word = strtok_r(copied, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (words->count == WORDS_MAX)
			return false;
		words->all[words->count++] = word;
	}
	if (words->count < 5)
		return false;
	words->time = strtoll(words->all[0], NULL, 10);
	words->real_us = strtoll(words->all[1], NULL, 10);
	return words->time > 0 && words->real_us > 0;
}

bool story_add(struct story *story, const char *line, char *copied)
{
	struct words words;

	return words_cut(&words, line, copied) && read_words(story, &words);
}
