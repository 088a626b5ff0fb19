/* SPDX-License-Identifier: MIT */
/* Text that a call writes bit by bit, kept to be looked at. Main thread. */
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

/* A tw_write_fn. */
void text_write(void *text, const char *bytes, size_t size);
bool text_has_line(const struct text *text, const char *line);

#endif
