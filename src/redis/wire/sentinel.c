/* SPDX-License-Identifier: MIT */
/*
 * sentinel.c asks Sentinels. No connection to one is kept, because one is asked only to connect to
 * the master, and any one will do. A Sentinel that is behind names a former master; that server
 * says that it is a replica, or does not answer, and the Sentinels are asked again later.
 */
#include "sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

/* Reads [host, port]. */
static bool address_read(const redisReply *reply, struct address *address)
{
	const redisReply *host;
	int port;

	if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[1]->type != REDIS_REPLY_STRING)
		return false;
	host = reply->element[0];
	port = atoi(reply->element[1]->str);
	if (host->len >= HOST_SIZE || port <= 0 || port > 65535)
		return false;
	snprintf(address->host, HOST_SIZE, "%s", host->str);
	address->port = port;
	return true;
}

/* Reads the master's address. The reply is nil if the Sentinel knows no such master. */
static enum tw_status reply_read(const redisReply *reply, const struct settings *settings,
				 struct address *master, struct tw_redis_error *error)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		enum tw_status status = server_error_status(reply->str);

		/* A server that is no Sentinel does not know the output. */
		return error_set(error, status == TW_REDIS_FAILED ? TW_REDIS_UNFIT : status,
				 "the Sentinel replied: %s", reply->str);
	}
	if (reply->type != REDIS_REPLY_ARRAY)
		return error_set(error, TW_REDIS_UNFIT, "the Sentinels know no master named %.100s",
				 settings->master);
	return address_read(reply, master)
		       ? TW_OK
		       : error_set(error, TW_REDIS_UNFIT, "the Sentinel's reply has no address");
}

static enum tw_status sentinel_ask(const struct settings *settings, const struct address *sentinel,
				   struct address *master, struct tw_redis_error *error)
{
	const char *words[] = {"SENTINEL", "get-master-addr-by-name", settings->master};
	struct connection connection;
	enum tw_status status = connection_open(&connection, settings, sentinel, true, error);
	redisReply *reply = NULL;

	if (status == TW_OK) {
		reply = connection_ask(&connection, 3, words, error);
		status = reply ? reply_read(reply, settings, master, error) : error->status;
	}
	freeReplyObject(reply);
	connection_close(&connection);
	return status;
}

enum tw_status sentinel_find_master(const struct settings *settings, struct address *master,
				    struct tw_redis_error *error)
{
	error->status = TW_REDIS_UNREACHABLE;
	for (size_t i = 0; i < settings->address_count; i++) {
		struct tw_redis_error own;
		enum tw_status status =
			sentinel_ask(settings, &settings->addresses[i], master, &own);

		if (status == TW_OK)
			return TW_OK;
		/* The error of a Sentinel that answered says more. */
		if (status == TW_REDIS_UNREACHABLE && error->status != status)
			continue;
		*error = own;
		error->status = status;
	}
	return error->status;
}
