/* SPDX-License-Identifier: MIT */
/*
 * Runs evals where their shards lie, many in one round trip, and does what is to be done when a
 * server has lost its scripts, is not there, is not ready, or says that the shard lies elsewhere.
 * One thread at a time.
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
	struct buffer output;        /* the one being sent */
	struct eval map_eval;        /* CLUSTER SLOTS, while it is EVAL_SENT */
	struct tw_redis_error error; /* the last that went wrong */
};

/* Connects to the first server, and reads its map. Statuses as tw_redis_open. */
enum tw_status router_open(struct router *router, const struct settings *settings);
void router_close(struct router *router);
/* In a fork's child: the connections are the parent's, and are let go. `torn`: the parent was in a
 * pass; what it was changing is left as it is, sockets and memory. */
void router_renew(struct router *router, bool torn);

/*
 * Sends the evals of the list, linked by their `next` (NULL: none), and reads the replies that
 * come until then, also those to what earlier passes sent. Each eval has ended then, or is to be
 * tried again, or its reply is still owed, or it waits for a node that is to be connected
 * (EVAL_CONNECTS). Returns whether any was sent, or a node has paid all that it owed: then more may
 * be sent.
 */
bool router_pass(struct router *router, struct eval *evals, tw_duration until);
/* Returns how long a pass that begins now may last: until all has been answered, or, where there
 * are several nodes, 2 ms. So a slow or silent node delays those of others by no more. */
tw_duration router_pass_end(const struct router *router);
/* The node that the eval needs has been tried: it is to be sent, or has failed. */
void router_settle(struct router *router, struct eval *eval);
/* Whether a reply is owed: another pass is needed, be it without evals. */
bool router_is_owed(const struct router *router);
/* Returns whether the next pass may send to the slot's node: it owes no reply, and is not being
 * connected. */
bool router_is_free(const struct router *router, unsigned slot);
/* Fills in, for all nodes that owe replies, what poll() waits for, NODES_MAX at most, and returns
 * their number. *until becomes when the first reply is overdue, if that is earlier. */
nfds_t router_descriptors(const struct router *router, struct pollfd *descriptors,
			  tw_duration *until);

#endif
