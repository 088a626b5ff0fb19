/* SPDX-License-Identifier: MIT */
/* An input may be several texts, one a line. */
#ifndef FUZZ_LINES_H
#define FUZZ_LINES_H

#include <stddef.h>
#include <stdint.h>

enum { LINES_MOST = 32 };

struct lines {
	char *memory;
	char *line[LINES_MOST]; /* "" from count on */
	size_t count;
};

/* Reads lines without their ends; a NUL cuts one off. Lines beyond the last place are left out. */
void lines_read(struct lines *lines, const uint8_t *data, size_t size);
void lines_free(struct lines *lines);

#endif
