/* SPDX-License-Identifier: MIT */
/*
 * An HTTP server on loopback keeps the requests and answers as the test says. It has a thread for
 * each connection and speaks HTTP/1.1 with Content-Length and persistent connections.
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
	char key[64];              /* header Tw-Key, truncated */
	unsigned attempt;          /* header Tw-Attempt */
	uint64_t token;            /* header Tw-Token */
	char headers[1024];        /* all header lines, truncated */
	char body[HTTP_BODY_KEPT]; /* the first bytes, terminated by a NUL */
	size_t body_size;
	int64_t at; /* when it arrived, in monotonic nanoseconds */
};

struct http_answer {
	int status;          /* by default what the path begins with, or 200 */
	const char *headers; /* lines that end with CR LF, or NULL */
	int64_t delay_ms;    /* before the answer */
	bool hang_up;        /* closes the connection without an answer */
	/* If not NULL, this is sent in place of an answer, and the connection is closed. */
	const char *instead;
	int64_t stall_ms; /* the connection is closed this long after `instead` */
	size_t body_size; /* zeros; SIZE_MAX sends them until the client closes the connection */
	const char *body; /* if not NULL, sent in place of the zeros */
};

/* Sets the answer to a request. Runs on a thread of the server, at the same time as others. */
typedef void http_answer_fn(void *context, const struct http_request *request,
			    struct http_answer *answer);

struct http_server {
	/* Constant after the start */
	int port;
	int listener;
	pthread_t thread;
	http_answer_fn *answer; /* NULL changes no answer */
	void *context;
	bool keeps; /* requests are kept, not only counted */

	pthread_mutex_t lock; /* guards the fields below */
	pthread_cond_t changed;
	bool stop;
	int connections[HTTP_CONNECTIONS_MAX]; /* descriptors, or -1 */
	size_t open;
	size_t busy; /* requests being answered */
	size_t busiest;
	struct http_request *requests;
	size_t count;
	size_t room;
};

void http_server_start(struct http_server *server, http_answer_fn *answer, void *context);
/* Starts a server that counts requests and does not keep them, for benches. */
void http_server_start_counting(struct http_server *server, http_answer_fn *answer, void *context);
void http_server_stop(struct http_server *server);

/* Returns the number of requests so far. */
size_t http_server_count(struct http_server *server);
/* Returns the number of requests with that key. */
size_t http_server_count_of(struct http_server *server, const char *key);
/* Copies the index-th request with that key (NULL means any). Returns false if there are fewer. */
bool http_server_request(struct http_server *server, const char *key, size_t index,
			 struct http_request *request);
/* Returns the greatest number of requests that were being answered at a time. */
size_t http_server_busiest(struct http_server *server);

#endif
