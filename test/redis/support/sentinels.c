/* SPDX-License-Identifier: MIT */
#include "support/sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/wait.h"

enum { TRIES = 6000 }; /* Each try takes 10 ms. */

/* Returns the value of a field in [name, value, name, value, ...], or "" if it is missing. */
static const char *field_of(const redisReply *reply, const char *field)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (!strcmp(reply->element[i]->str, field))
			return reply->element[i + 1]->str;
	return "";
}

static bool names_master(struct redis_server *sentinel, int port)
{
	redisReply *reply = redis_server_ask(sentinel, "SENTINEL MASTER main");
	bool names = atoi(field_of(reply, "port")) == port &&
		     !strcmp(field_of(reply, "flags"), "master") &&
		     atoi(field_of(reply, "num-slaves")) == 1 &&
		     atoi(field_of(reply, "num-other-sentinels")) == SENTINELS - 1;

	freeReplyObject(reply);
	return names;
}

static bool knows_replica(struct redis_server *sentinel, int port)
{
	redisReply *reply = redis_server_ask(sentinel, "SENTINEL SLAVES main");
	bool knows = reply->elements == 1 && !strcmp(field_of(reply->element[0], "flags"), "slave");

	freeReplyObject(reply);
	return knows;
}

static void await(struct sentinels *sentinels, bool (*is_so)(struct redis_server *, int), int port,
		  const char *command)
{
	for (int tries = 0; tries < TRIES; tries++) {
		int count = 0;

		for (int i = 0; i < SENTINELS; i++)
			count += is_so(&sentinels->all[i], port);
		if (count == SENTINELS)
			return;
		wait_for(10 * TW_MILLISECOND);
	}
	fprintf(stderr, "the Sentinels do not agree, with %d as the master\n", port);
	for (int i = 0; i < SENTINELS; i++)
		redis_server_print_state(&sentinels->all[i], command);
	exit(1);
}

void sentinels_await_master(struct sentinels *sentinels, int port)
{
	await(sentinels, names_master, port, "INFO sentinel");
}

void sentinels_await_replica(struct sentinels *sentinels)
{
	await(sentinels, knows_replica, 0, "INFO sentinel");
}

void sentinels_start(struct sentinels *sentinels, int master_port)
{
	const struct redis_server_options options = {.sentinel_of = master_port};
	struct redis_server *all = sentinels->all;

	for (int i = 0; i < SENTINELS; i++)
		redis_server_start(&all[i], &options);
	sentinels_await_master(sentinels, master_port);
	sentinels_await_replica(sentinels);
	snprintf(sentinels->url, sizeof(sentinels->url),
		 "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/main", all[0].port,
		 all[1].port, all[2].port);
}

void sentinels_set_patience(struct sentinels *sentinels, int ms)
{
	for (int i = 0; i < SENTINELS; i++)
		redis_server_number(&sentinels->all[i],
				    "SENTINEL SET main down-after-milliseconds %d", ms);
}

void sentinels_stop(struct sentinels *sentinels)
{
	for (int i = 0; i < SENTINELS; i++)
		redis_server_stop(&sentinels->all[i]);
}
