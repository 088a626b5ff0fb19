/* SPDX-License-Identifier: MIT */
/*
 * An eval is a script call for one shard. It is begun, given arguments, and run by the router
 * (router.h). Then it has its reply (status TW_OK) or a status that says why not. A zeroed struct
 * is fresh; a used one may be begun again and keeps its memory.
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

struct caller;
struct node;

enum eval_stage {
	EVAL_PAUSED, /* its caller sends it again at its time */
	EVAL_QUEUED, /* at its node, or its leader has taken it */
	EVAL_ENDED
};

struct eval {
	const struct script *script;
	const struct space *space; /* the caller's, until the eval has ended */
	unsigned shard;
	struct buffer arguments; /* as they go over the wire */
	size_t count;
	size_t answers; /* the number its reply must have; 0 if it may have any */
	/* jobs.c has the last batch that is named there, and the next place in it; and where the
	 * number of the last runs stands that are done, and that number. */
	uint64_t batch;
	unsigned place;
	size_t done_at;
	unsigned done;

	/* This is the result. */
	enum tw_status status;
	redisReply *reply; /* NULL unless the status is TW_OK; freed with the eval */

	/* The caller sets these before the router gets the eval. */
	tw_duration deadline;         /* monotonic; the end of its retries */
	struct tw_redis_error *error; /* takes what went wrong */

	/* The router alone uses the rest. Its lock guards it, except that the leader alone uses an
	 * eval that it has taken, apart from its stage and its node. */
	enum eval_stage stage;
	struct caller *caller;
	struct node *node; /* its server; NULL if that is the shard's */
	bool asking;       /* the slot is moving to that node, which needs ASKING */
	bool one_key;      /* declare one key alone */
	bool whole;        /* it carries the text of its script */
	bool sent;
	unsigned redirects;
	tw_duration retry_at; /* monotonic; the next try is not before */
	tw_duration pause;    /* the last one before a try */
	struct eval *next;    /* in the node's queue, or in a list for router_post() */
	bool away;            /* at last its node could not be reached, or was not ready to serve */
};

void eval_begin(struct eval *eval, const struct script *script, const struct space *space,
		unsigned shard);
void eval_argument(struct eval *eval, const void *data, size_t size);
void eval_text(struct eval *eval, const char *text);
void eval_number(struct eval *eval, int64_t number);

/* Writes the request as it is sent now. `flagged` means that the server knows flags of scripts. */
void eval_write(const struct eval *eval, bool flagged, struct buffer *output);

/* Returns the number that the reply is, or has at `index`, or `otherwise` if there is none. */
int64_t eval_integer(const struct eval *eval, size_t index, int64_t otherwise);

void eval_free(struct eval *eval);

#endif
