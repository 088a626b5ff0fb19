/* SPDX-License-Identifier: MIT */
#include "text.h"

#include "test.h"

void text_write(void *context, const char *bytes, size_t size)
{
	struct text *text = context;

	assert_true(size > 0 && text->size + size < sizeof(text->bytes));
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	text->writes++;
	text->is_torn |= bytes[size - 1] != '\n';
}

bool text_has_line(const struct text *text, const char *line)
{
	size_t size = strlen(line);

	for (const char *at = text->bytes; at && *at; at = strchr(at, '\n') + 1)
		if (strncmp(at, line, size) == 0 && at[size] == '\n')
			return true;
	return false;
}
