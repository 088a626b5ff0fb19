/* SPDX-License-Identifier: MIT */
/*
 * connection.c is one connection to a server. hiredis' reader puts replies together; this file
 * bounds their bytes and elements. Each reply has a deadline for the whole of it.
 *
 * Each new connection checks the server, which may be another one by now. Its eviction policy must
 * not drop keys without a time to live, because ours have none. What durability asks for must be
 * there. With appendfsync always a reply says that the change is on disk. Otherwise the server must
 * be able to wait for its disk (WAITAOF), and not reply before that.
 */
#include "connection.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
	VERSION_NEEDED = 5, /* it replicates scripts by their effects */
	VERSION_WITH_FLAGS = 7
};
enum { READ_SIZE = 16384, ELEMENTS_MAX = 1 << 20 };
/* A page of tasks has up to 100 bodies and headers. */
static const size_t reply_size_max = (size_t)64 << 20;

/* hiredis 1.0 has another type for the number of elements. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static redisReplyObjectFunctions functions;
static void *(*array_create_freely)(const redisReadTask *task, element_count count);
static pthread_once_t functions_once = PTHREAD_ONCE_INIT;
/* This reader has hiredis' own functions. */
static _Thread_local const redisReader *first_reader;

/* Refuses an array that is too large as if memory were missing. */
static void *array_create(const redisReadTask *task, element_count count)
{
	return count <= ELEMENTS_MAX ? array_create_freely(task, count) : NULL;
}

static void functions_fill(void)
{
	functions = *first_reader->fn;
	array_create_freely = functions.createArray;
	functions.createArray = array_create;
}

bool connection_is_open(const struct connection *connection)
{
	return connection->stream;
}

void connection_close(struct connection *connection)
{
	if (connection->reader)
		redisReaderFree(connection->reader);
	stream_close(connection->stream);
	buffer_free(&connection->output);
	memset(connection, 0, sizeof(*connection));
}

void connection_break(struct connection *connection, const char *reason,
		      struct tw_redis_error *error)
{
	bool wrote = connection->wrote;

	error_set(error, TW_REDIS_UNREACHABLE, "the connection broke: %s", reason);
	connection_close(connection);
	connection->wrote = wrote;
}

bool connection_is_lost(struct connection *connection)
{
	char byte;

	/* No reply is expected, so readable data is the end, or a message of TLS itself. */
	if (connection->stream && stream_read(connection->stream, &byte, 1, 0) == 0)
		return false;
	connection_close(connection);
	return true;
}

bool connection_write(struct connection *connection, struct tw_redis_error *error)
{
	tw_duration deadline =
		time_add(clock_read_real(CLOCK_MONOTONIC), connection->reply_timeout);
	bool fine;

	if (connection->output.failed) {
		buffer_clear(&connection->output);
		error_set(error, TW_NO_MEMORY, "out of memory");
		return false;
	}
	fine = stream_write(connection->stream, connection->output.data, connection->output.size,
			    deadline, &connection->wrote);
	/* The memory may hold a password. */
	if (connection->secret)
		explicit_bzero(connection->output.data, connection->output.size);
	connection->secret = false;
	buffer_clear(&connection->output);
	if (!fine)
		connection_break(connection, connection->stream->reason, error);
	return fine;
}

/* Takes the next reply from the bytes read. Returns false if the connection is broken. */
static bool reply_take(struct connection *connection, redisReply **reply,
		       struct tw_redis_error *error)
{
	void *taken = NULL;

	if (redisReaderGetReply(connection->reader, &taken) != REDIS_OK) {
		connection_break(connection, connection->reader->errstr, error);
		return false;
	}
	/* A message of RESP3 is no reply: nothing asks for that protocol. hiredis before 1.0 breaks
	 * at it, later ones read types that have higher numbers than those of RESP2. */
	if (taken && ((redisReply *)taken)->type > REDIS_REPLY_ERROR) {
		freeReplyObject(taken);
		connection_break(connection, "Protocol error, a message of RESP3", error);
		return false;
	}
	*reply = taken;
	if (taken)
		connection->unread = 0;
	else if (connection->unread > reply_size_max)
		connection_break(connection, "the reply is too large", error);
	return connection->stream;
}

