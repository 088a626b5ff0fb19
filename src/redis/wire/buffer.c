/* SPDX-License-Identifier: MIT */
/*
 * buffer.c is the writer of requests. A request is "*COUNT CR LF", then "$SIZE CR LF BYTES CR LF"
 * for each argument. The next request uses the memory again, so an add costs no allocation; with
 * hiredis's own formatting it costs three.
 */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(*buffer));
}

void buffer_clear(struct buffer *buffer)
{
	buffer->size = 0;
	buffer->failed = false;
}

/* Makes room for `size` bytes and a NUL. Returns false without memory. */
static bool buffer_grow(struct buffer *buffer, size_t size)
{
	size_t capacity = buffer->capacity ? buffer->capacity : 256;
	char *data;

	while (capacity <= size)
		capacity *= 2;
	data = realloc(buffer->data, capacity);
	if (!data) {
		buffer->failed = true;
		return false;
	}
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
	size_t end = buffer->size + size;

	if (end >= buffer->capacity && !buffer_grow(buffer, end))
		return;
	if (size)
		memcpy(buffer->data + buffer->size, data, size);
	buffer->size = end;
	buffer->data[end] = '\0';
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

/* Writes the number's digits before `end`. Returns where they begin. snprintf() takes four times as
 * many instructions, of some numbers a task. */
static char *digits_write(char *end, uint64_t number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

/* Writes the number before `end`. Returns where it begins. */
static char *number_write(char *end, int64_t number)
{
	char *start = digits_write(end, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);

	if (number < 0)
		*--start = '-';
	return start;
}

void buffer_append_number(struct buffer *buffer, int64_t number)
{
	char text[24];
	char *start = number_write(text + sizeof(text), number);

	buffer_append(buffer, start, (size_t)(text + sizeof(text) - start));
}

/* Writes "MARK NUMBER CR LF" before `end`. Returns where it begins. */
static char *mark_write(char *end, char mark, size_t number)
{
	*--end = '\n';
	*--end = '\r';
	end = digits_write(end, number);
	*--end = mark;
	return end;
}

static void buffer_mark(struct buffer *buffer, char mark, size_t number)
{
	char text[24];
	char *start = mark_write(text + sizeof(text), mark, number);

	buffer_append(buffer, start, (size_t)(text + sizeof(text) - start));
}

void buffer_array(struct buffer *buffer, size_t count)
{
	buffer_mark(buffer, '*', count);
}

void buffer_bulk(struct buffer *buffer, const void *data, size_t size)
{
	char text[24];
	char *start = mark_write(text + sizeof(text), '$', size);
	size_t head = (size_t)(text + sizeof(text) - start);
	size_t end = buffer->size + head + size + 2;
	char *to;

	/* This is one piece: a script call has some twenty. */
	if (end >= buffer->capacity && !buffer_grow(buffer, end))
		return;
	to = buffer->data + buffer->size;
	memcpy(to, start, head);
	if (size)
		memcpy(to + head, data, size);
	memcpy(to + head + size, "\r\n", 3);
	buffer->size = end;
}

void buffer_bulk_text(struct buffer *buffer, const char *text)
{
	buffer_bulk(buffer, text, strlen(text));
}

void buffer_bulk_of_two(struct buffer *buffer, const char *first, const char *second)
{
	buffer_mark(buffer, '$', strlen(first) + strlen(second));
	buffer_append_text(buffer, first);
	buffer_append_text(buffer, second);
	buffer_append(buffer, "\r\n", 2);
}

void buffer_bulk_number(struct buffer *buffer, int64_t number)
{
	char text[24];
	char *start = number_write(text + sizeof(text), number);

	buffer_bulk(buffer, start, (size_t)(text + sizeof(text) - start));
}
