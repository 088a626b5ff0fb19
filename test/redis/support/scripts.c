/* SPDX-License-Identifier: MIT */
#include "support/scripts.h"

#include "support/test.h"

enum { SCRIPT_KEYS = 13, ARGUMENTS_MOST = 64, TEXT_MOST = 32000 };
/* These are the shard's keys as in space.c, and the clock's key. */
static const char *const key_names[SCRIPT_KEYS] = {"due",    "body",  "run",  "state",  "dead",
						   "limits", "every", "died", "leases", "queue",
						   "turns",  "busy",  "clock"};

/* Writes the script's text, which reads the test's clock in place of the server's. */
static void text_write(const struct script *script, char text[TEXT_MOST])
{
	static const char server[] = "redis.call('TIME')";
	static const char own[] = "redis.call('HMGET', '{t/0}clock', 's', 'us')";
	const char *at = strstr(script->text, server);

	assert_non_null(at);
	assert_true(strlen(script->text) + sizeof(own) < TEXT_MOST);
	snprintf(text, TEXT_MOST, "%.*s%s%s", (int)(at - script->text), script->text, own,
		 at + strlen(server));
}

redisReply *script_call(redisContext *context, const struct script *script, int count,
			const char *const *arguments)
{
	static char digests[64][41];
	int index = __builtin_ctzll(script->bit);
	const char *words[3 + SCRIPT_KEYS + ARGUMENTS_MOST + 2];
	char keys[SCRIPT_KEYS][16];
	redisReply *reply;
	int used = 0;

	assert_true(count <= ARGUMENTS_MOST);
	if (!*digests[index]) {
		char text[TEXT_MOST];

		text_write(script, text);
		reply = redisCommand(context, "SCRIPT LOAD %s", text);
		assert_int_equal(reply->type, REDIS_REPLY_STRING);
		snprintf(digests[index], sizeof(digests[index]), "%s", reply->str);
		freeReplyObject(reply);
	}
	words[used++] = "EVALSHA";
	words[used++] = digests[index];
	words[used++] = "13";
	for (int i = 0; i < SCRIPT_KEYS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "{t/0}%s", key_names[i]);
		words[used++] = keys[i];
	}
	for (int i = 0; i < count; i++)
		words[used++] = arguments[i];
	if (script->hints) {
		words[used++] = "channel";
		words[used++] = "0";
	}
	reply = redisCommandArgv(context, used, words, NULL);
	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", script->name, reply->str);
	return reply;
}

void script_clock_set(redisContext *context, int64_t now_us)
{
	freeReplyObject(redisCommand(context, "HSET {t/0}clock s %lld us %lld",
				     (long long)(now_us / 1000000), (long long)(now_us % 1000000)));
}