/* Reads more bytes. Returns 0 if none came by the deadline, and -1 if the connection is broken. */
static ssize_t some_read(struct connection *connection, tw_duration deadline,
			 struct tw_redis_error *error)
{
	char data[READ_SIZE];
	ssize_t got = stream_read(connection->stream, data, sizeof(data), deadline);

	if (got < 0) {
		connection_break(connection, connection->stream->reason, error);
	} else if (got) {
		connection->unread += (size_t)got;
		if (redisReaderFeed(connection->reader, data, (size_t)got) != REDIS_OK) {
			connection_break(connection, connection->reader->errstr, error);
			return -1;
		}
	}
	return got;
}

redisReply *connection_read(struct connection *connection, struct tw_redis_error *error)
{
	tw_duration deadline =
		time_add(clock_read_real(CLOCK_MONOTONIC), connection->reply_timeout);
	redisReply *reply = NULL;

	while (reply_take(connection, &reply, error) && !reply) {
		ssize_t got = clock_read_real(CLOCK_MONOTONIC) < deadline
				      ? some_read(connection, deadline, error)
				      : 0;

		if (!got)
			connection_break(connection, "the reply timed out", error);
		if (got <= 0)
			return NULL;
	}
	return reply;
}

redisReply *connection_ask(struct connection *connection, int count, const char **words,
			   struct tw_redis_error *error)
{
	buffer_array(&connection->output, (size_t)count);
	for (int i = 0; i < count; i++)
		buffer_bulk_text(&connection->output, words[i]);
	return connection_write(connection, error) ? connection_read(connection, error) : NULL;
}

/* Returns the error that a command met inside a script, which Redis 5 and 6 report as the script's
 * own. */
static const char *command_error(const char *text)
{
	const char *inner =
		starts_with(text, "ERR Error running script") ? strstr(text, ": -") : NULL;

	return inner ? inner + strlen(": -") : text;
}

bool server_error_is_read_only(const char *text)
{
	return starts_with(command_error(text), "READONLY");
}

enum tw_status server_error_status(const char *text)
{
	static const struct {
		const char *start;
		enum tw_status status;
	} known[] = {{"TRYAGAIN", TW_REDIS_UNREACHABLE},
		     {"LOADING", TW_REDIS_UNREACHABLE},
		     {"CLUSTERDOWN", TW_REDIS_UNREACHABLE},
		     {"MASTERDOWN", TW_REDIS_UNREACHABLE},
		     {"READONLY", TW_REDIS_UNREACHABLE},
		     {"MISCONF", TW_REDIS_UNREACHABLE},
		     {"NOREPLICAS", TW_REDIS_UNREACHABLE},
		     {"BUSY", TW_REDIS_UNREACHABLE},
		     {"ERR max number of clients", TW_REDIS_UNREACHABLE},
		     {"NOAUTH", TW_REDIS_REFUSED},
		     {"NOPERM", TW_REDIS_REFUSED},
		     {"ERR The user executing the script can't", TW_REDIS_REFUSED},
		     {"WRONGPASS", TW_REDIS_REFUSED},
		     {"ERR unknown command", TW_REDIS_UNFIT},
		     {"ERR Could not find scripting engine", TW_REDIS_UNFIT}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (starts_with(command_error(text), known[i].start))
			return known[i].status;
	return TW_REDIS_FAILED;
}

/* Returns the value of a field of INFO, or NULL if it has none. `name` ends with the colon. */
static const char *info_find(const char *info, const char *name)
{
	const char *at = info;

	while ((at = strstr(at, name)) && at != info && at[-1] != '\n')
		at++;
	return at ? at + strlen(name) : NULL;
}

/* Returns whether the server replies to WAITAOF before the fsync (redis#13793). */
static bool waitaof_is_early(const char *info)
{
	const char *valkey = info_find(info, "valkey_version:");
	const char *redis = info_find(info, "redis_version:");

	if (valkey)
		return starts_with(valkey, "8.0.");
	return redis && starts_with(redis, "7.4.") && redis[4] <= '2' && redis[5] < '0';
}

/* A replica of a cluster is asked for the map alone. Its connection is closed when it becomes a
 * master (node_map.c), and the next one is checked. */
static bool takes_changes(const struct connection *connection)
{
	return !connection->cluster || !connection->replica;
}

/* Checks that the server can give what durability asks for. A server without replicas may lack them
 * for a moment, as after a failover. */
static enum tw_status durability_check(struct connection *connection, const redisReply *reply,
				       enum tw_redis_durability durability,
				       struct tw_redis_error *error)
{
	const char *info = reply->type == REDIS_REPLY_STRING ? reply->str : "";
	const char *append_only = info_find(info, "aof_enabled:");
	const char *replicas = info_find(info, "connected_slaves:");

