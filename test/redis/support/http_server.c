/* SPDX-License-Identifier: MIT */
/*
 * Stopping shuts the sockets down, which ends every read. The threads of connections are detached
 * and counted, and stopping waits until the count is 0. Whoever takes a descriptor out of the table
 * closes it.
 */
#include "support/http_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/sockets.h"
#include "support/wait.h"

enum { BUFFER_SIZE = 512 * 1024 };

struct connection {
	struct http_server *server;
	size_t index;
	int descriptor;
	size_t size; /* bytes in the buffer */
	char buffer[BUFFER_SIZE];
};

/* Copies the value of a header up to the line's end, or "" if there is none. */
static void header_find(const char *headers, const char *name, char *value, size_t room)
{
	size_t size = strlen(name);

	*value = '\0';
	for (const char *line = headers; line; line = strstr(line, "\r\n")) {
		line += !strncmp(line, "\r\n", 2) ? 2 : 0;
		if (strncasecmp(line, name, size) || line[size] != ':')
			continue;
		line += size + 1;
		line += strspn(line, " ");
		snprintf(value, room, "%.*s", (int)strcspn(line, "\r"), line);
		return;
	}
}

/* Reads until the buffer holds `size` bytes. Returns false if the client has closed the
 * connection. */
static bool fill(struct connection *connection, size_t size)
{
	while (connection->size < size) {
		ssize_t got = recv(connection->descriptor, connection->buffer + connection->size,
				   BUFFER_SIZE - 1 - connection->size, 0);

		if (got <= 0)
			return false;
		connection->size += (size_t)got;
	}
	return true;
}

/* Reads a request and takes it out of the buffer. */
static bool request_read(struct connection *connection, struct http_request *request)
{
	char *buffer = connection->buffer;
	char *end;
	char number[32];
	size_t head;
	size_t line;

	memset(request, 0, sizeof(*request));
	do {
		if (!fill(connection, connection->size + 1))
			return false;
		buffer[connection->size] = '\0';
		end = strstr(buffer, "\r\n\r\n");
	} while (!end);
	end[2] = '\0';
	head = (size_t)(end - buffer) + 4;
	line = strcspn(buffer, "\r");
	sscanf(buffer, "%7s %127s", request->method, request->path);
	snprintf(request->headers, sizeof(request->headers), "%s", buffer + line + 2);
	header_find(buffer, "Tw-Key", request->key, sizeof(request->key));
	header_find(buffer, "Tw-Attempt", number, sizeof(number));
	request->attempt = (unsigned)strtoul(number, NULL, 10);
	header_find(buffer, "Tw-Token", number, sizeof(number));
	request->token = strtoull(number, NULL, 10);
	header_find(buffer, "Content-Length", number, sizeof(number));
	request->body_size = strtoull(number, NULL, 10);
	if (head + request->body_size >= BUFFER_SIZE ||
	    !fill(connection, head + request->body_size))
		return false;
	memcpy(request->body, buffer + head,
	       request->body_size < HTTP_BODY_KEPT ? request->body_size : HTTP_BODY_KEPT - 1);
	connection->size -= head + request->body_size;
	memmove(buffer, buffer + head + request->body_size, connection->size);
	request->at = wall_clock();
	return true;
}

static void request_keep(struct http_server *server, const struct http_request *request)
{
	pthread_mutex_lock(&server->lock);
	if (server->keeps) {
		if (server->count == server->room) {
			server->room = server->room ? 2 * server->room : 64;
			server->requests =
				realloc(server->requests, server->room * sizeof(*server->requests));
			if (!server->requests)
				support_failed("realloc");
		}
		server->requests[server->count] = *request;
	}
	server->count++;
	server->busy++;
	if (server->busy > server->busiest)
		server->busiest = server->busy;
	pthread_mutex_unlock(&server->lock);
}

/* Waits that long, or until the server stops. */
static void delay(struct http_server *server, int64_t time_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += time_ms / 1000;
	until.tv_nsec += time_ms % 1000 * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&server->lock);
	while (!server->stop && !pthread_cond_timedwait(&server->changed, &server->lock, &until))
		;
	pthread_mutex_unlock(&server->lock);
}

static bool body_send(int descriptor, size_t size)
{
	static const char zeros[4096];

	while (size) {
		size_t some = size < sizeof(zeros) ? size : sizeof(zeros);

		if (!socket_send(descriptor, zeros, some))
			return false;
		size -= size == SIZE_MAX ? 0 : some;
	}
	return true;
}

