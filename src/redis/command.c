/* SPDX-License-Identifier: MIT */
/*
 * The arguments are kept as they go over the wire. What stands before them, the script's name and
 * the keys, is written when the command is sent, since it may have to be sent as a whole text
 * instead.
 */
#include "command.h"

#include <stdlib.h>
#include <string.h>

void command_begin(struct command *command, const struct script *script, const struct space *space,
		   unsigned shard)
{
	struct buffer arguments = command->arguments;

	freeReplyObject(command->reply);
	buffer_clear(&arguments);
	*command = (struct command){
		.script = script, .space = space, .shard = shard, .arguments = arguments};
}

void command_argument(struct command *command, const void *data, size_t size)
{
	buffer_bulk(&command->arguments, data, size);
	command->count++;
}

void command_text(struct command *command, const char *text)
{
	command_argument(command, text, strlen(text));
}

void command_number(struct command *command, int64_t number)
{
	buffer_bulk_number(&command->arguments, number);
	command->count++;
}

void command_hint(struct command *command)
{
	command_text(command, command->space->channel);
	command_number(command, command->shard);
}

void command_write(const struct command *command, bool flagged, struct buffer *request)
{
	const struct script *script = command->script;
	bool full = flagged && script->at_full_memory;
	unsigned keys = command->one_key ? 1 : script->keys;

	buffer_array(request, 3 + keys + command->count);
	buffer_bulk_text(request, command->whole ? "EVAL" : "EVALSHA");
	if (command->whole)
		buffer_bulk_of_two(request, full ? SCRIPT_AT_FULL_MEMORY : "", script->text);
	else
		buffer_bulk_text(request, full ? script->full_digest : script->digest);
	buffer_bulk_number(request, keys);
	space_write_keys(command->space, command->shard, keys, request);
	buffer_append(request, command->arguments.data, command->arguments.size);
	if (command->arguments.failed)
		request->failed = true;
}

int64_t command_integer(const struct command *command, size_t index, int64_t otherwise)
{
	const redisReply *reply = command->reply;

	if (reply && reply->type == REDIS_REPLY_ARRAY)
		reply = index < reply->elements ? reply->element[index] : NULL;
	return reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : otherwise;
}

struct command **command_queue(struct command *command, tw_duration now, struct command **last,
			       tw_duration *next)
{
	if (command->stage != COMMAND_WAITING)
		return last;
	if (command->retry_at > now) {
		*next = command->retry_at < *next ? command->retry_at : *next;
		return last;
	}
	*last = command;
	command->next = NULL;
	return &command->next;
}

void command_end(struct command *command, enum tw_status status, redisReply *reply)
{
	command->stage = COMMAND_ENDED;
	command->status = status;
	command->reply = reply;
}

void command_free(struct command *command)
{
	freeReplyObject(command->reply);
	buffer_free(&command->arguments);
	memset(command, 0, sizeof(*command));
}
