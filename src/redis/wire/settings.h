/* SPDX-License-Identifier: MIT */
/* The options of tw_redis_open, looked through and copied. */
#ifndef REDIS_WIRE_SETTINGS_H
#define REDIS_WIRE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "space.h"

enum { HOST_SIZE = 256, ADDRESSES_MAX = 32 }; /* HOST_SIZE: with the NUL */

struct address {
	char host[HOST_SIZE]; /* with port 0 the path of a unix socket */
	int port;
};

struct settings {
	struct address addresses[ADDRESSES_MAX]; /* of servers, or of Sentinels */
	size_t address_count;
	int database;
	bool tls;
	/* Each NULL: none. */
	char *user;
	char *password;
	char *master; /* the name that the Sentinels at the addresses know */
	char *sentinel_user;
	char *sentinel_password;
	char *client_name;
	char *ca_file;
	char *certificate_file;
	char *key_file;
	char *server_name;
	struct space space; /* of tw_redis_open */
	tw_duration connect_timeout;
	tw_duration reply_timeout;
	tw_duration patience; /* negative: try once */
	bool allow_eviction;
	struct ssl_ctx_st
		*tls_context; /* made by tls_context_create(); not read from the options */
};

/* TW_OK; TW_INVALID and TW_NO_MEMORY, with the error's text; then nothing is to be freed. */
enum tw_status settings_read(struct settings *settings, const struct tw_redis_options *options,
			     struct tw_redis_error *error);
void settings_free(struct settings *settings);

/* A namespace by its name (NULL: the default) and number of shards (0: the default). TW_OK;
 * TW_INVALID, with the error's text. */
enum tw_status space_read(struct space *space, const char *name, unsigned shards,
			  struct tw_redis_error *error);

/* Sets the error (may be NULL), and returns its status. */
__attribute__((format(printf, 3, 4))) enum tw_status error_set(struct tw_redis_error *error,
							       enum tw_status status,
							       const char *format, ...);

#endif
