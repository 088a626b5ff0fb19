/* SPDX-License-Identifier: MIT */
/*
 * Each connection has a thread that polls both ends. To lose a reply, the thread waits for what the
 * server sends after the marked request, so that Redis has executed it, and drops that.
 */
#include "support/proxy.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/sockets.h"

struct link {
	struct proxy *proxy;
	size_t index;
	int client;
	int server;
	bool loses; /* drops what the server sends next */
};

static bool marker_met(struct proxy *proxy, const char *data, size_t size)
{
	bool met;

	pthread_mutex_lock(&proxy->lock);
	met = *proxy->marker && memmem(data, size, proxy->marker, strlen(proxy->marker));
	if (met)
		*proxy->marker = '\0';
	pthread_mutex_unlock(&proxy->lock);
	return met;
}

static bool forward_request(struct link *link)
{
	char data[65536];
	ssize_t size = recv(link->client, data, sizeof(data), 0);

	if (size <= 0)
		return false;
	link->loses |= marker_met(link->proxy, data, (size_t)size);
	return socket_send(link->server, data, (size_t)size);
}

static bool send_reply(struct link *link, const char *data, size_t size)
{
	long apart_ms;

	pthread_mutex_lock(&link->proxy->lock);
	apart_ms = link->proxy->drip_ms;
	pthread_mutex_unlock(&link->proxy->lock);
	if (!apart_ms)
		return socket_send(link->client, data, size);
	for (size_t i = 0; i < size; i++) {
		struct pollfd gone = {.fd = link->client, .events = POLLRDHUP};

		/* The poll ends early if the client or the test closes the connection. */
		if (poll(&gone, 1, (int)apart_ms) || !socket_send(link->client, data + i, 1))
			return false;
	}
	return true;
}

static bool forward_reply(struct link *link)
{
	char data[65536];
	ssize_t size = recv(link->server, data, sizeof(data), 0);

	if (size <= 0)
		return false;
	if (!link->loses)
		return send_reply(link, data, (size_t)size);
	pthread_mutex_lock(&link->proxy->lock);
	link->proxy->lost++;
	pthread_mutex_unlock(&link->proxy->lock);
	return false;
}

static void *link_serve(void *argument)
{
	struct link *link = argument;
	struct proxy *proxy = link->proxy;
	struct pollfd ends[2] = {{.fd = link->client, .events = POLLIN},
				 {.fd = link->server, .events = POLLIN}};
	bool alive = true;

	while (alive && poll(ends, 2, -1) > 0) {
		if (ends[0].revents)
			alive = forward_request(link);
		if (alive && ends[1].revents)
			alive = forward_reply(link);
	}
	pthread_mutex_lock(&proxy->lock);
	close(link->client);
	close(link->server);
	proxy->connections[link->index].client = -1;
	proxy->open--;
	pthread_cond_broadcast(&proxy->changed);
	pthread_mutex_unlock(&proxy->lock);
	free(link);
	return NULL;
}

/* Gives the connection a place. Returns false if the proxy is cut or stopped. */
static bool link_place(struct link *link)
{
	struct proxy *proxy = link->proxy;
	bool wanted;

	pthread_mutex_lock(&proxy->lock);
	while (link->index < PROXY_CONNECTIONS_MAX && proxy->connections[link->index].client >= 0)
		link->index++;
	wanted = !proxy->stop && !proxy->cut && link->index < PROXY_CONNECTIONS_MAX &&
		 link->server >= 0;
	if (wanted) {
		proxy->connections[link->index].client = link->client;
		proxy->connections[link->index].server = link->server;
		proxy->open++;
	}
	pthread_mutex_unlock(&proxy->lock);
	return wanted;
}

static void link_start(struct proxy *proxy, int client)
{
	struct link *link = calloc(1, sizeof(*link));
	pthread_t thread;

	if (!link)
		support_failed("calloc");
	link->proxy = proxy;
	link->client = client;
	link->server = socket_connect(proxy->target);
	if (!link_place(link)) {
		close(client);
		if (link->server >= 0)
			close(link->server);
		free(link);
		return;
	}
	if (pthread_create(&thread, NULL, link_serve, link))
		support_failed("pthread_create");
	pthread_detach(thread);
}

static void *listen_serve(void *argument)
{
	struct proxy *proxy = argument;
	int client;

	while ((client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		link_start(proxy, client);
	return NULL;
}

void proxy_start(struct proxy *proxy, int target)
{
	memset(proxy, 0, sizeof(*proxy));
	proxy->target = target;
	for (size_t i = 0; i < PROXY_CONNECTIONS_MAX; i++)
		proxy->connections[i].client = -1;
	pthread_mutex_init(&proxy->lock, NULL);
	pthread_cond_init(&proxy->changed, NULL);
	proxy->listener = socket_listen(&proxy->port);
	snprintf(proxy->url, sizeof(proxy->url), "redis://127.0.0.1:%d", proxy->port);
	if (pthread_create(&proxy->thread, NULL, listen_serve, proxy))
		support_failed("pthread_create");
}

/* The caller holds the lock. */
static void break_connections(struct proxy *proxy)
{
	for (size_t i = 0; i < PROXY_CONNECTIONS_MAX; i++) {
		if (proxy->connections[i].client < 0)
			continue;
		shutdown(proxy->connections[i].client, SHUT_RDWR);
		shutdown(proxy->connections[i].server, SHUT_RDWR);
	}
}

void proxy_stop(struct proxy *proxy)
{
	pthread_mutex_lock(&proxy->lock);
	proxy->stop = true;
	pthread_mutex_unlock(&proxy->lock);
	shutdown(proxy->listener, SHUT_RDWR);
	pthread_join(proxy->thread, NULL);
	close(proxy->listener);
	pthread_mutex_lock(&proxy->lock);
	break_connections(proxy);
	while (proxy->open)
		pthread_cond_wait(&proxy->changed, &proxy->lock);
	pthread_mutex_unlock(&proxy->lock);
	pthread_cond_destroy(&proxy->changed);
	pthread_mutex_destroy(&proxy->lock);
}

void proxy_cut(struct proxy *proxy)
{
	pthread_mutex_lock(&proxy->lock);
	proxy->cut = true;
	break_connections(proxy);
	pthread_mutex_unlock(&proxy->lock);
}

void proxy_mend(struct proxy *proxy)
{
	pthread_mutex_lock(&proxy->lock);
	proxy->cut = false;
	pthread_mutex_unlock(&proxy->lock);
}

void proxy_lose_reply(struct proxy *proxy, const char *marker)
{
	pthread_mutex_lock(&proxy->lock);
	snprintf(proxy->marker, sizeof(proxy->marker), "%s", marker);
	pthread_mutex_unlock(&proxy->lock);
}

size_t proxy_lost(struct proxy *proxy)
{
	return locked_read(&proxy->lock, &proxy->lost);
}

void proxy_drip(struct proxy *proxy, long apart_ms)
{
	pthread_mutex_lock(&proxy->lock);
	proxy->drip_ms = apart_ms;
	pthread_mutex_unlock(&proxy->lock);
}
