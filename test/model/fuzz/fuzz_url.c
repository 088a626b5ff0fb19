/* SPDX-License-Identifier: MIT */
/*
 * The input is any text as the URL of a Redis, and as options beside it, a line each: it is refused
 * with a message, or its values lie within their limits.
 */
#include <assert.h>
#include <string.h>

#include "redis/wire/settings.h"

#include "fuzz.h"
#include "lines.h"

enum { LINE_URL, LINE_NAME_SPACE, LINE_CLIENT_NAME, LINE_USER, LINE_PASSWORD, LINE_SERVER_NAME };

static const char *given(const char *line)
{
	return *line ? line : NULL;
}

static void check_settings(const struct settings *settings)
{
	assert(settings->address_count >= 1 && settings->address_count <= ADDRESSES_MAX);
	for (size_t i = 0; i < settings->address_count; i++) {
		const struct address *address = &settings->addresses[i];

		assert(*address->host && memchr(address->host, '\0', HOST_SIZE));
		assert(address->port >= 0 && address->port <= 65535);
	}
	assert(settings->database >= 0 && settings->database <= 65535);
	assert(settings->connect_timeout > 0 && settings->reply_timeout > 0);
	assert(settings->password || !settings->user);
	assert(!settings->master || *settings->master);
	assert(*settings->space.name && settings->space.shards <= TW_REDIS_SHARDS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_redis_error error = {0};
	struct tw_redis_options options;
	struct settings settings;
	struct lines lines;

	lines_read(&lines, data, size);
	options = (struct tw_redis_options){
		.url = lines.line[LINE_URL],
		.name_space = given(lines.line[LINE_NAME_SPACE]),
		.client_name = given(lines.line[LINE_CLIENT_NAME]),
		.user = given(lines.line[LINE_USER]),
		.password = given(lines.line[LINE_PASSWORD]),
		.server_name = given(lines.line[LINE_SERVER_NAME]),
	};
	if (settings_read(&settings, &options, &error) == TW_OK) {
		check_settings(&settings);
		settings_free(&settings);
	} else {
		assert(*error.text && error.status != TW_OK);
	}
	lines_free(&lines);
	return 0;
}
