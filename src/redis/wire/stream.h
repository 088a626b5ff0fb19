/* SPDX-License-Identifier: MIT */
/*
 * A stream is bytes to a server and from it: a socket, with TLS if the settings ask for it. All
 * waiting has a deadline on the monotonic clock. A failure breaks the stream. One thread may use it
 * at a time.
 */
#ifndef REDIS_WIRE_STREAM_H
#define REDIS_WIRE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "settings.h"

struct ssl_st;

enum { REASON_SIZE = 128 };

struct stream {
	const struct settings *settings;
	int descriptor;
	struct ssl_st *tls; /* NULL without TLS */
	bool answered;      /* something was read */
	/* This says why the stream is broken. */
	char reason[REASON_SIZE];
};

/*
 * Connects. Only the look-up of a name may take longer than the deadline. The settings must outlive
 * the stream. Returns NULL with one of these errors:
 *   TW_REDIS_UNREACHABLE  no address answers
 *   TW_REDIS_UNFIT        the server's certificate is not trusted
 *   TW_NO_MEMORY          out of memory
 */
struct stream *stream_open(const struct settings *settings, const struct address *address,
			   tw_duration deadline, struct tw_redis_error *error);
/* Closes the stream, which may be NULL. */
void stream_close(struct stream *stream);

/* Writes all bytes. Returns false if the stream is broken. *some says whether bytes were
 * written. */
bool stream_write(struct stream *stream, const char *data, size_t size, tw_duration deadline,
		  bool *some);
/* Reads up to `room` bytes. Waits until the deadline for the first one; with the deadline 0 it does
 * not wait. Returns 0 if nothing came, and -1 if the stream is broken. */
ssize_t stream_read(struct stream *stream, char *data, size_t room, tw_duration deadline);

#endif
