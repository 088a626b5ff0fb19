/* SPDX-License-Identifier: MIT */
/*
 * A buffer is bytes that grow at the end. Requests in Redis's protocol are written into it. Once
 * memory was missing, `failed` stays true until the buffer is cleared, so one look at the end is
 * enough. A zeroed struct is an empty buffer. One thread may use it at a time.
 */
#ifndef REDIS_WIRE_BUFFER_H
#define REDIS_WIRE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	char *data;
	size_t size;
	size_t capacity;
	bool failed;
};

void buffer_free(struct buffer *buffer);
/* Empties the buffer and keeps its memory. */
void buffer_clear(struct buffer *buffer);

void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_append_text(struct buffer *buffer, const char *text);
/* Appends the decimal digits of a number. */
void buffer_append_number(struct buffer *buffer, int64_t number);

/* These append the head of a request of `count` arguments, and each argument. */
void buffer_array(struct buffer *buffer, size_t count);
void buffer_bulk(struct buffer *buffer, const void *data, size_t size);
/* Appends one argument that has two parts. */
void buffer_bulk_of_two(struct buffer *buffer, const char *first, const char *second);
void buffer_bulk_text(struct buffer *buffer, const char *text);
void buffer_bulk_number(struct buffer *buffer, int64_t number);

#endif
