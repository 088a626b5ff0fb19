/* SPDX-License-Identifier: MIT */
/* A proxy stands between a client and Redis on loopback, and fails as networks do. */
#ifndef REDIS_SUPPORT_PROXY_H
#define REDIS_SUPPORT_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { PROXY_CONNECTIONS_MAX = 256 };

struct proxy {
	/* Constant after the start */
	int port;
	char url[64];
	int target;
	int listener;
	pthread_t thread;

	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	bool stop;
	bool cut;
	char marker[64]; /* "" if no reply is to be lost */
	size_t lost;     /* replies lost so far */
	long drip_ms;    /* the pause before each byte of a reply; 0 sends replies whole */
	struct {
		int client; /* -1 if the link is free */
		int server;
	} connections[PROXY_CONNECTIONS_MAX];
	size_t open;
};

/* Starts a proxy that forwards to 127.0.0.1:target. */
void proxy_start(struct proxy *proxy, int target);
void proxy_stop(struct proxy *proxy);

/* Breaks all connections, and accepts no others until it is mended. */
void proxy_cut(struct proxy *proxy);
void proxy_mend(struct proxy *proxy);

/* Forwards the next request that contains the marker, loses its reply, and breaks the
 * connection. */
void proxy_lose_reply(struct proxy *proxy, const char *marker);
/* Sends replies a byte at a time from now on, with this pause before each; 0 sends them whole. */
void proxy_drip(struct proxy *proxy, long apart_ms);
/* Returns how many replies were lost. */
size_t proxy_lost(struct proxy *proxy);

#endif
