/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server on loopback that keeps what it was asked and answers as the test says: a thread
 * for each connection, HTTP/1.1 with Content-Length, connections kept.
 */
#ifndef REDIS_SUPPORT_HTTP_SERVER_H
#define REDIS_SUPPORT_HTTP_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_CONNECTIONS_MAX = 2048, HTTP_BODY_KEPT = 256 };

struct http_request {
	char method[8];
	char path[128];
	char key[64];              /* header Tw-Key, cut */
	unsigned attempt;          /* header Tw-Attempt */
	uint64_t token;            /* header Tw-Token */
	char headers[1024];        /* all header lines, cut */
	char body[HTTP_BODY_KEPT]; /* its beginning, with a NUL behind it */
	size_t body_size;
	int64_t at; /* monotonic nanoseconds: when it had come */
};

struct http_answer {
	int status;          /* 200 as it comes */
	const char *headers; /* lines that end with CR LF; NULL: none */
	int64_t delay_ms;    /* before the answer */
	bool hang_up;        /* no answer: the connection ends */
	const char *instead; /* sent for an answer, and the connection ends; NULL: none */
	size_t body_size;    /* zeros; SIZE_MAX: without end, until the other side is gone */
	const char *body;    /* instead of these; NULL: none */
};

/* On a thread of the server. Requests of other connections are answered meanwhile. */
typedef void http_answer_fn(void *context, const struct http_request *request,
			    struct http_answer *answer);

struct http_server {
	/* Constant after the start. */
	int port;
	int listener;
	pthread_t thread;
	http_answer_fn *answer; /* NULL: 200 to all */
	void *context;
	bool keeps; /* requests are kept, not only counted */

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t changed;
	bool stop;
	int connections[HTTP_CONNECTIONS_MAX]; /* descriptors, -1: free */
	size_t open;
	size_t busy; /* requests being answered */
	size_t busiest;
	struct http_request *requests;
	size_t count;
	size_t room;
};

void http_server_start(struct http_server *server, http_answer_fn *answer, void *context);
/* One that counts requests and does not keep them: for benches. */
void http_server_start_counting(struct http_server *server, http_answer_fn *answer, void *context);
void http_server_stop(struct http_server *server);

/* Requests that have come so far. */
size_t http_server_count(struct http_server *server);
/* Those with that key. */
size_t http_server_count_of(struct http_server *server, const char *key);
/* The index-th request with that key (NULL: of all), copied. False: there aren't as many. */
bool http_server_request(struct http_server *server, const char *key, size_t index,
			 struct http_request *request);
/* Most requests that were being answered at a time. */
size_t http_server_busiest(struct http_server *server);

#endif
