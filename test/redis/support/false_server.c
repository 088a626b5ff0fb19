/* SPDX-License-Identifier: MIT */
#include "support/false_server.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <timingwheel/redis.h>

#include "redis/wire/script.h"
#include "support/sockets.h"
#include "support/wait.h"

enum { READ_SIZE = 65536 };

/* ---- Replies from their texts ---- */

static const char *value_write(FILE *out, const char *at);

/* Writes the elements of an array, whose number comes before them. */
static const char *array_write(FILE *out, const char *at)
{
	char *elements;
	size_t size;
	FILE *inside = open_memstream(&elements, &size);
	size_t count = 0;

	for (at += strspn(at, " "); *at != ']'; at += strspn(at, " "), count++)
		at = value_write(inside, at);
	fclose(inside);
	fprintf(out, "*%zu\r\n%s", count, elements);
	free(elements);
	return at + 1;
}

/* Writes one value. Returns what is behind it. */
static const char *value_write(FILE *out, const char *at)
{
	size_t size = strcspn(at, " ]");

	if (*at == '[')
		return array_write(out, at + 1);
	if (*at == '\'') {
		size = strcspn(++at, "'");
		fprintf(out, "$%zu\r\n%.*s\r\n", size, (int)size, at);
		return at + size + 1;
	}
	if (size >= 3 && !strncmp(at, "nil", 3))
		fputs("$-1\r\n", out);
	else if (size >= 4 && !strncmp(at, "none", 4))
		fputs("*-1\r\n", out);
	else if (isdigit((unsigned char)at[*at == '-']))
		fprintf(out, ":%.*s\r\n", (int)size, at);
	else
		support_failed(at);
	return at + size;
}

