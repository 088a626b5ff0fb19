/* SPDX-License-Identifier: MIT */
/*
 * The configuration is in a file, so that no password is in the process list. The folders are where
 * the build puts its files; a test that was killed leaves its own there.
 */
#include "support/redis_server.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis/client/client.h"
#include "support/certificates.h"
#include "support/sockets.h"
#include "support/wait.h"

enum { START_TRIES = 5 };
enum { ANSWER_TRIES = 2000 }; /* Each try takes 10 ms. */
enum { LOG_END_SIZE = 4000 }; /* the last bytes of a log */

static const char *build_folder(void)
{
	const char *build = getenv("BUILD");

	return build ? build : "build";
}

static void folder_create(struct redis_server *server)
{
	snprintf(server->folder, sizeof(server->folder), "%s/test/redis/server-XXXXXX",
		 build_folder());
	if (!mkdtemp(server->folder))
		support_failed(server->folder);
}

static void config_write(const struct redis_server *server,
			 const struct redis_server_options *options)
{
	char path[sizeof(server->folder) + 16];
	FILE *file;

	snprintf(path, sizeof(path), "%s/redis.conf", server->folder);
	file = fopen(path, "w");
	if (!file)
		support_failed(path);
	fprintf(file, "bind 127.0.0.1\nport %d\ndir %s\nlogfile redis.log\n%s", server->port,
		server->folder, options->sentinel_of ? "" : "save \"\"\n");
	if (options->password)
		fprintf(file, "requirepass \"%s\"\n", options->password);
	if (options->sentinel_of) {
		fprintf(file,
			"sentinel monitor main 127.0.0.1 %d 2\n"
			"sentinel down-after-milliseconds main 500\n"
			"sentinel failover-timeout main 3000\n",
			options->sentinel_of);
		fclose(file);
		return;
	}
	/* The path is relative to its folder. */
	fputs("unixsocket redis.sock\nrepl-diskless-sync-delay 0\n"
	      "repl-ping-replica-period 1\n",
	      file);
	if (options->replica_of)
		fprintf(file, "replicaof 127.0.0.1 %d\n", options->replica_of);
	if (options->tls)
		fprintf(file,
			"tls-port %d\ntls-ca-cert-file ca.pem\ntls-cert-file server.pem\n"
			"tls-key-file key.pem\ntls-auth-clients no\n",
			server->tls_port);
	fprintf(file, "appendonly %s\nappendfsync %s\nmaxmemory-policy %s\n",
		options->append_only ? "yes" : "no",
		options->no_fsync       ? "no"
		: options->fsync_always ? "always"
					: "everysec",
		options->policy ? options->policy : "noeviction");
	if (options->cluster)
		fprintf(file, "cluster-enabled yes\ncluster-port %d\ncluster-node-timeout 1000\n",
			server->bus_port);
	fclose(file);
}

static void process_start(struct redis_server *server)
{
	const char *program = getenv("REDIS_SERVER");
	char path[sizeof(server->folder) + 16];
	char path_of_library[sizeof(server->folder)];

	snprintf(path, sizeof(path), "%s/redis.conf", server->folder);
	server->pid = fork();
	if (server->pid < 0)
		support_failed("fork");
	if (server->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(open("/dev/null", O_WRONLY), 1);
	dup2(1, 2);
	if (server->preload) {
		snprintf(path_of_library, sizeof(path_of_library), "%s/%s", build_folder(),
			 server->preload);
		setenv("LD_PRELOAD", path_of_library, 1);
	}
	program = program && *program ? program : "redis-server";
	execlp(program, program, path, server->is_sentinel ? "--sentinel" : NULL, (char *)NULL);
	_exit(127);
}

static bool context_open(struct redis_server *server)
{
	redisReply *reply;

	server->context =
		redisConnectWithTimeout("127.0.0.1", server->port, (struct timeval){2, 0});
	if (server->context && !server->context->err) {
		if (!server->password)
			return true;
		reply = redisCommand(server->context, "AUTH %s", server->password);
		if (reply) {
			freeReplyObject(reply);
			return true;
		}
	}
	redisFree(server->context);
	server->context = NULL;
	return false;
}

static void context_close(struct redis_server *server)
{
	if (server->context)
		redisFree(server->context);
	server->context = NULL;
}

static bool server_answers(struct redis_server *server)
{
	redisReply *reply = NULL;
	bool answers = false;

	if (context_open(server))
		reply = redisCommand(server->context, "PING");
	/* Another program, with another process id, may have taken the port. */
	if (reply && reply->type == REDIS_REPLY_STATUS) {
		freeReplyObject(reply);
		reply = redisCommand(server->context, "INFO server");
		if (reply && reply->type == REDIS_REPLY_STRING) {
			const char *pid = strstr(reply->str, "process_id:");

			answers = pid && atoi(pid + 11) == server->pid;
		}
	}
	if (reply)
		freeReplyObject(reply);
	context_close(server);
	return answers;
}

static bool wait_until_it_answers(struct redis_server *server)
{
	for (int i = 0; i < ANSWER_TRIES; i++) {
		int status;

		if (server_answers(server))
			return true;
		if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
			server->pid = 0;
			return false;
		}
		wait_for(10 * TW_MILLISECOND);
	}
	return false;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	return remove(path);
}

