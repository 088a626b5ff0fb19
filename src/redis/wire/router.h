/* SPDX-License-Identifier: MIT */
/*
 * The router runs evals on the nodes of their shards, many in one round trip. It handles servers
 * that have lost their scripts, are away, are not ready, or name another node. One thread may use
 * it at a time.
 */
#ifndef REDIS_WIRE_ROUTER_H
#define REDIS_WIRE_ROUTER_H

#include <poll.h>
#include <stddef.h>

#include "eval.h"
#include "node_map.h"
#include "settings.h"

struct router {
	const struct settings *settings;
	struct node_map map;
	struct buffer output;        /* the request being written */
	struct eval map_eval;        /* CLUSTER SLOTS, while it is EVAL_SENT */
	struct tw_redis_error error; /* the last error */
};

/* Connects to the first server, and reads its map. The statuses are those of tw_redis_open. */
enum tw_status router_open(struct router *router, const struct settings *settings);
void router_close(struct router *router);

/*
 * Sends the evals of the list, linked by their `next` (NULL if there are none), and reads the
 * replies that come until `until`, also those owed from earlier passes. Without evals it ends with
 * the first replies that come. Each eval then has ended, or will be tried again, or is owed its
 * reply, or waits for a node to be connected (EVAL_CONNECTS). Returns whether any was sent, or a
 * node has paid all that it owed, so that more may be sent.
 */
bool router_pass(struct router *router, struct eval *evals, tw_duration until);
/* Returns how long a pass with these evals that begins now may last: until all has been answered,
 * or, where there are several nodes, or it sends what a node may wait for (its disk, a replica),
 * 2 ms. So a slow or silent node delays those of others by no more, and a wait delays no eval that
 * changes nothing. */
tw_duration router_pass_end(const struct router *router, const struct eval *evals);
/* Goes on with an eval whose node has been tried: it will be sent, or has failed. */
void router_settle(struct router *router, struct eval *eval);
/* Returns whether a reply is owed. Then another pass is needed, even without evals. */
bool router_is_owed(const struct router *router);
/* Returns whether the next pass may send to the slot's node: it owes no reply, and is not being
 * connected. */
bool router_is_free(const struct router *router, unsigned slot);
/* Fills in what poll() waits for, for all nodes that owe replies, at most NODES_MAX. Returns their
 * number. *until becomes the time when the first reply is overdue, if that is earlier. */
nfds_t router_descriptors(const struct router *router, struct pollfd *descriptors,
			  tw_duration *until);

#endif
