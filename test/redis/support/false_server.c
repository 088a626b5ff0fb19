/* SPDX-License-Identifier: MIT */
#include "support/false_server.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/sockets.h"

enum { REPLY_MAX = 65536 };

static size_t reply_text(char *reply, const char *text)
{
	return (size_t)sprintf(reply, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* Finds the reply that the test has set for requests with that word. */
static bool find_reply(struct false_server *server, const char *word, char *reply, size_t *size)
{
	bool found = false;

	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < FALSE_REPLIES_MAX && !found; i++) {
		const char *text = server->replies[i].reply;

		found = server->replies[i].times && !strcmp(word, server->replies[i].word);
		if (!found)
			continue;
		server->replies[i].times--;
		*size = !text   ? FALSE_CLOSE
			: *text ? (size_t)snprintf(reply, REPLY_MAX, "%s\r\n", text)
				: 0;
	}
	pthread_mutex_unlock(&server->lock);
	return found;
}

bool false_request_is(const redisReply *request, const struct script *script)
{
	const char *text = request->elements > 1 ? request->element[1]->str : "";

	/* A line about full memory may precede the text. */
	return !strcmp(text, script->digest) || !strcmp(text, script->full_digest) ||
	       strstr(text, script->text);
}

static size_t answer(struct false_server *server, const redisReply *request, char *reply)
{
	const char *word =
		false_request_is(request, &script_layout) ? "layout" : request->element[0]->str;
	size_t size;

	if (find_reply(server, word, reply, &size))
		return size;
	if (!strncmp(word, "EVAL", 4))
		return server->answer(server->context, request, reply, REPLY_MAX);
	if (!strcmp(word, "INFO"))
		return reply_text(reply, "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n"
					 "cluster_enabled:0\r\nrole:master\r\n");
	if (!strcmp(word, "layout"))
		return reply_text(reply, "4 4");
	if (!strcmp(word, "SUBSCRIBE"))
		return (size_t)sprintf(reply, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n");
	return (size_t)sprintf(reply, "+OK\r\n");
}

/* Reads and answers requests. Returns false if the client has closed the connection. */
static bool requests_take(struct false_server *server, size_t index)
{
	static _Thread_local char data[REPLY_MAX];
	int descriptor = server->connections[index].descriptor;
	redisReader *reader = server->connections[index].reader;
	ssize_t size = recv(descriptor, data, sizeof(data), 0);
	void *request = NULL;
	bool fine = size > 0;

	if (!fine)
		return false;
	redisReaderFeed(reader, data, (size_t)size);
	while (fine && redisReaderGetReply(reader, &request) == REDIS_OK && request) {
		size_t reply = answer(server, request, data);

		fine = reply != FALSE_CLOSE && socket_send(descriptor, data, reply);
		freeReplyObject(request);
		request = NULL;
	}
	return fine;
}

static void connection_end(struct false_server *server, size_t index)
{
	close(server->connections[index].descriptor);
	redisReaderFree(server->connections[index].reader);
	server->connections[index] = server->connections[--server->open];
}

static void *serve(void *argument)
{
	struct false_server *server = argument;

	for (;;) {
		struct pollfd descriptors[FALSE_CONNECTIONS_MAX + 2] = {
			{.fd = server->stop, .events = POLLIN},
			{.fd = server->listener, .events = POLLIN}};
		size_t open = server->open;

		for (size_t i = 0; i < open; i++)
			descriptors[i + 2] = (struct pollfd){
				.fd = server->connections[i].descriptor, .events = POLLIN};
		poll(descriptors, open + 2, -1);
		if (descriptors[0].revents)
			return NULL;
		/* This goes backwards: the last connection takes the place of a closed one. */
		for (size_t i = open; i-- > 0;)
			if (descriptors[i + 2].revents && !requests_take(server, i))
				connection_end(server, i);
		if (!descriptors[1].revents || server->open == FALSE_CONNECTIONS_MAX)
			continue;
		server->connections[server->open].descriptor =
			accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
		server->connections[server->open++].reader = redisReaderCreate();
	}
}

void false_server_start_at(struct false_server *server, int listener,
			   false_answer_fn *answer_script, void *context)
{
	*server = (struct false_server){
		.listener = listener, .answer = answer_script, .context = context};
	pthread_mutex_init(&server->lock, NULL);
	server->stop = eventfd(0, EFD_CLOEXEC);
	if (server->stop < 0 || pthread_create(&server->thread, NULL, serve, server))
		support_failed("the false server");
}

void false_server_start(struct false_server *server, false_answer_fn *answer_script, void *context)
{
	int port = 0;
	int listener = socket_listen(&port);

	false_server_start_at(server, listener, answer_script, context);
	server->port = port;
	snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", port);
}

void false_server_refuse(struct false_server *server, const char *word, const char *reply,
			 int times)
{
	size_t i = 0;

	pthread_mutex_lock(&server->lock);
	while (i < FALSE_REPLIES_MAX && *server->replies[i].word &&
	       strcmp(server->replies[i].word, word))
		i++;
	if (i == FALSE_REPLIES_MAX || (reply && strlen(reply) > REPLY_MAX - 3))
		support_failed("a reply of the false server");
	free(server->replies[i].reply);
	snprintf(server->replies[i].word, sizeof(server->replies[i].word), "%s", word);
	server->replies[i].reply = reply ? strdup(reply) : NULL;
	server->replies[i].times = times;
	pthread_mutex_unlock(&server->lock);
}

void false_server_be(struct false_server *server, int version, bool cluster)
{
	char info[128];
	char reply[160];

	snprintf(info, sizeof(info),
		 "redis_version:%d.2.0\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:%d\r\n",
		 version, cluster);
	snprintf(reply, sizeof(reply), "$%zu\r\n%s", strlen(info), info);
	false_server_refuse(server, "INFO", reply, INT_MAX);
}

void false_server_stop(struct false_server *server)
{
	eventfd_write(server->stop, 1);
	pthread_join(server->thread, NULL);
	while (server->open)
		connection_end(server, server->open - 1);
	for (size_t i = 0; i < FALSE_REPLIES_MAX; i++)
		free(server->replies[i].reply);
	close(server->listener);
	close(server->stop);
	pthread_mutex_destroy(&server->lock);
}