void redis_server_start(struct redis_server *server, const struct redis_server_options *options)
{
	static const struct redis_server_options plain;

	for (int i = 0; i < START_TRIES; i++) {
		memset(server, 0, sizeof(*server));
		server->port = port_free();
		server->bus_port = port_free();
		server->is_sentinel = options && options->sentinel_of;
		server->password = options ? options->password : NULL;
		server->preload = options ? options->preload : NULL;
		snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", server->port);
		folder_create(server);
		if (options && options->tls) {
			server->tls_port = port_free();
			certificates_make(server->folder);
		}
		config_write(server, options ? options : &plain);
		process_start(server);
		if (wait_until_it_answers(server))
			return;
		redis_server_stop(server);
	}
	fputs("redis-server does not start\n", stderr);
	exit(1);
}

void redis_server_restart(struct redis_server *server)
{
	process_start(server);
	if (wait_until_it_answers(server))
		return;
	fputs("redis-server does not restart\n", stderr);
	exit(1);
}

void redis_server_add_setting(const struct redis_server *server, const char *format, ...)
{
	char path[sizeof(server->folder) + 16];
	va_list arguments;
	FILE *file;

	snprintf(path, sizeof(path), "%s/redis.conf", server->folder);
	file = fopen(path, "a");
	if (!file)
		support_failed(path);
	va_start(arguments, format);
	vfprintf(file, format, arguments);
	va_end(arguments);
	fputc('\n', file);
	fclose(file);
}

void redis_server_end(struct redis_server *server, int signal)
{
	int status;

	context_close(server);
	if (!server->pid)
		return;
	kill(server->pid, signal);
	waitpid(server->pid, &status, 0);
	server->pid = 0;
}

