/* SPDX-License-Identifier: MIT */
/*
 * The URL is taken apart by hand: redis[s]://[[user]:password@]host[:port][/database]. Errors name
 * the part that is wrong and never repeat the URL, which may hold a password.
 */
#include "settings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_PORT = 6379, DEFAULT_SHARDS = 64, DATABASE_MAX = 65535 };

enum tw_status error_set(struct tw_redis_error *error, enum tw_status status, const char *format,
			 ...)
{
	va_list arguments;

	if (!error)
		return status;
	error->status = status;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	/* One line, whatever a server says. */
	for (char *at = error->text; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = ' ';
	return status;
}

/* Passwords don't stay in memory that others may get. */
static void secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

/* A copy of the part with its %XX replaced; NULL without memory, and if one is no byte or a NUL. */
static char *part_decode(const char *part, size_t size)
{
	char *text = strndup(part, size);
	char *end = text;

	if (!text)
		return NULL;
	for (const char *at = text; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (byte == '%') {
			if (!isxdigit((unsigned char)at[1]) || !isxdigit((unsigned char)at[2]) ||
			    sscanf(at + 1, "%2hhx", &byte) != 1 || !byte) {
				secret_free(text);
				return NULL;
			}
			at += 2;
		}
		*end++ = (char)byte;
	}
	explicit_bzero(end, (size_t)(text + size + 1 - end));
	return text;
}

/* A decimal number up to `max` that fills the part; -1 if it isn't one. */
static int number_read(const char *part, size_t size, int max)
{
	int number;

	if (!size || size > 6 || strspn(part, "0123456789") < size)
		return -1;
	number = atoi(part);
	return number <= max ? number : -1;
}

/* [user]:password@ ; what stands before a missing colon is the user. */
static bool login_read(struct settings *settings, const char *login, size_t size)
{
	const char *colon = memchr(login, ':', size);
	size_t user_size = colon ? (size_t)(colon - login) : size;

	settings->user = part_decode(login, user_size);
	if (colon)
		settings->password = part_decode(colon + 1, size - user_size - 1);
	return settings->user && (settings->password || !colon);
}

/* host[:port], an IPv6 address in brackets. */
static bool host_read(struct settings *settings, const char *host, size_t size)
{
	const char *bracket = size && *host == '[' ? memchr(host, ']', size) : NULL;
	const char *end = bracket ? bracket + 1 : memchr(host, ':', size);
	size_t host_size = end ? (size_t)(end - host) : size;
	size_t rest = size - host_size;

	settings->port = DEFAULT_PORT;
	if (rest && (*end != ':' || (settings->port = number_read(end + 1, rest - 1, 65535)) <= 0))
		return false;
	if (bracket) {
		host++;
		host_size -= 2;
	}
	if (!host_size) {
		host = "127.0.0.1";
		host_size = strlen(host);
	}
	return snprintf(settings->host, HOST_SIZE, "%.*s", (int)host_size, host) < HOST_SIZE;
}

static enum tw_status url_read(struct settings *settings, const char *url,
			       struct tw_redis_error *error)
{
	const char *rest;
	const char *slash;
	const char *at;

	settings->tls = !strncmp(url, "rediss://", 9);
	if (!settings->tls && strncmp(url, "redis://", 8))
		return error_set(error, TW_INVALID, "the URL does not begin with redis://");
	rest = url + (settings->tls ? 9 : 8);
	/* The last @ before the path: a password may have one that is not escaped. */
	slash = rest + strcspn(rest, "/?#");
	at = memrchr(rest, '@', (size_t)(slash - rest));
	if (at && !login_read(settings, rest, (size_t)(at - rest)))
		return error_set(error, TW_INVALID, "the URL's user or password is malformed");
	rest = at ? at + 1 : rest;
	if (!host_read(settings, rest, (size_t)(slash - rest)))
		return error_set(error, TW_INVALID, "the URL's host or port is malformed");
	if (*slash && slash[1]) {
		settings->database = number_read(slash + 1, strlen(slash + 1), DATABASE_MAX);
		if (*slash != '/' || settings->database < 0)
			return error_set(error, TW_INVALID, "the URL's database is malformed");
	}
	return TW_OK;
}

static bool name_space_read(struct settings *settings, const char *name)
{
	size_t size =
		strspn(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-");

	if (!size || name[size] || size > TW_REDIS_NAMESPACE_MAX)
		return false;
	memcpy(settings->name_space, name, size + 1);
	return true;
}

/* What an option says, NULL: nothing, goes before what the URL says. */
static bool override(char **text, const char *option)
{
	if (!option)
		return true;
	secret_free(*text);
	*text = strdup(option);
	return *text;
}

static enum tw_status options_read(struct settings *settings,
				   const struct tw_redis_options *options,
				   struct tw_redis_error *error)
{
	enum tw_status status;

	if (options->connect_timeout < 0 || options->reply_timeout < 0)
		return error_set(error, TW_INVALID, "a time limit is negative");
	if (options->shards > TW_REDIS_SHARDS_MAX)
		return error_set(error, TW_INVALID, "more than %d shards", TW_REDIS_SHARDS_MAX);
	settings->shards = options->shards ? options->shards : DEFAULT_SHARDS;
	settings->connect_timeout =
		options->connect_timeout ? options->connect_timeout : 2 * TW_SECOND;
	settings->reply_timeout = options->reply_timeout ? options->reply_timeout : 5 * TW_SECOND;
	settings->patience = options->patience ? options->patience : 5 * TW_SECOND;
	settings->allow_eviction = options->allow_eviction;
	if (!name_space_read(settings, options->name_space ? options->name_space : "default"))
		return error_set(error, TW_INVALID,
				 "a namespace has 1 to %d letters, digits, '.', '_' or '-'",
				 TW_REDIS_NAMESPACE_MAX);
	status = url_read(settings, options->url ? options->url : "redis://127.0.0.1", error);
	if (status != TW_OK)
		return status;
	if (!override(&settings->user, options->user) ||
	    !override(&settings->password, options->password))
		return error_set(error, TW_NO_MEMORY, "out of memory");
	if (settings->user && !*settings->user) {
		free(settings->user);
		settings->user = NULL;
	}
	return settings->user && !settings->password
		       ? error_set(error, TW_INVALID, "a user without a password")
		       : TW_OK;
}

enum tw_status settings_read(struct settings *settings, const struct tw_redis_options *options,
			     struct tw_redis_error *error)
{
	static const struct tw_redis_options defaults;
	enum tw_status status;

	memset(settings, 0, sizeof(*settings));
	status = options_read(settings, options ? options : &defaults, error);
	if (status != TW_OK)
		settings_free(settings);
	return status;
}

void settings_free(struct settings *settings)
{
	free(settings->user);
	secret_free(settings->password);
	settings->user = settings->password = NULL;
}
