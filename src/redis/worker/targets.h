/* SPDX-License-Identifier: MIT */
/*
 * Where a worker's callbacks may go: patterns of hosts and networks, allowed or denied. The host of
 * a URL is asked about before anything is sent; where that settles nothing the address is, once the
 * name has been looked up and before it is connected to. Constant after reading: any thread.
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
	bool any_allowed; /* then what no pattern fits is denied */
};

enum target_verdict {
	TARGET_BY_ADDRESS, /* no pattern fits the host: its address says */
	TARGET_ALLOWED,    /* whatever its address, but for link-local ones */
	TARGET_DENIED
};

/* TW_OK; TW_INVALID: one is no pattern, and the error tells which; TW_NO_MEMORY. Else nothing is to
 * be freed. */
enum tw_status targets_read(struct targets *targets, const struct tw_redis_worker_options *options,
			    struct tw_redis_error *error);
void targets_free(struct targets *targets);

/* Of a host as it stands in a URL, decoded: a name, an IPv4 address, or an IPv6 one in brackets. */
enum target_verdict targets_judge_host(const struct targets *targets, const char *host);
/* Whether the address may be connected to, for a host of that verdict; its text is written. */
bool targets_allow_address(const struct targets *targets, enum target_verdict host,
			   const struct sockaddr *address, char text[INET6_ADDRSTRLEN]);

#endif