void redis_server_stop(struct redis_server *server)
{
	redis_server_end(server, SIGKILL);
	nftw(server->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void redis_server_path(const struct redis_server *server, const char *file, char *path, size_t room)
{
	const char *here = *server->folder == '/' ? "" : "/proc/self/cwd/";

	snprintf(path, room, "%s%s/%s", here, server->folder, file);
}

static void log_print(const struct redis_server *server)
{
	char path[sizeof(server->folder) + 16];
	char text[LOG_END_SIZE + 1];
	FILE *file;

	snprintf(path, sizeof(path), "%s/redis.log", server->folder);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fseek(file, -LOG_END_SIZE, SEEK_END))
		rewind(file);
	text[fread(text, 1, LOG_END_SIZE, file)] = '\0';
	fclose(file);
	fprintf(stderr, "the end of %s:\n%s", path, text);
}

static redisReply *ask(struct redis_server *server, const char *format, va_list arguments)
{
	redisReply *reply = NULL;

	for (int tries = 0; tries < 2 && !reply; tries++) {
		va_list copied;

		/* A Sentinel that changes the server's role closes all its connections. */
		if (server->context && server->context->err)
			context_close(server);
		va_copy(copied, arguments);
		if (server->context || context_open(server))
			reply = redisvCommand(server->context, format, copied);
		va_end(copied);
	}
	if (!reply || reply->type == REDIS_REPLY_ERROR) {
		fprintf(stderr, "%s: %s\n", format, reply ? reply->str : "no reply");
		abort();
	}
	return reply;
}

void redis_server_print_state(struct redis_server *server, const char *command)
{
	redisReply *reply = NULL;

	if (server->context || context_open(server))
		reply = redisCommand(server->context, command);
	fprintf(stderr, "the server at %d answers to %s:\n%s\n", server->port, command,
		reply && reply->str ? reply->str : "nothing");
	if (reply)
		freeReplyObject(reply);
	log_print(server);
}

redisReply *redis_server_ask(struct redis_server *server, const char *format, ...)
{
	va_list arguments;
	redisReply *reply;

	va_start(arguments, format);
	reply = ask(server, format, arguments);
	va_end(arguments);
	return reply;
}

int64_t redis_server_number(struct redis_server *server, const char *format, ...)
{
	va_list arguments;
	redisReply *reply;
	int64_t number = 0;

	va_start(arguments, format);
	reply = ask(server, format, arguments);
	va_end(arguments);
	if (reply->type == REDIS_REPLY_INTEGER)
		number = reply->integer;
	else if (reply->type == REDIS_REPLY_STRING)
		number = atoll(reply->str);
	freeReplyObject(reply);
	return number;
}

int redis_server_says(struct redis_server *server, const char *command, const char *words)
{
	redisReply *reply = redis_server_ask(server, command);
	int count = 0;

	for (const char *at = reply->str; (at = strstr(at, words)); at++)
		count++;
	freeReplyObject(reply);
	return count;
}

int64_t redis_server_figure(struct redis_server *server, const char *command, const char *words)
{
	redisReply *reply = redis_server_ask(server, command);
	const char *found = strstr(reply->str, words);
	int64_t figure = found ? atoll(found + strlen(words)) : 0;

	freeReplyObject(reply);
	return figure;
}

int64_t redis_server_calls(struct redis_server *server, const char *command)
{
	char words[64];

	snprintf(words, sizeof(words), "cmdstat_%s:calls=", command);
	return redis_server_figure(server, "INFO commandstats", words);
}

int64_t redis_server_now(struct redis_server *server)
{
	redisReply *reply = redis_server_ask(server, "TIME");
	int64_t now = atoll(reply->element[0]->str) * 1000 + atoll(reply->element[1]->str) / 1000;

	freeReplyObject(reply);
	return now;
}

unsigned shard_of(const struct tw_redis *redis, const char *key)
{
	return space_shard(&redis->space, key, strlen(key));
}

void redis_server_set_due(struct redis_server *server, const struct tw_redis *redis,
			  const char *name_space, const char *key, int64_t from_now_ms)
{
	redis_server_set_score(server, redis, name_space, key,
			       redis_server_now(server) + from_now_ms);
}

void redis_server_set_score(struct redis_server *server, const struct tw_redis *redis,
			    const char *name_space, const char *key, int64_t score)
{
	static const char script[] =
		"if redis.call('ZSCORE', KEYS[1] .. 'due', ARGV[1]) then\n"
		"	local record = redis.call('HGET', KEYS[1] .. 'body', ARGV[1]) or ''\n"
		"	redis.call('HSET', KEYS[1] .. 'body', ARGV[1],\n"
		"		(string.gsub(record, '^%d+', ARGV[2], 1)))\n"
		"	return redis.call('ZADD', KEYS[1] .. 'due', ARGV[2], ARGV[1])\n"
		"end\n"
		"for _, token in ipairs(redis.call('ZRANGE', KEYS[1] .. 'leases', 0, -1)) do\n"
		"	local packed = redis.call('HGET', KEYS[1] .. 'state', 'k' .. token)\n"
		"	local slots = redis.call('HGET', KEYS[1] .. 'state', 's' .. token)\n"
		"	local keys = cmsgpack.unpack(string.match(packed, '\\n(.*)$'))[1]\n"
		"	for i, key in ipairs(keys) do\n"
		"		if key == ARGV[1] and string.find(slots, '^1', i) then\n"
		"			redis.call('ZADD', KEYS[1] .. 'leases', ARGV[2], token)\n"
		"		end\n"
		"	end\n"
		"end\n"
		"return 0";

	redis_server_number(server, "EVAL %s 1 {tw/%s/%u} %s %lld", script, name_space,
			    shard_of(redis, key), key, (long long)score);
}

int64_t redis_server_count_listeners(struct redis_server *server, const char *name_space)
{
	redisReply *reply = redis_server_ask(server, "PUBSUB NUMSUB tw/%s/hint", name_space);
	int64_t count = reply->element[1]->integer;

	freeReplyObject(reply);
	return count;
}

int64_t redis_server_count_keys(struct redis_server *server, const char *name_space)
{
	static const char *const kept[] = {"token", "seen", "added"};
	redisReply *reply = redis_server_ask(server, "KEYS {tw/%s/*}*", name_space);
	int64_t count = 0;

	for (size_t i = 0; i < reply->elements; i++) {
		const char *name = strchr(reply->element[i]->str, '}');

		if (strcmp(name, "}state") != 0) {
			count++;
			continue;
		}
		/* What stays is the last token and its time, and how many were added. */
		count += redis_server_number(server, "HLEN %s", reply->element[i]->str);
		for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++)
			count -= redis_server_number(server, "HEXISTS %s %s",
						     reply->element[i]->str, kept[k]);
	}
	freeReplyObject(reply);
	return count;
}
