/* SPDX-License-Identifier: MIT */
/*
 * targets is the two lists of patterns that allow and deny the targets of callbacks. The host of a
 * URL is judged before anything is sent, and each address before it is connected to. The lists are
 * constant, so any thread may read them.
 */
#ifndef REDIS_WORKER_TARGETS_H
#define REDIS_WORKER_TARGETS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include <timingwheel/redis.h>

struct target;

struct targets {
	struct target *list;
	size_t count;
	bool any_allowed; /* a target that no pattern matches is denied */
};

enum target_verdict {
	TARGET_BY_ADDRESS, /* no pattern matches the host, so its address decides */
	TARGET_ALLOWED,    /* at every address, except guarded ones */
	TARGET_DENIED
};

/*
 * Reads the lists of the options, which it copies.
 *
 * Returns:
 *   TW_OK         targets_free() frees *targets
 *   TW_INVALID    a list is too long, or the pattern that *error names is none
 *   TW_NO_MEMORY  nothing is to be freed
 */
enum tw_status targets_read(struct targets *targets, const struct tw_redis_worker_options *options,
			    struct tw_redis_error *error);
void targets_free(struct targets *targets);

/* Judges a URL's host in ASCII: a name, an IPv4 address, or an IPv6 address in brackets. */
enum target_verdict targets_judge_host(const struct targets *targets, const char *host);
/* Returns whether a host of the verdict `host` may be connected to at the address. Writes the
 * address to `text`. */
bool targets_allow_address(const struct targets *targets, enum target_verdict host,
			   const struct sockaddr *address, char text[INET6_ADDRSTRLEN]);

#endif