	connection->waits = durability & TW_REDIS_DURABLE_REPLICA;
	connection->early_waitaof = waitaof_is_early(info);
	if (!takes_changes(connection))
		return TW_OK;
	/* A server that is loading its file says no, too. */
	if (durability & TW_REDIS_DURABLE_DISK && (!append_only || *append_only != '1'))
		return info_find(info, "loading:1")
			       ? error_set(error, TW_REDIS_UNREACHABLE,
					   "the server is loading its data")
			       : error_set(error, TW_REDIS_UNFIT,
					   "durability requires appendonly yes, and it is no");
	if (durability & TW_REDIS_DURABLE_REPLICA && !replicas)
		return error_set(error, TW_REDIS_UNFIT,
				 "durability requires INFO to report replicas: %.100s",
				 reply->type == REDIS_REPLY_ERROR ? reply->str : "");
	/* One that still copies all data confirms no changes. Some servers report no states. */
	if (durability & TW_REDIS_DURABLE_REPLICA && !connection->replica &&
	    (atoi(replicas) <= 0 || (strstr(info, ",state=") && !strstr(info, ",state=online"))))
		return error_set(error, TW_REDIS_UNREACHABLE,
				 "durability requires a replica, and none has all data yet");
	return TW_OK;
}

static enum tw_status info_check(struct connection *connection, const redisReply *reply,
				 const struct settings *settings, struct tw_redis_error *error)
{
	const char *info = reply->type == REDIS_REPLY_STRING ? reply->str : "";
	const char *policy = info_find(info, "maxmemory_policy:");
	const char *version = info_find(info, "redis_version:");
	const char *cluster = info_find(info, "cluster_enabled:");
	const char *redis_mode = info_find(info, "redis_mode:");
	const char *mode = redis_mode ? redis_mode : info_find(info, "server_mode:"); /* Valkey */
	const char *role = info_find(info, "role:");
	const char *port = info_find(info, "tcp_port:");

	connection->scripts = 0;
	connection->flags = version && atoi(version) >= VERSION_WITH_FLAGS;
	connection->cluster = cluster && *cluster == '1';
	connection->tcp_port = port ? atoi(port) : 0;
	connection->replica = role && starts_with(role, "slave");
	if (mode && starts_with(mode, "sentinel"))
		return error_set(error, TW_REDIS_UNFIT,
				 "this is a Sentinel: use redis+sentinel://host:port/master");
	if (version && atoi(version) < VERSION_NEEDED)
		return error_set(error, TW_REDIS_UNFIT, "Redis %d or later is required",
				 VERSION_NEEDED);
	if (!policy && !settings->allow_eviction)
		return error_set(error, TW_REDIS_UNFIT,
				 "the server does not report its eviction policy (INFO): %.100s",
				 reply->type == REDIS_REPLY_ERROR ? reply->str : "");
	if (!settings->allow_eviction && starts_with(policy, "allkeys"))
		return error_set(error, TW_REDIS_UNFIT,
				 "maxmemory-policy %.*s may evict tasks: set noeviction",
				 (int)strcspn(policy, "\r\n"), policy);
	return durability_check(connection, reply, settings->durability, error);
}

/* Takes the reply to a WAIT or WAITAOF for nothing. A replica replies with an error, too. */
static enum tw_status wait_check(struct connection *connection, enum tw_redis_durability wait,
				 const redisReply *reply, struct tw_redis_error *error)
{
	const char *text = reply->type == REDIS_REPLY_ERROR ? reply->str : "";

	if (server_error_status(text) == TW_REDIS_REFUSED)
		return error_set(error, TW_REDIS_REFUSED, "durability requires it: %s", text);
	if (!starts_with(text, "ERR unknown command"))
		connection->waits |= wait;
	return TW_OK;
}

/* Returns the value of a setting in the reply to CONFIG GET, or NULL. */
static const char *config_find(const redisReply *reply, const char *name)
{
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2)
		if (reply->element[i]->str && !strcmp(reply->element[i]->str, name))
			return reply->element[i + 1]->str;
	return NULL;
}

