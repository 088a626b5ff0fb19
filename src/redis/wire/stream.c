/* SPDX-License-Identifier: MIT */
/*
 * stream.c is sockets and TLS. A socket never blocks, so no signal interrupts its calls; ppoll()
 * waits, until the deadline. A stream tries before it waits, because most often there is room to
 * write, and the reply has come.
 */
#include "stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "tls.h"

/* With these a peer that vanishes is noticed within 30 s. */
enum { KEEPALIVE_IDLE = 15, KEEPALIVE_INTERVAL = 5, KEEPALIVE_COUNT = 3 };

static bool stream_break(struct stream *stream, const char *reason)
{
	snprintf(stream->reason, sizeof(stream->reason), "%s", reason);
	return false;
}

/* Waits for the events. Returns false if the deadline or the settings' stop came first. */
static bool stream_wait(const struct stream *stream, short events, tw_duration deadline)
{
	struct pollfd waited[] = {{.fd = stream->descriptor, .events = events},
				  {.fd = stream->settings->stop, .events = POLLIN}};

	for (;;) {
		tw_duration left = deadline - clock_read_real(CLOCK_MONOTONIC);
		struct timespec time = {left / TW_SECOND, left % TW_SECOND};

		if (left <= 0)
			return false;
		if (ppoll(waited, 2, &time, NULL) > 0)
			return !waited[1].revents;
	}
}

/* Clears OpenSSL's errors and errno, so that they are those of the next call. */
static void errors_clear(void)
{
	ERR_clear_error();
	errno = 0;
}

/* Returns the event that a call of OpenSSL waits for, or 0 if it failed and the stream is
 * broken. */
static short tls_waits_for(struct stream *stream, int result)
{
	int failure = SSL_get_error(stream->tls, result);

	if (failure == SSL_ERROR_WANT_READ)
		return POLLIN;
	if (failure == SSL_ERROR_WANT_WRITE)
		return POLLOUT;
	tls_explain(stream->tls, stream->reason, sizeof(stream->reason));
	/* With TLS 1.3 a server refuses after the handshake, and its reason may be lost. */
	if (!stream->answered && tls_lacks_certificate(stream->tls))
		stream_break(stream, "the server requires a client certificate");
	return 0;
}

/* Tries once to write `from`, or to read to `to`; the other one is NULL. Returns the number of
 * bytes, 0 if it has to wait for *events, or -1 if the stream is broken. */
static ssize_t tls_try(struct stream *stream, const char *from, char *to, size_t size,
		       short *events)
{
	size_t done = 0;
	int result;

	errors_clear();
	result = from ? SSL_write_ex(stream->tls, from, size, &done)
		      : SSL_read_ex(stream->tls, to, size, &done);
	stream->answered |= to && result == 1;
	if (result == 1)
		return (ssize_t)done;
	*events = tls_waits_for(stream, result);
	return *events ? 0 : -1;
}

/* These two are the same with or without TLS. */
static ssize_t write_some(struct stream *stream, const char *data, size_t size, short *events)
{
	ssize_t sent;

	if (stream->tls)
		return tls_try(stream, data, NULL, size, events);
	*events = POLLOUT;
	sent = send(stream->descriptor, data, size, MSG_NOSIGNAL);
	if (sent >= 0 || errno == EAGAIN)
		return sent > 0 ? sent : 0;
	stream_break(stream, strerror(errno));
	return -1;
}

static ssize_t read_some(struct stream *stream, char *data, size_t room, short *events)
{
	ssize_t got;

	if (stream->tls)
		return tls_try(stream, NULL, data, room, events);
	*events = POLLIN;
	got = recv(stream->descriptor, data, room, 0);
	if (got > 0 || (got < 0 && errno == EAGAIN))
		return got > 0 ? got : 0;
	stream_break(stream, got ? strerror(errno) : "the server closed the connection");
	return -1;
}

bool stream_write(struct stream *stream, const char *data, size_t size, tw_duration deadline,
		  bool *some)
{
	*some = false;
	while (size) {
		short events;
		ssize_t sent = write_some(stream, data, size, &events);

		if (sent < 0)
			return false;
		*some |= sent > 0;
		data += sent;
		size -= (size_t)sent;
		if (!sent && !stream_wait(stream, events, deadline))
			return stream_break(stream, "the server accepts no data");
	}
	return true;
}

ssize_t stream_read(struct stream *stream, char *data, size_t room, tw_duration deadline)
{
	for (;;) {
		short events;
		ssize_t got = read_some(stream, data, room, &events);

		if (got || !deadline || !stream_wait(stream, events, deadline))
			return got;
	}
}

