/* SPDX-License-Identifier: MIT */
#include "traces.h"

#include "generator.h"
#include "process.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Folders ---- */

/* Returns the length of a name without its ending, or 0 if it is no file of keys. */
static size_t stem_length(const char *name)
{
	static const char *const endings[] = {".u32", ".u32.xz"};
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t ending = strlen(endings[i]);

		if (length > ending && strcmp(name + length - ending, endings[i]) == 0)
			return length - ending;
	}
	return 0;
}

static int has_keys(const struct dirent *file)
{
	return stem_length(file->d_name) > 0;
}

size_t traces_find(const char *folder, char ***names)
{
	struct dirent **files;
	int found = scandir(folder, &files, has_keys, alphasort);
	size_t count = 0;

	if (found < 0)
		process_fail("%s cannot be read: %s", folder, strerror(errno));
	*names = process_allocate(((size_t)found + 1) * sizeof(**names));
	for (int i = 0; i < found; i++) {
		char *name = strndup(files[i]->d_name, stem_length(files[i]->d_name));

		if (!name)
			process_fail("out of memory");
		/* A file and its compressed copy are neighbours. */
		if (count > 0 && strcmp((*names)[count - 1], name) == 0)
			free(name);
		else
			(*names)[count++] = name;
		free(files[i]);
	}
	free(files);
	return count;
}

/* ---- Files ---- */

static FILE *open_compressed(const char *path)
{
	char command[4200];
	FILE *file;

	/* The shell sees the path between such quotes. */
	if (strchr(path, '\''))
		process_fail("%s: a path with an apostrophe cannot be read", path);
	snprintf(command, sizeof(command), "xz -dc '%s'", path);
	file = popen(command, "r");
	if (!file)
		process_fail("xz could not be started: %s", strerror(errno));
	return file;
}

/* Returns all numbers of a stream in the byte order of the machine, and their count in *count. */
static uint32_t *read_numbers(FILE *file, size_t *count)
{
	size_t room = 1 << 16;
	uint32_t *numbers = malloc(room * sizeof(*numbers));

	*count = 0;
	while (numbers) {
		*count += fread(numbers + *count, sizeof(*numbers), room - *count, file);
		if (*count < room)
			break;
		room *= 2;
		numbers = realloc(numbers, room * sizeof(*numbers));
	}
	if (!numbers)
		process_fail("out of memory");
	for (size_t i = 0; i < *count; i++)
		numbers[i] = le32toh(numbers[i]);
	return numbers;
}

/* Returns the keys in a file or in its compressed copy, and their count. */
static uint32_t *read_keys(const char *folder, const char *name, size_t *count)
{
	char path[4096];
	size_t length = (size_t)snprintf(path, sizeof(path), "%s/%s.u32", folder, name);
	bool is_compressed = false;
	uint32_t *numbers;
	FILE *file;

	if (length + sizeof(".xz") > sizeof(path))
		process_fail("the path of %s is too long", name);
	file = fopen(path, "rb");
	if (!file) {
		memcpy(path + length, ".xz", sizeof(".xz"));
		is_compressed = true;
		file = open_compressed(path);
	}
	numbers = read_numbers(file, count);
	if (ferror(file) || (is_compressed ? pclose(file) : fclose(file)) != 0)
		process_fail("%s could not be read", path);
	return numbers;
}

/* ---- Traces ---- */

/* Returns the slot of a table that has the key, or the empty one where the key belongs. A slot has
 * 1 more than the number of its key. */
static uint32_t *find_slot(uint32_t *slots, size_t mask, const uint32_t *known, uint32_t key)
{
	size_t slot = scramble(key) & mask;

	while (slots[slot] && known[slots[slot] - 1] != key)
		slot = (slot + 1) & mask;
	return &slots[slot];
}

/* Replaces the keys by numbers from 0, in the order of their first accesses. */
static void number_keys(struct trace *trace)
{
	uint32_t *known = process_allocate((trace->length + 1) * sizeof(*known));
	uint32_t *slots;
	size_t room = 1;

	while (room < 2 * trace->length)
		room *= 2;
	slots = process_allocate(room * sizeof(*slots));
	for (size_t i = 0; i < trace->length; i++) {
		uint32_t *slot = find_slot(slots, room - 1, known, trace->key[i]);

		if (!*slot) {
			known[trace->keys] = trace->key[i];
			*slot = ++trace->keys;
		}
		trace->key[i] = *slot - 1;
	}
	free(slots);
	free(known);
}

struct trace *trace_read(const char *folder, const char *name)
{
	struct trace *trace = process_allocate(sizeof(*trace));

	snprintf(trace->name, sizeof(trace->name), "%s", name);
	trace->key = read_keys(folder, name, &trace->length);
	if (trace->length == 0 || trace->length > UINT32_MAX / 4)
		process_fail("%s has no accesses, or too many", name);
	number_keys(trace);
	return trace;
}

struct trace *trace_make(const char *name, uint32_t *key, size_t length)
{
	struct trace *trace = process_allocate(sizeof(*trace));

	snprintf(trace->name, sizeof(trace->name), "%s", name);
	trace->key = key;
	trace->length = length;
	trace->from = length / 2;
	number_keys(trace);
	return trace;
}

void trace_destroy(struct trace *trace)
{
	free(trace->key);
	free(trace);
}
