/* SPDX-License-Identifier: MIT */
/* The options of tw_redis_open, looked through and copied. */
#ifndef TIMINGWHEEL_REDIS_SETTINGS_H
#define TIMINGWHEEL_REDIS_SETTINGS_H

#include <stdbool.h>

#include <timingwheel/redis.h>

enum { HOST_SIZE = 256 }; /* with the NUL */

struct settings {
	char host[HOST_SIZE];
	int port;
	int database;
	bool tls;
	char *user;     /* NULL: none */
	char *password; /* NULL: no login */
	char name_space[TW_REDIS_NAMESPACE_MAX + 1];
	unsigned shards;
	tw_duration connect_timeout;
	tw_duration reply_timeout;
	tw_duration patience; /* negative: try once */
	bool allow_eviction;
};

/* TW_OK; TW_INVALID and TW_NO_MEMORY, with the error's text; then nothing is to be freed. */
enum tw_status settings_read(struct settings *settings, const struct tw_redis_options *options,
			     struct tw_redis_error *error);
void settings_free(struct settings *settings);

/* Sets the error (may be NULL), and answers its status. */
__attribute__((format(printf, 3, 4))) enum tw_status error_set(struct tw_redis_error *error,
							       enum tw_status status,
							       const char *format, ...);

#endif
