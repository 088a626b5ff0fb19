/* SPDX-License-Identifier: MIT */
/* This keeps text that a call writes in parts. Only the main thread may use it. */
#ifndef SUPPORT_TEXT_H
#define SUPPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
	size_t size;
	unsigned writes;
	bool is_torn; /* a write did not end with a line */
	char bytes[32768];
};

/* This is a tw_write_fn. */
void text_write(void *text, const char *bytes, size_t size);
bool text_has_line(const struct text *text, const char *line);

#endif