/* Checks how the server writes its append-only file. */
static enum tw_status fsync_check(struct connection *connection, const redisReply *reply,
				  struct tw_redis_error *error)
{
	const char *fsync = config_find(reply, "appendfsync");
	const char *pauses = config_find(reply, "no-appendfsync-on-rewrite");

	if (!takes_changes(connection))
		return TW_OK;
	if (fsync && !strcmp(fsync, "no"))
		return error_set(
			error, TW_REDIS_UNFIT,
			"durability requires appendfsync everysec or always, and it is no");
	if (fsync && !strcmp(fsync, "always") && pauses && !strcmp(pauses, "no")) {
		connection->waits &= ~(unsigned)TW_REDIS_DURABLE_DISK;
		return TW_OK;
	}
	if (connection->waits & TW_REDIS_DURABLE_DISK && connection->early_waitaof)
		return error_set(error, TW_REDIS_UNFIT,
				 "this server's WAITAOF replies before the fsync, so durability "
				 "requires appendfsync always and no-appendfsync-on-rewrite no");
	if (connection->waits & TW_REDIS_DURABLE_DISK)
		return TW_OK;
	return error_set(error, TW_REDIS_UNFIT,
			 "without WAITAOF (Redis 7.2), durability requires appendfsync always and "
			 "no-appendfsync-on-rewrite no: %.100s",
			 reply->type == REDIS_REPLY_ERROR ? reply->str
			 : fsync                          ? fsync
							  : "");
}

/* Returns the status of an error in the greeting. An error that will not pass is a refusal. */
static enum tw_status refusal(const redisReply *reply, struct tw_redis_error *error)
{
	enum tw_status status = server_error_status(reply->str);

	if (starts_with(reply->str, "ERR DB index"))
		return error_set(error, TW_INVALID, "the server has no such database: %s",
				 reply->str);
	return error_set(error, status == TW_REDIS_FAILED ? TW_REDIS_REFUSED : status, "%s",
			 reply->str);
}

/* A greeting has these requests, in this order. */
enum greeting {
	GREET_LOGIN,
	GREET_DATABASE,
	GREET_NAME,
	GREET_INFO,
	GREET_WAITAOF,
	GREET_FSYNC,
	GREET_WAIT,
	GREETINGS
};

/* Writes the requests that the settings need. A Sentinel gets the login alone. */
static void greeting_write(struct connection *connection, const struct settings *settings,
			   bool sentinel, bool wanted[GREETINGS])
{
	/* A pattern of CONFIG GET stands for two names, because Redis before 7 takes one. */
	static const char *const questions[GREETINGS] = {
		[GREET_INFO] = "*1\r\n$4\r\nINFO\r\n",
		[GREET_WAITAOF] = "*4\r\n$7\r\nWAITAOF\r\n$1\r\n0\r\n$1\r\n0\r\n$1\r\n1\r\n",
		[GREET_FSYNC] = "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$13\r\n*appendfsync*\r\n",
		[GREET_WAIT] = "*3\r\n$4\r\nWAIT\r\n$1\r\n0\r\n$1\r\n1\r\n",
	};
	const char *user = sentinel ? settings->sentinel_user : settings->user;
	const char *password = sentinel ? settings->sentinel_password : settings->password;
	struct buffer *output = &connection->output;

	wanted[GREET_LOGIN] = connection->secret = password;
	if (password) {
		buffer_array(output, user ? 3 : 2);
		buffer_bulk_text(output, "AUTH");
		if (user)
			buffer_bulk_text(output, user);
		buffer_bulk_text(output, password);
	}
	if (sentinel)
		return;
	wanted[GREET_DATABASE] = settings->database;
	wanted[GREET_NAME] = wanted[GREET_INFO] = true;
	wanted[GREET_WAITAOF] = wanted[GREET_FSYNC] = settings->durability & TW_REDIS_DURABLE_DISK;
	wanted[GREET_WAIT] = settings->durability & TW_REDIS_DURABLE_REPLICA;
	if (wanted[GREET_DATABASE]) {
		buffer_array(output, 2);
		buffer_bulk_text(output, "SELECT");
		buffer_bulk_number(output, settings->database);
	}
	buffer_array(output, 3);
	buffer_bulk_text(output, "CLIENT");
	buffer_bulk_text(output, "SETNAME");
	buffer_bulk_text(output, settings->client_name ? settings->client_name : "timingwheel");
	for (enum greeting i = GREET_INFO; i < GREETINGS; i++)
		if (wanted[i])
			buffer_append_text(output, questions[i]);
}