static void options_set(int descriptor, int family)
{
	const struct {
		int level;
		int option;
		int value;
	} options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
		       {SOL_SOCKET, SO_KEEPALIVE, 1},
		       {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE},
		       {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL},
		       {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT}};

	/* None of these options is needed. */
	for (size_t i = 0; family != AF_UNIX && i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(descriptor, options[i].level, options[i].option, &options[i].value,
				 sizeof(options[i].value));
}

/* Connects a new socket. Returns false with errno if it cannot. */
static bool socket_connect(struct stream *stream, const struct sockaddr *address, socklen_t size,
			   tw_duration deadline)
{
	int descriptor = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int reason = 0;
	socklen_t reason_size = sizeof(reason);

	stream->descriptor = descriptor;
	if (descriptor < 0)
		return false;
	options_set(descriptor, address->sa_family);
	if (connect(descriptor, address, size) == 0)
		return true;
	reason = errno;
	if (reason == EINPROGRESS) {
		if (!stream_wait(stream, POLLOUT, deadline))
			reason = ETIMEDOUT;
		else
			getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &reason, &reason_size);
	}
	if (!reason)
		return true;
	close(descriptor);
	stream->descriptor = -1;
	errno = reason;
	return false;
}

static const struct timespec queue_pause = {.tv_nsec = 5 * TW_MILLISECOND};

static bool unix_connect(struct stream *stream, const char *path, tw_duration deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%.107s", path);
	for (;;) {
		bool fine = socket_connect(stream, (const struct sockaddr *)&address,
					   sizeof(address), deadline);

		/* The server's queue is full, and no event reports room in it. */
		if (fine || errno != EAGAIN || clock_read_real(CLOCK_MONOTONIC) >= deadline)
			return fine;
		nanosleep(&queue_pause, NULL);
	}
}

/* Tries the host's addresses in their order. *reason becomes the error of the last one. */
static bool host_connect(struct stream *stream, const struct address *address, tw_duration deadline,
			 const char **reason)
{
	const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char service[8];
	bool fine = false;
	int left = 0;
	int failed;

	snprintf(service, sizeof(service), "%d", address->port);
	failed = getaddrinfo(address->host, service, &wanted, &found);
	if (failed) {
		*reason = gai_strerror(failed);
		return false;
	}
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		left++;
	errno = ETIMEDOUT;
	for (const struct addrinfo *at = found; at && !fine; at = at->ai_next) {
		tw_duration now = clock_read_real(CLOCK_MONOTONIC);

		/* A silent address leaves time for the others. */
		fine = socket_connect(stream, at->ai_addr, at->ai_addrlen,
				      now + (deadline - now) / left--);
	}
	if (!fine)
		*reason = strerror(errno);
	freeaddrinfo(found);
	return fine;
}

static enum tw_status handshake(struct stream *stream, const struct address *address,
				tw_duration deadline, struct tw_redis_error *error)
{
	short events;

	do {
		int result;

		errors_clear();
		result = SSL_do_handshake(stream->tls);
		if (result == 1)
			return TW_OK;
		events = tls_waits_for(stream, result);
		if (!events)
			return error_set(
				error,
				tls_distrusts(stream->tls) ? TW_REDIS_UNFIT : TW_REDIS_UNREACHABLE,
				"%.100s:%d: TLS: %s", address->host, address->port, stream->reason);
	} while (stream_wait(stream, events, deadline));
	return error_set(error, TW_REDIS_UNREACHABLE,
			 "%.100s:%d: TLS: the handshake timed out: is this a TLS port?",
			 address->host, address->port);
}

struct stream *stream_open(const struct settings *settings, const struct address *address,
			   tw_duration deadline, struct tw_redis_error *error)
{
	struct stream *stream = calloc(1, sizeof(*stream));
	const char *reason = NULL;

	if (!stream) {
		error_set(error, TW_NO_MEMORY, "out of memory");
		return NULL;
	}
	stream->settings = settings;
	stream->descriptor = -1;
	if (!(address->port ? host_connect(stream, address, deadline, &reason)
			    : unix_connect(stream, address->host, deadline))) {
		error_set(error, TW_REDIS_UNREACHABLE, "%.150s:%d: %s", address->host,
			  address->port, reason ? reason : strerror(errno));
		goto failed;
	}
	if (!settings->tls)
		return stream;
	stream->tls = tls_begin(settings, stream->descriptor, address->host);
	if (!stream->tls) {
		error_set(error, TW_NO_MEMORY, "out of memory");
		goto failed;
	}
	if (handshake(stream, address, deadline, error) == TW_OK)
		return stream;
failed:
	stream_close(stream);
	return NULL;
}

void stream_close(struct stream *stream)
{
	if (!stream)
		return;
	SSL_free(stream->tls);
	if (stream->descriptor >= 0)
		close(stream->descriptor);
	free(stream);
}