static bool request_answer(struct connection *connection, const struct http_request *request)
{
	struct http_server *server = connection->server;
	struct http_answer answer = {.status = atoi(request->path + 1)};
	size_t body_size;
	char text[1024];
	int size;

	answer.status = answer.status ? answer.status : 200;
	if (server->answer)
		server->answer(server->context, request, &answer);
	if (answer.delay_ms)
		delay(server, answer.delay_ms);
	pthread_mutex_lock(&server->lock);
	server->busy--;
	pthread_mutex_unlock(&server->lock);
	if (answer.instead)
		(void)socket_send(connection->descriptor, answer.instead, strlen(answer.instead));
	if (answer.stall_ms)
		delay(server, answer.stall_ms);
	if (answer.hang_up || answer.instead)
		return false;
	body_size = answer.body ? strlen(answer.body) : answer.body_size;
	size = snprintf(text, sizeof(text), "HTTP/1.1 %d Said\r\n%sContent-Length: %zu\r\n\r\n",
			answer.status, answer.headers ? answer.headers : "",
			body_size < INT64_MAX ? body_size : INT64_MAX);
	if (!socket_send(connection->descriptor, text, (size_t)size))
		return false;
	if (!strcmp(request->method, "HEAD"))
		return true;
	return answer.body ? socket_send(connection->descriptor, answer.body, body_size)
			   : body_send(connection->descriptor, body_size);
}

static void *connection_serve(void *argument)
{
	struct connection *connection = argument;
	struct http_server *server = connection->server;
	struct http_request request;

	while (request_read(connection, &request)) {
		request_keep(server, &request);
		if (!request_answer(connection, &request))
			break;
	}
	pthread_mutex_lock(&server->lock);
	close(connection->descriptor);
	server->connections[connection->index] = -1;
	server->open--;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	free(connection);
	return NULL;
}

static void connection_start(struct http_server *server, int descriptor)
{
	struct connection *connection = malloc(sizeof(*connection));
	pthread_attr_t attributes;
	pthread_t thread;
	size_t index = 0;

	pthread_mutex_lock(&server->lock);
	while (index < HTTP_CONNECTIONS_MAX && server->connections[index] >= 0)
		index++;
	if (!connection || index == HTTP_CONNECTIONS_MAX || server->stop) {
		close(descriptor);
		free(connection);
		pthread_mutex_unlock(&server->lock);
		return;
	}
	server->connections[index] = descriptor;
	server->open++;
	pthread_mutex_unlock(&server->lock);
	connection->server = server;
	connection->index = index;
	connection->descriptor = descriptor;
	connection->size = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, connection_serve, connection))
		support_failed("pthread_create");
	pthread_attr_destroy(&attributes);
}

static void *listen_serve(void *argument)
{
	struct http_server *server = argument;
	int descriptor;

	while ((descriptor = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		connection_start(server, descriptor);
	return NULL;
}

static void server_start(struct http_server *server, http_answer_fn *answer, void *context,
			 bool keeps)
{
	pthread_condattr_t attributes;

	memset(server, 0, sizeof(*server));
	server->answer = answer;
	server->context = context;
	server->keeps = keeps;
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		server->connections[i] = -1;
	pthread_mutex_init(&server->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&server->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	server->listener = socket_listen(&server->port);
	if (pthread_create(&server->thread, NULL, listen_serve, server))
		support_failed("pthread_create");
}

void http_server_start(struct http_server *server, http_answer_fn *answer, void *context)
{
	server_start(server, answer, context, true);
}

void http_server_start_counting(struct http_server *server, http_answer_fn *answer, void *context)
{
	server_start(server, answer, context, false);
}

void http_server_stop(struct http_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stop = true;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		if (server->connections[i] >= 0)
			shutdown(server->connections[i], SHUT_RDWR);
	while (server->open)
		pthread_cond_wait(&server->changed, &server->lock);
	pthread_mutex_unlock(&server->lock);
	free(server->requests);
	pthread_cond_destroy(&server->changed);
	pthread_mutex_destroy(&server->lock);
}

size_t http_server_count(struct http_server *server)
{
	return locked_read(&server->lock, &server->count);
}

size_t http_server_count_of(struct http_server *server, const char *key)
{
	size_t count = 0;

	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < server->count; i++)
		count += !strcmp(server->requests[i].key, key);
	pthread_mutex_unlock(&server->lock);
	return count;
}

bool http_server_request(struct http_server *server, const char *key, size_t index,
			 struct http_request *request)
{
	bool found = false;

	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < server->count && !found; i++) {
		if (key && strcmp(server->requests[i].key, key))
			continue;
		found = !index--;
		if (found)
			*request = server->requests[i];
	}
	pthread_mutex_unlock(&server->lock);
	return found;
}

size_t http_server_busiest(struct http_server *server)
{
	return locked_read(&server->lock, &server->busiest);
}
