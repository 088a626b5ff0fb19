/* SPDX-License-Identifier: MIT */
#include "dial.h"

/* Makes the request over the new connection, and closes it if that is refused. */
static void request_make(struct dial *dial)
{
	struct attempt *attempt = &dial->attempt;
	redisReply *reply = connection_ask(&attempt->connection, dial->word_count, dial->words,
					   &attempt->error);

	if (!reply)
		attempt->status = attempt->error.status;
	else if (reply->type == REDIS_REPLY_ERROR)
		attempt->status = error_set(&attempt->error, server_error_status(reply->str), "%s",
					    reply->str);
	else if (reply->type != REDIS_REPLY_ARRAY)
		attempt->status = error_set(&attempt->error, TW_REDIS_FAILED,
					    "the reply to %s is no array", dial->words[0]);
	freeReplyObject(reply);
	dial->refused = attempt->status == TW_REDIS_REFUSED;
	if (attempt->status != TW_OK)
		connection_close(&attempt->connection);
}

static void *dial_run(void *argument)
{
	struct dial *dial = argument;

	attempt_make(&dial->attempt, dial->settings);
	if (dial->attempt.status == TW_OK && dial->word_count)
		request_make(dial);
	/* release: publishes the attempt; pairs with the acquire in dial_take() */
	atomic_store_explicit(&dial->made, true, memory_order_release);
	mailbox_ring(dial->mailbox);
	return NULL;
}

void dial_begin(struct dial *dial, const struct settings *settings, const struct address *address,
		int word_count, const char **words, struct mailbox *mailbox)
{
	dial->settings = settings;
	dial->mailbox = mailbox;
	dial->word_count = word_count;
	dial->words = words;
	dial->attempt = (struct attempt){.address = *address};
	dial->refused = false;
	atomic_init(&dial->made, false);
	dial->under_way =
		thread_start(&dial->thread, dial_run, dial, "redis", "connect", NULL) == 0;
	if (dial->under_way)
		return;
	dial->attempt.status = error_set(&dial->attempt.error, TW_REDIS_UNREACHABLE,
					 "a thread could not be started");
	mailbox_ring(mailbox);
}

bool dial_take(struct dial *dial)
{
	if (!dial->under_way)
		return true;
	/* acquire: pairs with the release in dial_run() */
	if (!atomic_load_explicit(&dial->made, memory_order_acquire))
		return false;
	pthread_join(dial->thread.id, NULL);
	dial->under_way = false;
	return true;
}

void dial_end(struct dial *dial)
{
	if (dial->under_way)
		pthread_join(dial->thread.id, NULL);
	dial->under_way = false;
	connection_close(&dial->attempt.connection);
}
