/* SPDX-License-Identifier: MIT */
/*
 * Bytes to a server and from it: a socket, with TLS where the settings ask for it. All waiting has
 * a deadline, on the monotonic clock. What fails has broken the stream. One thread at a time.
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
	int descriptor;
	struct ssl_st *tls; /* NULL: none */
	bool answered;      /* something was read */
	/* Why it is broken. */
	char reason[REASON_SIZE];
};

/*
 * Connects; NULL with the error: TW_REDIS_UNREACHABLE; TW_REDIS_UNFIT: the server's certificate
 * can't be trusted; TW_NO_MEMORY. The look-up of a name is the one thing that may go on beyond the
 * deadline.
 */
struct stream *stream_open(const struct settings *settings, const struct address *address,
			   tw_duration deadline, struct tw_redis_error *error);
/* NULL is fine. */
void stream_close(struct stream *stream);

/* Writes all. False: it is broken; *some tells whether anything went out. */
bool stream_write(struct stream *stream, const char *data, size_t size, tw_duration deadline,
		  bool *some);
/* Reads what there is, up to `room` bytes; waits until the deadline if there is nothing (0: does
 * not wait). 0: nothing came; -1: it is broken. */
ssize_t stream_read(struct stream *stream, char *data, size_t room, tw_duration deadline);

#endif
