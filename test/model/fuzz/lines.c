/* SPDX-License-Identifier: MIT */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

void lines_read(struct lines *lines, const uint8_t *data, size_t size)
{
	char *at = malloc(size + 1);
	char *end = at + size;

	if (!at)
		abort();
	if (size)
		memcpy(at, data, size);
	*end = '\0';
	lines->memory = at;
	for (lines->count = 0; at <= end && lines->count < LINES_MOST; lines->count++) {
		char *next = memchr(at, '\n', (size_t)(end - at));

		lines->line[lines->count] = at;
		at = next ? next + 1 : end + 1;
		if (next)
			*next = '\0';
	}
	for (size_t i = lines->count; i < LINES_MOST; i++)
		lines->line[i] = end;
}

void lines_free(struct lines *lines)
{
	free(lines->memory);
}
