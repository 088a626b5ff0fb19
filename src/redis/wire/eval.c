/* SPDX-License-Identifier: MIT */
/*
 * eval.c is the making of requests. The arguments are kept as they go over the wire. The script's
 * name and the keys before them are written when the eval is sent, because the script's text may
 * have to replace its name.
 */
#include "eval.h"

#include <stdlib.h>
#include <string.h>

void eval_begin(struct eval *eval, const struct script *script, const struct space *space,
		unsigned shard)
{
	struct buffer arguments = eval->arguments;

	freeReplyObject(eval->reply);
	buffer_clear(&arguments);
	*eval = (struct eval){
		.script = script, .space = space, .shard = shard, .arguments = arguments};
}

void eval_argument(struct eval *eval, const void *data, size_t size)
{
	buffer_bulk(&eval->arguments, data, size);
	eval->count++;
}

void eval_text(struct eval *eval, const char *text)
{
	eval_argument(eval, text, strlen(text));
}

void eval_number(struct eval *eval, int64_t number)
{
	buffer_bulk_number(&eval->arguments, number);
	eval->count++;
}

void eval_write(const struct eval *eval, bool flagged, struct buffer *output)
{
	const struct script *script = eval->script;
	bool full = flagged && script->at_full_memory;
	unsigned keys = eval->one_key ? 1 : script->keys;

	if (eval->shard == SHARD_NONE && keys > OWN_KEYS)
		keys = OWN_KEYS;
	buffer_array(output, 3 + keys + eval->count + (script->hints ? 2 : 0));
	buffer_bulk_text(output, eval->whole ? "EVAL" : "EVALSHA");
	if (eval->whole)
		buffer_bulk_of_two(output, full ? SCRIPT_AT_FULL_MEMORY : "", script->text);
	else
		buffer_bulk_text(output, full ? script->full_digest : script->digest);
	buffer_bulk_number(output, keys);
	space_write_keys(eval->space, eval->shard, keys, output);
	buffer_append(output, eval->arguments.data, eval->arguments.size);
	if (script->hints) {
		buffer_bulk_text(output, eval->space->channel);
		buffer_bulk_number(output, eval->shard);
	}
	if (eval->arguments.failed)
		output->failed = true;
}

int64_t eval_integer(const struct eval *eval, size_t index, int64_t otherwise)
{
	const redisReply *reply = eval->reply;

	if (!reply)
		return otherwise;
	if (reply->type == REDIS_REPLY_ARRAY)
		reply = reply->element[index];
	return reply->integer;
}

void eval_free(struct eval *eval)
{
	freeReplyObject(eval->reply);
	buffer_free(&eval->arguments);
	memset(eval, 0, sizeof(*eval));
}
