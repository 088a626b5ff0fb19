/* SPDX-License-Identifier: MIT */
/*
 * listener.c has a thread of libmicrohttpd for each connection, so a page that waits for Redis
 * delays no probe. A stranger can use only a bounded number of connections with a bounded memory
 * for requests, and silent ones are closed.
 *
 * The pages have no password, so a browser on this machine must not show them to other sites. The
 * Host header refuses a name that an attacker points at this address, except for the pages for
 * probes, which only say whether the worker is well. The browser runs only the page's script whose
 * digest the policy names, and loads nothing. No page may frame it, and other origins may not read
 * it.
 */
#include "listener.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "host_name.h"
#include "pages.h"

enum { CONNECTIONS_MAX = 64, SILENCE_SECONDS = 5, REQUEST_MAX = 16 * 1024, NAME_MAX_SIZE = 256 };

struct listener {
	/* These are constant while it answers. */
	const struct listener_options *options;
	char host[NAME_MAX_SIZE];     /* the address's host, without brackets */
	char name[NAME_MAX_SIZE + 8]; /* the address, with its real port */
	struct MHD_Daemon *daemon;

	struct board *_Atomic board; /* NULL until the worker runs */
};

/* ---- The address ---- */

/* Takes "host:port" or "[host]:port" apart. Returns the port, digits alone, or NULL if it is
 * neither. */
static const char *address_split(const char *address, char host[NAME_MAX_SIZE])
{
	const char *colon = strrchr(address, ':');
	size_t size = colon ? (size_t)(colon - address) : 0;

	if (size > 2 && address[0] == '[' && address[size - 1] == ']') {
		address++;
		size -= 2;
	} else if (!size || *address == '[' || memchr(address, ':', size)) {
		return NULL;
	}
	if (size >= NAME_MAX_SIZE || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return NULL;
	memcpy(host, address, size);
	host[size] = '\0';
	return colon + 1;
}

bool listen_address_is_valid(const char *address)
{
	char host[NAME_MAX_SIZE];
	const char *port = address_split(address, host);

	return port && strlen(port) <= 5 && strtol(port, NULL, 10) <= UINT16_MAX;
}

/* ---- Methods and hosts ---- */

/* Returns whether the request's Host is a name of ours. Browsers, which an attacker may send here,
 * have one. */
static bool host_is_allowed(const struct listener *listener, struct MHD_Connection *connection)
{
	const struct listener_options *options = listener->options;
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");

	return host && host_name_is_ours(host, listener->host, options->hosts, options->host_count);
}

/* The answers are made of the board, which is NULL until the worker runs. */
struct answer {
	const struct listener *listener;
	struct board *board;
	unsigned status;
	const char *type;
	char *text; /* malloc'ed; NULL without memory */
};

static void answer_plainly(struct answer *answer, unsigned status, const char *text)
{
	answer->status = status;
	answer->type = "text/plain; charset=utf-8";
	answer->text = strdup(text);
}

static void answer_page(struct answer *answer)
{
	answer->type = "text/html; charset=utf-8";
	answer->text = strndup(page_html, page_html_size);
}

static void answer_status(struct answer *answer)
{
	board_look(answer->board);
	answer->type = "application/json";
	answer->text = pages_status(answer->board);
	board_leave(answer->board);
}

static void answer_metrics(struct answer *answer)
{
	board_look(answer->board);
	answer->type = "text/plain; version=0.0.4; charset=utf-8";
	answer->text = pages_metrics(answer->board);
	board_leave(answer->board);
}

static void answer_health(struct answer *answer)
{
	struct tw_redis_worker_stats stats;

	tw_redis_worker_get_stats(answer->board->worker, NULL, &stats);
	if (stats.turned <= answer->listener->options->health_limit)
		answer_plainly(answer, MHD_HTTP_OK, "ok\n");
	else
		answer_plainly(answer, MHD_HTTP_SERVICE_UNAVAILABLE,
			       "the worker's loop is stuck\n");
}

static void answer_readiness(struct answer *answer)
{
	struct board *board = answer->board;
	char reason[sizeof(board->failure.text) + 32] = "the worker is stopping\n";

	board_look(board);
	if (!atomic_load_explicit(&board->stopping, memory_order_relaxed))
		snprintf(reason, sizeof(reason), "Redis is unavailable: %s\n", board->failure.text);
	if (board_is_ready(board))
		answer_plainly(answer, MHD_HTTP_OK, "ok\n");
	else
		answer_plainly(answer, MHD_HTTP_SERVICE_UNAVAILABLE, reason);
	board_leave(board);
}

static const struct {
	const char *path;
	void (*answer)(struct answer *answer);
	bool any_host; /* probes name the address of a container, or no host */
} routes[] = {{"/", answer_page, false},
	      {"/status.json", answer_status, false},
	      {"/metrics", answer_metrics, false},
	      {"/healthz", answer_health, true},
	      {"/readyz", answer_readiness, true}};
enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

static size_t route_find(const char *path)
{
	size_t i = 0;

	while (i < ROUTES && strcmp(path, routes[i].path) != 0)
		i++;
	return i;
}

/* Adds the headers. Returns false without memory. */
static bool headers_add(struct MHD_Response *response, const struct answer *answer)
{
	const char *const headers[][2] = {
		{"Content-Type", answer->type},
		{"Content-Security-Policy", page_policy},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cache-Control", "no-store"},
		{"Allow", "GET, HEAD"}, /* for one status only */
	};
	size_t count = sizeof(headers) / sizeof(headers[0]);
	bool added = true;

	count -= answer->status != MHD_HTTP_METHOD_NOT_ALLOWED;
	for (size_t i = 0; i < count; i++)
		added &= MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
	return added;
}

static enum MHD_Result answer_send(struct MHD_Connection *connection, struct answer *answer)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	/* Without memory the connection is closed. */
	if (!answer->text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(answer->text), answer->text,
						   MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(answer->text);
		return MHD_NO;
	}
	result = headers_add(response, answer)
			 ? MHD_queue_response(connection, answer->status, response)
			 : MHD_NO;
	MHD_destroy_response(response);
	return result;
}

