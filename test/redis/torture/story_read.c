/* SPDX-License-Identifier: MIT */
/*
 * Lines are sorted by time first, so the files of several processes can be concatenated; lines of
 * one moment keep their order.
 */
#include "story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/sockets.h"

struct line {
	char *text;
	int64_t time;
};

static int line_compare(const void *one, const void *other)
{
	const struct line *a = one;
	const struct line *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->text < b->text ? -1 : 1;
}

static size_t lines_count(const char *text)
{
	size_t count = 1;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

/* Splits the text into lines, without the empty ones, and sorts them. */
static struct line *lines_cut(char *text, size_t *count)
{
	struct line *lines = calloc(lines_count(text), sizeof(*lines));
	char *rest = NULL;

	if (!lines)
		support_failed("calloc");
	*count = 0;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		lines[(*count)++] = (struct line){line, strtoll(line, NULL, 10)};
	qsort(lines, *count, sizeof(*lines), line_compare);
	return lines;
}

/*
 * After a step back, tokens are ahead of the clock for as long as that step; no step is longer.
 * With any durability, no caller waits until a replica has a claim or a lease's extension.
 */
static void find_unclear_runs(struct story *story)
{
	static const int64_t long_ago = INT64_C(15000000000);

	for (size_t i = 0; i < story->deeds.count; i++) {
		const struct deed *deed = story->deeds.items[i];

		bool is_clock = !strcmp(deed->name, "clock");
		bool is_master = !strcmp(deed->name, "master");

		for (size_t k = 0; k < story->runs.count && (is_clock || is_master); k++) {
			struct run *run = story->runs.items[k];
			int64_t last = run->end == INT64_MAX ? run->begin : run->end;
			int64_t first = is_clock ? run->begin - long_ago : run->claim;
			bool meets = deed->end > first && deed->begin < last;

			run->is_unclear |= meets;
			run->may_be_lost |= meets && is_master;
		}
	}
}

/* Reads the text, which the story then owns. */
static void read_text(struct story *story, char *text)
{
	size_t size = strlen(text) + 1;
	struct line *lines;
	size_t count;

	memset(story, 0, sizeof(*story));
	story->text = text;
	story->words = malloc(size);
	if (!story->words)
		support_failed("malloc");
	lines = lines_cut(text, &count);
	memcpy(story->words, text, size);
	for (size_t i = 0; i < count; i++) {
		list_add(&story->lines, lines[i].text);
		if (!story_add(story, lines[i].text, story->words + (lines[i].text - text)))
			list_add(&story->wrong, lines[i].text);
	}
	free(lines);
	find_unclear_runs(story);
}

void story_read(struct story *story, const char *text)
{
	char *copied = strdup(text);

	if (!copied)
		support_failed("strdup");
	read_text(story, copied);
}

void story_read_file(struct story *story, const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	/* The text has no NUL, so this reads the whole file. */
	if (!file || (getdelim(&text, &room, '\0', file) < 0 && ferror(file)) || !text)
		support_failed(path);
	fclose(file);
	read_text(story, text);
}

static void list_free(struct list_of *list)
{
	free(list->items);
	memset(list, 0, sizeof(*list));
}

/* Frees the list and its items. */
static void list_free_all(struct list_of *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	list_free(list);
}

static void keys_free(struct story *story)
{
	struct key *key;
	struct key *next_key;
	struct task *task;
	struct task *next_task;

	HASH_ITER (hh, story->keys, key, next_key) {
		HASH_DEL(story->keys, key);
		list_free(&key->calls);
		list_free(&key->tasks);
		list_free(&key->lines);
		free(key->name);
		free(key);
	}
	HASH_ITER (hh, story->tasks, task, next_task) {
		HASH_DEL(story->tasks, task);
		list_free(&task->runs);
		list_free(&task->gets);
		free(task->id);
		free(task);
	}
}

void story_free(struct story *story)
{
	struct actor *actor;
	struct actor *next;

	keys_free(story);
	HASH_ITER (hh, story->actors, actor, next) {
		HASH_DEL(story->actors, actor);
		list_free_all(&actor->breaks);
		free(actor->name);
		free(actor);
	}
	for (size_t i = 0; i < story->deeds.count; i++) {
		struct deed *deed = story->deeds.items[i];

		free(deed->name);
		free(deed->target);
	}
	list_free_all(&story->deeds);
	list_free_all(&story->limits);
	list_free_all(&story->calls);
	list_free_all(&story->runs);
	list_free(&story->lines);
	list_free(&story->wrong);
	free(story->text);
	free(story->words);
}

enum certainty call_certainty(const struct call *call)
{
	if (!call->status || !strcmp(call->status, "TW_REDIS_OUTCOME_UNKNOWN"))
		return UNCERTAIN;
	return strcmp(call->status, "TW_OK") ? CERTAIN_NO : CERTAIN_YES;
}

bool call_says_none(const struct call *call)
{
	if (!call->status)
		return false;
	if (call->kind == CALL_ADD && call->mode == ADD_NEW)
		return !strcmp(call->status, "TW_OK");
	return !strcmp(call->status, "TW_NOT_FOUND");
}

bool call_says_some(const struct call *call)
{
	if (!call->status)
		return false;
	if (!strcmp(call->status, "TW_EXISTS") || !strcmp(call->status, "TW_RUNNING"))
		return true;
	if (strcmp(call->status, "TW_OK") || call->kind == CALL_PAUSE || call->kind == CALL_RESUME)
		return false;
	return call->kind != CALL_ADD || call->mode == ADD_REPLACE;
}
