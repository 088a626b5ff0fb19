/* SPDX-License-Identifier: MIT */
/*
 * Three habits of hiredis are handled here. It writes with write(), which raises SIGPIPE when the
 * server is gone: the signal is blocked in the calling thread meanwhile, and taken away if it was
 * ours. Its redisReconnect forgets the read timeout: we never use it, a new context is made and its
 * timeouts are set. And it has TLS only as a separate library (connection_tls.c).
 *
 * A server is looked at each time that we connect, since it may be another one by now: its eviction
 * policy must not drop keys that have no time to live, for ours have none.
 */
#include "connection.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffer.h"
#include "connection_tls.h"

enum { VERSION_NEEDED = 5 }; /* scripts are replicated by their effects */

/* time > 0 */
static struct timeval to_timeval(tw_duration time)
{
	/* Rounded up: 0 would be no limit. */
	int64_t microseconds = (time - 1) / TW_MICROSECOND + 1;

	return (struct timeval){microseconds / 1000000, microseconds % 1000000};
}

void connection_close(struct connection *connection)
{
	if (connection->context)
		redisFree(connection->context);
	memset(connection, 0, sizeof(*connection));
}

static void connection_broken(struct connection *connection, struct tw_redis_error *error)
{
	bool wrote = connection->wrote;
	const char *text = connection->context->errstr;

	if (connection->context->err == REDIS_ERR_IO && errno == EAGAIN)
		text = "no reply in time";
	error_set(error, TW_REDIS_UNREACHABLE, "the connection broke: %s", text);
	connection_close(connection);
	connection->wrote = wrote;
}

bool connection_is_lost(struct connection *connection)
{
	redisContext *context = connection->context;

	/* Nothing is expected: what can be read is the end. */
	if (context && poll(&(struct pollfd){.fd = context->fd, .events = POLLIN}, 1, 0) == 0)
		return false;
	connection_close(connection);
	return true;
}

bool connection_append(struct connection *connection, const char *request, size_t size)
{
	return redisAppendFormattedCommand(connection->context, request, size) == REDIS_OK;
}

static bool write_all(struct connection *connection)
{
	connection->wrote = false;
	for (int done = 0; !done; connection->wrote = true)
		if (redisBufferWrite(connection->context, &done) != REDIS_OK)
			return false;
	return true;
}

