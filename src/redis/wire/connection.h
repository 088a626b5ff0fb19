/* SPDX-License-Identifier: MIT */
/*
 * A connection leads to one Redis server: it connects, logs in, checks that the server is fit for
 * us, writes requests and reads replies. Any failure to read or write closes it for good. One
 * thread may use it at a time. A zeroed struct is not connected.
 */
#ifndef REDIS_WIRE_CONNECTION_H
#define REDIS_WIRE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include <timingwheel/redis.h>

#include "buffer.h"
#include "settings.h"
#include "stream.h"

static inline bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

struct connection {
	struct stream *stream; /* NULL if it is not connected */
	redisReader *reader;
	struct buffer output; /* the bytes to write */
	size_t unread;        /* the bytes that have come of an incomplete reply */
	tw_duration reply_timeout;
	int tcp_port;     /* the server's, as it says itself; 0 if it has none */
	uint64_t scripts; /* the bits of the scripts whose texts were sent */
	bool secret;      /* the output has a password */
	bool cluster;     /* the server is a node of a cluster */
	bool replica;
	bool flags; /* it knows flags of scripts, from Redis 7 on */
	/* Behind changes it waits for these: TW_REDIS_DURABLE_DISK, _REPLICA, both or none. */
	enum tw_redis_durability waits;
	bool early_waitaof; /* it replies to WAITAOF before the fsync */
	bool wrote;         /* the last connection_write() has written some bytes */
};

/*
 * Connects, logs in, selects the database, and checks the server; at a Sentinel it only logs in.
 * Returns a status as tw_redis_open does, and writes the error. Unless the status is TW_OK, the
 * connection is closed.
 */
enum tw_status connection_open(struct connection *connection, const struct settings *settings,
			       const struct address *address, bool sentinel,
			       struct tw_redis_error *error);
void connection_close(struct connection *connection);
/* Closes a broken connection; `wrote` stays. */
void connection_break(struct connection *connection, const char *reason,
		      struct tw_redis_error *error);

bool connection_is_open(const struct connection *connection);

/* Returns whether it is not connected, or the server closed it while it owed nothing. Makes a
 * system call. */
bool connection_is_lost(struct connection *connection);

/* Writes the output, unless memory was missing for it. Another failure closes the connection;
 * connection->wrote says whether bytes were written. */
bool connection_write(struct connection *connection, struct tw_redis_error *error);
/* Waits for the next reply, which the caller frees with freeReplyObject(). Returns NULL if the
 * connection is closed. */
redisReply *connection_read(struct connection *connection, struct tw_redis_error *error);
/* Sends a request of `count` words. Returns its reply as connection_read() does. */
redisReply *connection_ask(struct connection *connection, int count, const char **words,
			   struct tw_redis_error *error);

/*
 * Says what a server's error means.
 *
 * Returns:
 *   TW_REDIS_UNREACHABLE  it passes, and nothing was changed
 *   TW_REDIS_REFUSED      the login or a permission
 *   TW_REDIS_UNFIT        the server does not have the command, or no Lua for a script
 *   TW_REDIS_FAILED       any other error
 */
enum tw_status server_error_status(const char *text);
/* Returns whether the error means that the server only allows reading. */
bool server_error_is_read_only(const char *text);

#endif