/* Writes lines as INFO has them, with words for lines. */
static void info_write(FILE *out, const char *words)
{
	char *text = strdup(words);
	char *lines;
	size_t size;
	FILE *inside = open_memstream(&lines, &size);

	for (char *rest = NULL, *word = strtok_r(text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		fprintf(inside, "%s\r\n", word);
	fclose(inside);
	fprintf(out, "$%zu\r\n%s\r\n", size, lines);
	free(lines);
	free(text);
}

static void reply_write(FILE *out, const char *text)
{
	size_t size = strlen(text);

	if (!strncmp(text, "info", 4))
		info_write(out, text + 4);
	else if (*text == '[' || *text == '\'' || *text == 'n')
		value_write(out, text);
	else
		fprintf(out, size > 1 && text[size - 1] == '\n' ? "%s" : "%s\r\n", text);
}

/* ---- Requests ---- */

/* Returns the script that is called, or NULL. */
static const struct script *script_of(const redisReply *request)
{
#define SCRIPT_ADDRESS(name, ...) &script_##name,
	static const struct script *const scripts[] = {SCRIPT_LIST(SCRIPT_ADDRESS)};
	const char *text = request->elements > 1 ? request->element[1]->str : "";

	if (!strncmp(text, SCRIPT_AT_FULL_MEMORY, strlen(SCRIPT_AT_FULL_MEMORY)))
		text += strlen(SCRIPT_AT_FULL_MEMORY);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (!strcmp(text, scripts[i]->digest) || !strcmp(text, scripts[i]->full_digest) ||
		    !strcmp(text, scripts[i]->text))
			return scripts[i];
	return NULL;
}

static bool has_argument(const redisReply *request, const char *argument)
{
	for (size_t i = 1; i < request->elements; i++)
		if (!strcmp(request->element[i]->str, argument))
			return true;
	return false;
}

static bool is_for(const struct false_rule *rule, const redisReply *request)
{
	const struct script *script = script_of(request);
	const char *word = rule->word;

	/* A server that does not know a script sees its name only. */
	if (!strncmp(rule->reply, "-NOSCRIPT", 9) && strcmp(request->element[0]->str, "EVALSHA"))
		return false;
	if (*word == '#')
		return has_argument(request, word + 1);
	if (script && !strcmp(word, script->name))
		return true;
	if (script == &script_layout)
		return false;
	return !strcmp(word, request->element[0]->str) ||
	       (!strcmp(word, "script") && !strncmp(request->element[0]->str, "EVAL", 4));
}

/* Leases the task if the shard is its own. The number of the attempt is the token, too. */
static void claim_write(struct false_server *server, const redisReply *request, FILE *out)
{
	char reply[100];

	if (server->is_leased || !*server->task || !strstr(request->element[3]->str, "/0}")) {
		reply_write(out, "['1' -1 0 [] [] []]");
		return;
	}
	server->is_leased = true;
	server->attempts++;
	snprintf(reply, sizeof(reply), "['1' -1 %zu ['%s'] ['1 9 0\n\n'] ['%zu 1 ']]",
		 server->attempts, server->task, server->attempts);
	reply_write(out, reply);
}

/* Ends the run of the task, unless another one has begun. */
static void run_end(struct false_server *server, const redisReply *request, FILE *out)
{
	size_t keys = (size_t)strtoul(request->element[2]->str, NULL, 10);
	/* The letter b stands before the token, and the place before the verb. */
	size_t token = (size_t)strtoul(request->element[4 + keys]->str, NULL, 10);
	bool is_last = strchr("dk", *request->element[6 + keys]->str);

	if (!*server->task || !server->is_leased || token != server->attempts) {
		reply_write(out, *server->task ? "'s'" : "'g'");
		return;
	}
	server->is_leased = false;
	if (is_last)
		*server->task = '\0';
	reply_write(out, "'o'");
}

/* Does what is asked, and writes the reply. */
static void serve(struct false_server *server, const redisReply *request, FILE *out)
{
	const char *command = request->element[0]->str;
	const struct script *script = script_of(request);

	if (script == &script_claim)
		claim_write(server, request, out);
	else if (script == &script_finish)
		run_end(server, request, out);
	else if (script == &script_layout)
		reply_write(out, "'5 4'");
	else if (script == &script_extend)
		reply_write(out, "'o'");
	else if (script == &script_add)
		reply_write(out, "[0]");
	else if (script == &script_present)
		reply_write(out, ":1");
	else if (!strncmp(command, "EVAL", 4))
		reply_write(out, ":0");
	else if (!strcmp(command, "INFO"))
		reply_write(out, "info redis_version:7.0.15 maxmemory_policy:noeviction "
				 "cluster_enabled:0 role:master");
	else if (!strcmp(command, "SUBSCRIBE"))
		reply_write(out, "['subscribe' 'x' 1]");
	else
		reply_write(out, "+OK");
}

/* Returns the reply's text that a rule has for the request, or "usual". */
static const char *rule_use(struct false_server *server, const redisReply *request)
{
	for (int i = FALSE_RULES_MAX - 1; i >= 0; i--) {
		struct false_rule *rule = &server->rules[i];

		if (!rule->times || !is_for(rule, request))
			continue;
		rule->times -= rule->times < FALSE_ALWAYS;
		return rule->reply;
	}
	return "usual";
}

enum fate { ANSWERED, HELD, MUTE, CLOSED };

/* Writes the reply to the request. */
static enum fate answer(struct false_server *server, const redisReply *request, FILE *out)
{
	const char *text = rule_use(server, request);
	const char *script = request->elements > 1 ? request->element[1]->str : "";
	char *nowhere;
	size_t size;
	FILE *lost;

	if (!strncmp(request->element[0]->str, "EVAL", 4) && script_of(request) != &script_layout) {
		server->asked++;
		server->keys = (size_t)atoi(request->element[2]->str);
		server->flagged += !strncmp(script, "#!", 2);
	}
	if (!strcmp(text, "hold")) {
		server->held++;
		return HELD;
	}
	if (!strncmp(text, "late ", 5)) {
		wait_for(100 * TW_MILLISECOND);
		text += 5;
	}
	if (!strcmp(text, "usual")) {
		serve(server, request, out);
	} else if (strcmp(text, "silence") != 0 && strcmp(text, "close") != 0) {
		reply_write(out, text);
	} else {
		lost = open_memstream(&nowhere, &size);
		serve(server, request, lost);
		fclose(lost);
		free(nowhere);
	}
	return !strcmp(text, "close") ? CLOSED : !strcmp(text, "silence") ? MUTE : ANSWERED;
}

/* ---- Connections ---- */

/* Answers the request, or what is held. Returns false if the connection is to be closed. */
static bool request_answer(struct false_server *server, size_t index, redisReply *request)
{
	char *reply;
	size_t size;
	FILE *out = open_memstream(&reply, &size);
	enum fate fate;
	bool fine;

	pthread_mutex_lock(&server->lock);
	fate = answer(server, request, out);
	server->connections[index].releases = fate == MUTE ? SIZE_MAX : server->releases;
	pthread_mutex_unlock(&server->lock);
	fclose(out);
	server->connections[index].held = fate == HELD || fate == MUTE ? request : NULL;
	if (!server->connections[index].held)
		freeReplyObject(request);
	fine = fate != CLOSED && socket_send(server->connections[index].descriptor, reply, size);
	free(reply);
	return fine;
}

/* Answers the requests that have been read. Returns false if the connection is to be closed. */
static bool requests_answer(struct false_server *server, size_t index)
{
	redisReader *reader = server->connections[index].reader;
	void *request = NULL;
	bool fine = true;

	while (fine && !server->connections[index].held &&
	       redisReaderGetReply(reader, &request) == REDIS_OK && request)
		fine = request_answer(server, index, request);
	return fine;
}

static bool requests_take(struct false_server *server, size_t index)
{
	static _Thread_local char data[READ_SIZE];
	ssize_t size = recv(server->connections[index].descriptor, data, sizeof(data), 0);

	if (size <= 0)
		return false;
	redisReaderFeed(server->connections[index].reader, data, (size_t)size);
	return requests_answer(server, index);
}

/* Answers what is held, if it has been released. */
static bool held_answer(struct false_server *server, size_t index)
{
	redisReply *request = server->connections[index].held;
	bool is_released;

	pthread_mutex_lock(&server->lock);
	is_released = request && server->releases > server->connections[index].releases;
	pthread_mutex_unlock(&server->lock);
	return !is_released ||
	       (request_answer(server, index, request) && requests_answer(server, index));
}

static void connection_end(struct false_server *server, size_t index)
{
	close(server->connections[index].descriptor);
	redisReaderFree(server->connections[index].reader);
	freeReplyObject(server->connections[index].held);
	server->connections[index] = server->connections[--server->open];
}

static bool has_stopped(struct false_server *server)
{
	bool stops;

	pthread_mutex_lock(&server->lock);
	stops = server->stops;
	pthread_mutex_unlock(&server->lock);
	return stops;
}

static void *server_run(void *argument)
{
	struct false_server *server = argument;

	while (!has_stopped(server)) {
		struct pollfd descriptors[FALSE_CONNECTIONS_MAX + 2] = {
			{.fd = server->change, .events = POLLIN},
			{.fd = server->listener, .events = POLLIN}};
		size_t open = server->open;
		eventfd_t changes;

		for (size_t i = 0; i < open; i++)
			descriptors[i + 2] = (struct pollfd){
				.fd = server->connections[i].descriptor, .events = POLLIN};
		poll(descriptors, open + 2, -1);
		if (descriptors[0].revents)
			eventfd_read(server->change, &changes);
		/* This goes backwards: the last connection takes the place of a closed one. */
		for (size_t i = open; i-- > 0;)
			if (!held_answer(server, i) ||
			    (descriptors[i + 2].revents && !requests_take(server, i)))
				connection_end(server, i);
		if (!descriptors[1].revents || server->open == FALSE_CONNECTIONS_MAX)
			continue;
		server->connections[server->open].descriptor =
			accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
		server->connections[server->open].held = NULL;
		server->connections[server->open++].reader = redisReaderCreate();
	}
	return NULL;
}

/* ---- What tests call ---- */

void false_server_start_at(struct false_server *server, int listener)
{
	*server = (struct false_server){.listener = listener};
	pthread_mutex_init(&server->lock, NULL);
	server->change = eventfd(0, EFD_CLOEXEC);
	if (server->change < 0 || pthread_create(&server->thread, NULL, server_run, server))
		support_failed("the false server");
}

void false_server_start(struct false_server *server)
{
	int port = 0;
	int listener = socket_listen(&port);

	false_server_start_at(server, listener);
	server->port = port;
	snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", port);
}

void false_server_stop(struct false_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stops = true;
	pthread_mutex_unlock(&server->lock);
	eventfd_write(server->change, 1);
	pthread_join(server->thread, NULL);
	while (server->open)
		connection_end(server, server->open - 1);
	false_server_reset(server);
	close(server->listener);
	close(server->change);
	pthread_mutex_destroy(&server->lock);
}

void false_server_set(struct false_server *server, const char *word, const char *reply, int times)
{
	size_t kept = 0;

	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < FALSE_RULES_MAX; i++) {
		struct false_rule rule = server->rules[i];
		bool stays = times && times < FALSE_ALWAYS;

		server->rules[i] = (struct false_rule){.times = 0};
		if (rule.times && (stays || strcmp(rule.word, word) != 0))
			server->rules[kept++] = rule;
		else
			free(rule.reply);
	}
	if (kept == FALSE_RULES_MAX)
		support_failed("too many rules");
	if (times) {
		snprintf(server->rules[kept].word, sizeof(server->rules[kept].word), "%s", word);
		server->rules[kept].reply = strdup(reply);
		server->rules[kept].times = times;
	}
	pthread_mutex_unlock(&server->lock);
}

void false_server_reset(struct false_server *server)
{
	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < FALSE_RULES_MAX; i++)
		free(server->rules[i].reply);
	memset(server->rules, 0, sizeof(server->rules));
	*server->task = '\0';
	server->is_leased = false;
	server->asked = server->held = server->flagged = 0;
	pthread_mutex_unlock(&server->lock);
}

void false_server_release(struct false_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->releases++;
	pthread_mutex_unlock(&server->lock);
	eventfd_write(server->change, 1);
}

void false_server_give(struct false_server *server, const char *key)
{
	pthread_mutex_lock(&server->lock);
	snprintf(server->task, sizeof(server->task), "%s", key);
	server->is_leased = false;
	server->attempts = 0;
	pthread_mutex_unlock(&server->lock);
}

size_t false_server_asked(struct false_server *server)
{
	return locked_read(&server->lock, &server->asked);
}

bool false_server_has(struct false_server *server, const char *word)
{
	bool has = false;

	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < FALSE_RULES_MAX; i++)
		has |= server->rules[i].times && !strcmp(server->rules[i].word, word);
	pthread_mutex_unlock(&server->lock);
	return has;
}