bool connection_write(struct connection *connection, struct tw_redis_error *error)
{
	const struct timespec now = {0, 0};
	sigset_t pipe_signal;
	sigset_t pending;
	sigset_t before;
	bool fine;

	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	fine = write_all(connection);
	if (!fine)
		connection_broken(connection, error);
	/* One that was pending before is not ours to take. */
	if (!fine && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return fine;
}

redisReply *connection_read(struct connection *connection, struct tw_redis_error *error)
{
	void *reply = NULL;

	errno = 0;
	/* Nothing is left to be written, so there is no SIGPIPE. */
	if (redisGetReply(connection->context, &reply) != REDIS_OK) {
		connection_broken(connection, error);
		return NULL;
	}
	return reply;
}

redisReply *connection_ask(struct connection *connection, int count, const char **words,
			   struct tw_redis_error *error)
{
	if (redisAppendCommandArgv(connection->context, count, words, NULL) != REDIS_OK) {
		error_set(error, TW_NO_MEMORY, "out of memory");
		return NULL;
	}
	return connection_write(connection, error) ? connection_read(connection, error) : NULL;
}

redisReply *connection_poll(struct connection *connection, struct tw_redis_error *error)
{
	redisContext *context = connection->context;
	void *reply = NULL;
	bool fine = redisGetReplyFromReader(context, &reply) == REDIS_OK;

	if (fine && !reply && poll(&(struct pollfd){.fd = context->fd, .events = POLLIN}, 1, 0) > 0)
		fine = redisBufferRead(context) == REDIS_OK &&
		       redisGetReplyFromReader(context, &reply) == REDIS_OK;
	if (!fine)
		connection_broken(connection, error);
	return reply;
}

/* The value in what INFO tells; name ends with the colon. NULL: it is not told. */
static const char *info_find(const char *info, const char *name)
{
	const char *at = info;

	while ((at = strstr(at, name)) && at != info && at[-1] != '\n')
		at++;
	return at ? at + strlen(name) : NULL;
}

static enum tw_status info_check(struct connection *connection, const redisReply *reply,
				 const struct settings *settings, struct tw_redis_error *error)
{
	const char *info = reply->type == REDIS_REPLY_STRING ? reply->str : "";
	const char *policy = info_find(info, "maxmemory_policy:");
	const char *version = info_find(info, "redis_version:");
	const char *cluster = info_find(info, "cluster_enabled:");
	const char *loading = info_find(info, "loading:");

	connection->cluster = cluster && *cluster == '1';
	connection->loading = loading && *loading == '1';
	if (version && atoi(version) < VERSION_NEEDED)
		return error_set(error, TW_REDIS_UNFIT, "Redis %d or later is needed",
				 VERSION_NEEDED);
	if (settings->allow_eviction)
		return TW_OK;
	if (!policy)
		return error_set(error, TW_REDIS_UNFIT,
				 "the server does not tell its eviction policy (INFO): %.100s",
				 reply->type == REDIS_REPLY_ERROR ? reply->str : "");
	if (!strncmp(policy, "allkeys", 7))
		return error_set(error, TW_REDIS_UNFIT,
				 "maxmemory-policy %.*s may drop tasks: set noeviction",
				 (int)strcspn(policy, "\r\n"), policy);
	return TW_OK;
}

static enum tw_status refusal(const redisReply *reply, struct tw_redis_error *error)
{
	if (!strncmp(reply->str, "LOADING", 7) || !strncmp(reply->str, "ERR max number", 14))
		return error_set(error, TW_REDIS_UNREACHABLE, "%s", reply->str);
	return error_set(error, TW_REDIS_REFUSED, "%s", reply->str);
}

/* Writes AUTH and SELECT, where they are asked for, and INFO; answers how many come before it. */
static int greeting_write(const struct settings *settings, struct buffer *request)
{
	int before = 0;

	if (settings->password) {
		buffer_array(request, settings->user ? 3 : 2);
		buffer_bulk_text(request, "AUTH");
		if (settings->user)
			buffer_bulk_text(request, settings->user);
		buffer_bulk_text(request, settings->password);
		before++;
	}
	if (settings->database) {
		buffer_array(request, 2);
		buffer_bulk_text(request, "SELECT");
		buffer_bulk_number(request, settings->database);
		before++;
	}
	buffer_array(request, 1);
	buffer_bulk_text(request, "INFO");
	return before;
}

static enum tw_status greeting_read(struct connection *connection, const struct settings *settings,
				    int before, struct tw_redis_error *error)
{
	enum tw_status status = TW_OK;

	for (int i = 0; i <= before && status == TW_OK; i++) {
		redisReply *reply = connection_read(connection, error);

		if (!reply)
			return TW_REDIS_UNREACHABLE;
		if (reply->type == REDIS_REPLY_ERROR &&
		    (i < before || !strncmp(reply->str, "NOAUTH", 6) ||
		     !strncmp(reply->str, "ERR max", 7)))
			status = refusal(reply, error);
		else if (i == before)
			status = info_check(connection, reply, settings, error);
		freeReplyObject(reply);
	}
	return status;
}

static enum tw_status connection_greet(struct connection *connection,
				       const struct settings *settings,
				       struct tw_redis_error *error)
{
	struct buffer request = {0};
	int before = greeting_write(settings, &request);
	enum tw_status status = TW_OK;

	if (request.failed || !connection_append(connection, request.data, request.size))
		status = error_set(error, TW_NO_MEMORY, "out of memory");
	else if (!connection_write(connection, error))
		status = TW_REDIS_UNREACHABLE;
	if (request.data)
		explicit_bzero(request.data, request.size);
	buffer_free(&request);
	return status == TW_OK ? greeting_read(connection, settings, before, error) : status;
}

enum tw_status connection_open(struct connection *connection, const struct settings *settings,
			       const char *host, int port, struct tw_redis_error *error)
{
	redisContext *context;
	enum tw_status status = TW_OK;

	memset(connection, 0, sizeof(*connection));
	context = redisConnectWithTimeout(host, port, to_timeval(settings->connect_timeout));
	if (!context)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	connection->context = context;
	if (context->err ||
	    redisSetTimeout(context, to_timeval(settings->reply_timeout)) != REDIS_OK)
		status = error_set(error, TW_REDIS_UNREACHABLE, "%.150s:%d: %s", host, port,
				   context->errstr);
	if (status == TW_OK && settings->tls)
		status = connection_secure(context, host, error);
	if (status == TW_OK)
		status = connection_greet(connection, settings, error);
	if (status != TW_OK)
		connection_close(connection);
	return status;
}
