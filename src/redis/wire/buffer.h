/* SPDX-License-Identifier: MIT */
/*
 * Bytes that grow at the end, and requests in Redis's protocol written into them. What fails for
 * want of memory fails for good: `failed` stays true until the buffer is cleared, so it is enough
 * to look once, at the end. A zeroed struct is an empty buffer. One thread at a time.
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
/* Empties it and keeps the memory. */
void buffer_clear(struct buffer *buffer);

void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_append_text(struct buffer *buffer, const char *text);

/* The head of a request of `count` arguments; the arguments. */
void buffer_array(struct buffer *buffer, size_t count);
void buffer_bulk(struct buffer *buffer, const void *data, size_t size);
/* One argument of two parts. */
void buffer_bulk_of_two(struct buffer *buffer, const char *first, const char *second);
void buffer_bulk_text(struct buffer *buffer, const char *text);
void buffer_bulk_number(struct buffer *buffer, int64_t number);

#endif