static enum tw_status greeting_take(struct connection *connection, enum greeting greeting,
				    const redisReply *reply, const struct settings *settings,
				    struct tw_redis_error *error)
{
	bool refused = reply->type == REDIS_REPLY_ERROR;

	/* An error that passes says nothing about the request. */
	if (refused && server_error_status(reply->str) == TW_REDIS_UNREACHABLE)
		return refusal(reply, error);
	switch (greeting) {
	case GREET_LOGIN:
	case GREET_DATABASE:
		return refused ? refusal(reply, error) : TW_OK;
	case GREET_INFO:
		if (refused && starts_with(reply->str, "NOAUTH"))
			return refusal(reply, error);
		return info_check(connection, reply, settings, error);
	case GREET_WAITAOF:
		return wait_check(connection, TW_REDIS_DURABLE_DISK, reply, error);
	case GREET_WAIT:
		return wait_check(connection, TW_REDIS_DURABLE_REPLICA, reply, error);
	case GREET_FSYNC:
		return fsync_check(connection, reply, error);
	default:
		/* The user may lack this permission, and the name is not needed. */
		return TW_OK;
	}
}

static enum tw_status greeting_read(struct connection *connection, const struct settings *settings,
				    const bool wanted[GREETINGS], struct tw_redis_error *error)
{
	enum tw_status status = TW_OK;

	for (enum greeting i = 0; i < GREETINGS && status == TW_OK; i++) {
		redisReply *reply;

		if (!wanted[i])
			continue;
		reply = connection_read(connection, error);
		if (!reply)
			return TW_REDIS_UNREACHABLE;
		status = greeting_take(connection, i, reply, settings, error);
		freeReplyObject(reply);
	}
	return status;
}

/* Connects without a greeting. */
static enum tw_status connection_begin(struct connection *connection,
				       const struct settings *settings,
				       const struct address *address, struct tw_redis_error *error)
{
	tw_duration deadline =
		time_add(clock_read_real(CLOCK_MONOTONIC), settings->connect_timeout);

	memset(connection, 0, sizeof(*connection));
	connection->reply_timeout = settings->reply_timeout;
	connection->reader = redisReaderCreate();
	if (!connection->reader)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	first_reader = connection->reader;
	pthread_once(&functions_once, functions_fill);
	connection->reader->fn = &functions;
	connection->stream = stream_open(settings, address, deadline, error);
	return connection->stream ? TW_OK : error->status;
}

enum tw_status connection_open(struct connection *connection, const struct settings *settings,
			       const struct address *address, bool sentinel,
			       struct tw_redis_error *error)
{
	enum tw_status status = connection_begin(connection, settings, address, error);
	const struct buffer *output = &connection->output;
	bool wanted[GREETINGS] = {false};

	if (status == TW_OK)
		greeting_write(connection, settings, sentinel, wanted);
	if ((output->size || output->failed) && !connection_write(connection, error))
		status = error->status;
	if (status == TW_OK)
		status = greeting_read(connection, settings, wanted, error);
	if (status != TW_OK)
		connection_close(connection);
	return status;
}
