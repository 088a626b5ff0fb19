/* SPDX-License-Identifier: MIT */
/*
 * There is one thread. The descriptor is always readable, so nothing waits: available bytes arrive
 * at once, and without any the connection is broken.
 */
#include "false_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <hiredis/hiredis.h>

#include "redis/wire/buffer.h"
#include "redis/wire/stream.h"

static const uint8_t *input;
static size_t input_left;
static bool input_greets;

/* It belongs to the one open connection, or the last one of several. */
static redisReader *requests;
static struct buffer replies;
static size_t replies_read;

void false_stream_fill(const uint8_t *data, size_t size, bool greets)
{
	input = data;
	input_left = size;
	input_greets = greets;
}

static int ready_descriptor(void)
{
	static int descriptor = -1;

	if (descriptor < 0)
		descriptor = eventfd(1, EFD_CLOEXEC);
	return descriptor;
}

struct stream *stream_open(const struct settings *settings, const struct address *address,
			   tw_duration deadline, struct tw_redis_error *error)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	stream->descriptor = ready_descriptor();
	if (requests)
		redisReaderFree(requests);
	requests = redisReaderCreate();
	buffer_clear(&replies);
	replies_read = 0;
	return stream;
}

void stream_close(struct stream *stream)
{
	free(stream);
}

static void answer_with_input(void)
{
	const uint8_t *end = input_left ? memchr(input, FALSE_STREAM_END, input_left) : NULL;
	size_t size = end ? (size_t)(end - input) : input_left;

	buffer_append(&replies, input, size);
	size += end != NULL;
	input += size;
	input_left -= size;
}

static void answer(const char *word)
{
	static const char info[] = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n"
				   "cluster_enabled:0\r\nrole:master\r\n";
	char text[sizeof(info) + 20];

	if (!input_greets || !strncmp(word, "EVAL", 4) || !strcmp(word, "ASKING")) {
		answer_with_input();
	} else if (!strcmp(word, "INFO")) {
		snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", sizeof(info) - 1, info);
		buffer_append_text(&replies, text);
	} else if (!strcmp(word, "GET")) {
		buffer_append_text(&replies, "$3\r\n4 4\r\n");
	} else {
		buffer_append_text(&replies, "+OK\r\n");
	}
}

bool stream_write(struct stream *stream, const char *data, size_t size, tw_duration deadline,
		  bool *some)
{
	void *request = NULL;

	*some = true;
	/* A request has the form of a reply. */
	redisReaderFeed(requests, data, size);
	while (redisReaderGetReply(requests, &request) == REDIS_OK && request) {
		answer(((const redisReply *)request)->element[0]->str);
		freeReplyObject(request);
		request = NULL;
	}
	return true;
}

ssize_t stream_read(struct stream *stream, char *data, size_t room, tw_duration deadline)
{
	size_t left = replies.size - replies_read;
	size_t size = left < room ? left : room;

	/* This peeks at one byte to see whether the connection is still there: it is. */
	if (!size && room == 1)
		return 0;
	if (!size) {
		snprintf(stream->reason, sizeof(stream->reason), "the input has ended");
		return -1;
	}
	memcpy(data, replies.data + replies_read, size);
	replies_read += size;
	stream->answered = true;
	return (ssize_t)size;
}
