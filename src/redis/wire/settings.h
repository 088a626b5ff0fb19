/* SPDX-License-Identifier: MIT */
/* settings is the options of tw_redis_open, checked and copied. */
#ifndef REDIS_WIRE_SETTINGS_H
#define REDIS_WIRE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <timingwheel/redis.h>

#include "space.h"

enum { HOST_SIZE = 256, ADDRESSES_MAX = 32 }; /* HOST_SIZE includes the NUL */

struct address {
	char host[HOST_SIZE]; /* the path of a unix socket if the port is 0 */
	int port;
};

/* X(name) of the options' texts, and of those among them that the URL's query may set. */
#define SETTINGS_IN_QUERY(X) \
	X(client_name) X(ca_file) X(certificate_file) X(key_file) X(server_name)
#define SETTINGS_TEXTS(X) \
	X(user) X(password) X(sentinel_user) X(sentinel_password) SETTINGS_IN_QUERY(X)
#define SETTINGS_FIELD(name) char *name;

struct settings {
	struct address addresses[ADDRESSES_MAX]; /* the servers', or the Sentinels' */
	size_t address_count;
	int database;
	bool tls;
	/* Each text may be NULL. */
	SETTINGS_TEXTS(SETTINGS_FIELD)
	char *master;       /* the master's name, for Sentinels */
	struct space space; /* the first handle's */
	tw_duration connect_timeout;
	tw_duration reply_timeout;
	tw_duration patience; /* < 0 means one try */
	bool allow_eviction;
	enum tw_redis_durability durability; /* a set: DISK | REPLICA is BOTH */
	/* These are not read from the options. */
	struct ssl_ctx_st *tls_context;   /* made by tls_context_create() */
	struct bio_method_st *tls_method; /* as tls_context */
	/* Once this descriptor is readable no connection waits for anything: whatever it waits for
	 * counts as not come in time. -1 means none. */
	int stop;
};

/* Reads the options. Returns TW_OK, or TW_INVALID or TW_NO_MEMORY with the error's text, and then
 * nothing is to be freed. */
enum tw_status settings_read(struct settings *settings, const struct tw_redis_options *options,
			     struct tw_redis_error *error);
void settings_free(struct settings *settings);

/* Makes a namespace from its name (NULL means the default) and number of shards (0 means the
 * default). Returns TW_OK, or TW_INVALID with the error's text. */
enum tw_status space_read(struct space *space, const char *name, unsigned shards,
			  struct tw_redis_error *error);

/* Sets the error (may be NULL), and returns its status. */
__attribute__((format(printf, 3, 4))) enum tw_status error_set(struct tw_redis_error *error,
							       enum tw_status status,
							       const char *format, ...);

#endif