/* Answers a request. MHD calls this when the headers have come; no request has a body for us. */
static enum MHD_Result request_answer(void *argument, struct MHD_Connection *connection,
				      const char *path, const char *method, const char *version,
				      const char *data, size_t *data_size, void **state)
{
	const struct listener *listener = argument;
	struct answer answer = {
		.listener = listener,
		/* acquire: pairs with the release in listener_serve() */
		.board = atomic_load_explicit(&listener->board, memory_order_acquire),
		.status = MHD_HTTP_OK,
	};
	size_t route = route_find(path);
	bool any_host = route < ROUTES && routes[route].any_host;

	(void)version;
	(void)data;
	(void)data_size;
	(void)state;
	if (!any_host && !host_is_allowed(listener, connection))
		answer_plainly(&answer, MHD_HTTP_MISDIRECTED_REQUEST,
			       "this host name is not allowed (--listen-host)\n");
	else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		answer_plainly(&answer, MHD_HTTP_METHOD_NOT_ALLOWED,
			       "only GET and HEAD are allowed\n");
	else if (route == ROUTES)
		answer_plainly(&answer, MHD_HTTP_NOT_FOUND, "there is no such page\n");
	else if (!answer.board)
		answer_plainly(&answer, MHD_HTTP_SERVICE_UNAVAILABLE, "the worker is starting\n");
	else
		routes[route].answer(&answer);
	return answer_send(connection, &answer);
}

/* ---- The calls ---- */

/* Listens at the address. Returns false with errno if it cannot. */
static bool address_listen(struct listener *listener, const struct addrinfo *address)
{
	unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION;

	if (address->ai_family == AF_INET6)
		flags |= MHD_USE_DUAL_STACK;
	listener->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, request_answer, listener, MHD_OPTION_SOCK_ADDR,
		address->ai_addr, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MAX, MHD_OPTION_END);
	return listener->daemon;
}

static void name_write(struct listener *listener)
{
	const char *given = listener->options->address;
	unsigned port = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;

	snprintf(listener->name, sizeof(listener->name), "%.*s:%u",
		 (int)(strrchr(given, ':') - given), given, port);
}

/* Listens. Returns NULL, or the reason why it cannot. */
static const char *listener_listen(struct listener *listener)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	const char *port = address_split(listener->options->address, listener->host);
	struct addrinfo *found;
	struct addrinfo *at;
	int error;

	assert(port);
	error = getaddrinfo(listener->host, port, &hints, &found);
	if (error)
		return gai_strerror(error);
	at = found;
	while (at && !address_listen(listener, at))
		at = at->ai_next;
	error = errno;
	freeaddrinfo(found);
	if (!at)
		return strerror(error);
	name_write(listener);
	return NULL;
}

struct listener *listener_open(const struct listener_options *options)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	const char *failure = "out of memory";

	if (listener) {
		listener->options = options;
		failure = listener_listen(listener);
	}
	if (!failure)
		return listener;
	fprintf(stderr, "twr: can't listen on %s: %s\n", options->address, failure);
	free(listener);
	return NULL;
}

const char *listener_name(const struct listener *listener)
{
	return listener->name;
}

void listener_serve(struct listener *listener, struct board *board)
{
	/* release: publishes *board; pairs with the acquire in request_answer() */
	atomic_store_explicit(&listener->board, board, memory_order_release);
}

void listener_close(struct listener *listener)
{
	if (!listener)
		return;
	MHD_stop_daemon(listener->daemon);
	free(listener);
}
