/* SPDX-License-Identifier: MIT */
/* Stands between a client and Redis on loopback, and does to the connection what networks do. */
#ifndef REDIS_SUPPORT_PROXY_H
#define REDIS_SUPPORT_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { PROXY_CONNECTIONS_MAX = 256 };

struct proxy {
	/* Constant after the start. */
	int port;
	char url[64];
	int target;
	int listener;
	pthread_t thread;

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t changed;
	bool stop;
	bool cut;
	char marker[64]; /* "": no reply is to be lost */
	size_t lost;     /* replies lost so far */
	long drip_ms;    /* between a reply's bytes, each of which comes alone; 0: whole */
	struct {
		int client; /* -1: free */
		int server;
	} connections[PROXY_CONNECTIONS_MAX];
	size_t open;
};

/* Forwards to 127.0.0.1:target. */
void proxy_start(struct proxy *proxy, int target);
void proxy_stop(struct proxy *proxy);

/* Breaks all connections, and takes no new ones until it is mended. */
void proxy_cut(struct proxy *proxy);
void proxy_mend(struct proxy *proxy);

/* The next request in which the marker stands reaches Redis, its reply is lost, and the connection
 * breaks. Once. */
void proxy_lose_reply(struct proxy *proxy, const char *marker);
/* From now on replies come a byte at a time, so far apart; 0: whole. */
void proxy_drip(struct proxy *proxy, long apart_ms);
/* How many were lost. */
size_t proxy_lost(struct proxy *proxy);

#endif
