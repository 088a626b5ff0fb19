/* SPDX-License-Identifier: MIT */
/*
 * A script call for one shard: begun, given arguments, run by the router (router.h), and then
 * either its reply is there (status TW_OK) or a status that tells why not. A zeroed struct is
 * fresh; a used one may be begun again and keeps its memory.
 */
#ifndef REDIS_WIRE_EVAL_H
#define REDIS_WIRE_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include <timingwheel/redis.h>

#include "buffer.h"
#include "script.h"
#include "space.h"

struct node;

enum eval_stage {
	EVAL_WAITING,
	EVAL_CONNECTS, /* until the node that it needs has been tried to be connected */
	EVAL_ASKED,    /* sent behind ASKING, whose reply comes first */
	EVAL_SENT,
	EVAL_ENDED
};

struct eval {
	const struct script *script;
	const struct space *space; /* the caller's, until it has ended */
	unsigned shard;
	struct buffer arguments; /* written out */
	size_t count;
	size_t answers; /* how many its reply is to have; 0: any number */

	/* What came of it. */
	enum tw_status status;
	redisReply *reply; /* NULL but with TW_OK; freed with the eval */

	/* The router's. */
	enum eval_stage stage;
	struct node *node;  /* where it was sent, or is to be sent; NULL: where the shard lies */
	struct node *needs; /* to be connected: `node`, or one that can tell where the slot lies */
	bool asking;        /* the slot is on its way to that node: it must be asked for */
	bool one_key;       /* declare one key alone */
	bool one_server;    /* it is about many shards: not for a cluster */
	bool whole;         /* it was sent, or is to be, with the text of its script */
	unsigned redirects;
	tw_duration deadline;         /* monotonic: tried until then */
	tw_duration retry_at;         /* monotonic: not before */
	tw_duration pause;            /* the last, before it was tried again */
	struct eval *next;            /* of those in a pass, then of those sent to the node */
	struct tw_redis_error *error; /* told what went wrong; or NULL */
	bool away; /* in the last pass its node could not be reached, or was not ready to serve */
};

void eval_begin(struct eval *eval, const struct script *script, const struct space *space,
		unsigned shard);
void eval_argument(struct eval *eval, const void *data, size_t size);
void eval_text(struct eval *eval, const char *text);
void eval_number(struct eval *eval, int64_t number);
/* The last ones of scripts that give hints. */
void eval_hint(struct eval *eval);

/* Writes the request as it is to be sent now; `flagged`: the server knows flags of scripts. */
void eval_write(const struct eval *eval, bool flagged, struct buffer *output);

/* The reply's whole number, or the one at `index` in a reply of many; `otherwise` if there is
 * none. */
int64_t eval_integer(const struct eval *eval, size_t index, int64_t otherwise);

/*
 * If it waits: puts it at *last, the end of a list, if it may be tried now; else *next becomes when
 * it may, if that is earlier. Returns the new end of the list.
 */
struct eval **eval_queue(struct eval *eval, tw_duration now, struct eval **last, tw_duration *next);

void eval_end(struct eval *eval, enum tw_status status, redisReply *reply);
void eval_free(struct eval *eval);

#endif
