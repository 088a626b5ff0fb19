/* SPDX-License-Identifier: MIT */
/*
 * settings.c reads the options and the URL. A URL is one of
 *
 *   redis[s]://[[user]:password@]host[:port][,host[:port]...][/database][?name=value&...]
 *   redis[s]+sentinel://[[user]:password@]host[:port][,...]/master[/database][?...]
 *   redis+unix://[[user]:password@]/path[?database=N&...]
 *
 * Errors name the part that is wrong and never repeat the URL, which may hold a password.
 */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { DEFAULT_PORT = 6379, SENTINEL_PORT = 26379, DATABASE_MAX = 65535 };
enum { UNIX_PATH_MAX = 107, NAME_SIZE = 32 };
static const tw_duration timeout_max = 24 * TW_HOUR;

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
	/* The text stays one line, whatever a server says. */
	for (char *at = error->text; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = ' ';
	return status;
}

/* Frees a password, whose memory it overwrites. */
static void secret_free(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

/* Returns the byte of two hexadecimal digits, or 0 if they are none. */
static unsigned char byte_read(const char *digits)
{
	unsigned byte = 0;

	if (isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1]))
		sscanf(digits, "%2x", &byte);
	return (unsigned char)byte;
}

/* Returns a copy of the part with its %XX replaced, or NULL without memory, or if one of these is
 * no byte or a NUL. */
static char *part_decode(const char *part, size_t size)
{
	char *text = strndup(part, size);
	char *end = text;

	if (!text)
		return NULL;
	for (const char *at = text; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (byte == '%') {
			byte = byte_read(at + 1);
			if (!byte) {
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

/* Returns the decimal number up to `max` that is the whole part, or -1. */
static int number_read(const char *part, size_t size, int max)
{
	int number;

	if (!size || size > 6 || strspn(part, "0123456789") < size)
		return -1;
	number = atoi(part);
	return number <= max ? number : -1;
}

/* Reads [user]:password@. Without a colon it is the user. */
static bool login_read(struct settings *settings, const char *login, size_t size)
{
	const char *colon = memchr(login, ':', size);
	size_t user_size = colon ? (size_t)(colon - login) : size;

	settings->user = part_decode(login, user_size);
	if (colon)
		settings->password = part_decode(colon + 1, size - user_size - 1);
	return settings->user && (settings->password || !colon);
}

/* Reads host[:port]. An IPv6 address is in brackets. */
static bool host_read(struct address *address, const char *host, size_t size, int default_port)
{
	const char *bracket = size && *host == '[' ? memchr(host, ']', size) : NULL;
	const char *end = bracket ? bracket + 1 : memchr(host, ':', size);
	size_t host_size = end ? (size_t)(end - host) : size;
	size_t rest = size - host_size;

	address->port = default_port;
	if (rest && (*end != ':' || (address->port = number_read(end + 1, rest - 1, 65535)) <= 0))
		return false;
	if (bracket) {
		host++;
		host_size -= 2;
	}
	if (!host_size) {
		host = "127.0.0.1";
		host_size = strlen(host);
	}
	return snprintf(address->host, HOST_SIZE, "%.*s", (int)host_size, host) < HOST_SIZE;
}

/* Reads one address, or several with commas between them. */
static bool hosts_read(struct settings *settings, const char *hosts, size_t size)
{
	int default_port = settings->master ? SENTINEL_PORT : DEFAULT_PORT;

	for (size_t part;; hosts += part + 1, size -= part + 1) {
		const char *comma = memchr(hosts, ',', size);

		part = comma ? (size_t)(comma - hosts) : size;
		if (settings->address_count == ADDRESSES_MAX ||
		    !host_read(&settings->addresses[settings->address_count++], hosts, part,
			       default_port))
			return false;
		if (!comma)
			return true;
	}
}

static bool socket_path_read(struct settings *settings, const char *path, size_t size)
{
	char *decoded = part_decode(path, size);
	struct address *address = &settings->addresses[settings->address_count++];
	bool fine = decoded && *decoded && strlen(decoded) <= UNIX_PATH_MAX;

	if (fine)
		snprintf(address->host, HOST_SIZE, "%s", decoded);
	free(decoded);
	return fine;
}

/* Reads seconds, which may have a fraction. */
static bool timeout_read(const char *text, tw_duration *timeout)
{
	size_t whole = strspn(text, "0123456789");
	int seconds = number_read(text, whole, (int)(timeout_max / TW_SECOND));
	tw_duration unit = TW_SECOND;

	if (seconds < 0 || (text[whole] && text[whole] != '.'))
		return false;
	*timeout = seconds * TW_SECOND;
	for (text += whole + !!text[whole]; isdigit((unsigned char)*text); text++)
		*timeout += (*text - '0') * (unit /= 10);
	return !*text && *timeout > 0;
}

static bool database_read(struct settings *settings, const char *text, size_t size)
{
	settings->database = number_read(text, size, DATABASE_MAX);
	return settings->database >= 0;
}

static bool durability_read(struct settings *settings, const char *text)
{
	static const char *const names[] = {
		[TW_REDIS_DURABLE_SERVER] = "server",
		[TW_REDIS_DURABLE_DISK] = "disk",
		[TW_REDIS_DURABLE_REPLICA] = "replica",
		[TW_REDIS_DURABLE_BOTH] = "both",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		settings->durability = (enum tw_redis_durability)i;
		return true;
	}
	return false;
}

/* Takes over the value. Returns false if there is no such setting, or it may not have that
 * value. */
static bool setting_take(struct settings *settings, const char *name, char *value)
{
	char **place = NULL;
	bool fine = false;

#define PLACE(text)               \
	if (!strcmp(name, #text)) \
		place = &settings->text;
	SETTINGS_IN_QUERY(PLACE)
	if (place) {
		free(*place);
		*place = value;
		return *value;
	}
	if (!strcmp(name, "timeout")) {
		fine = timeout_read(value, &settings->reply_timeout);
		settings->connect_timeout = settings->reply_timeout;
	} else if (!strcmp(name, "database")) {
		fine = database_read(settings, value, strlen(value));
	} else if (!strcmp(name, "durability")) {
		fine = durability_read(settings, value);
	}
	free(value);
	return fine;
}

/* Reads name=value&name=value. */
static bool query_read(struct settings *settings, const char *query)
{
	while (*query) {
		size_t size = strcspn(query, "&");
		const char *equals = memchr(query, '=', size);
		char name[NAME_SIZE];
		char *value;

		if (!equals)
			return false;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - query), query);
		value = part_decode(equals + 1, (size_t)(query + size - equals - 1));
		if (!value || !setting_take(settings, name, value))
			return false;
		query += size + (query[size] == '&');
	}
	return true;
}

/* Reads the URL's scheme. Returns the rest of the URL, or NULL if the scheme is none of ours. */
static const char *scheme_read(struct settings *settings, const char *url, bool *local,
			       bool *sentinel)
{
	static const struct {
		const char *text;
		bool tls;
		bool local;
		bool sentinel;
	} schemes[] = {{"redis://", false, false, false},
		       {"rediss://", true, false, false},
		       {"redis+unix://", false, true, false},
		       {"redis+sentinel://", false, false, true},
		       {"rediss+sentinel://", true, false, true}};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t size = strlen(schemes[i].text);

		if (strncmp(url, schemes[i].text, size))
			continue;
		settings->tls = schemes[i].tls;
		*local = schemes[i].local;
		*sentinel = schemes[i].sentinel;
		return url + size;
	}
	return NULL;
}

/* Reads /master and /database, between the hosts and the query. */
static bool path_read(struct settings *settings, const char *path, size_t size, bool sentinel)
{
	const char *slash;

	if (sentinel) {
		slash = size ? memchr(path + 1, '/', size - 1) : NULL;
		settings->master = part_decode(path + !!size,
					       (slash ? (size_t)(slash - path) : size) - !!size);
		if (!settings->master || !*settings->master)
			return false;
		size -= slash ? (size_t)(slash - path) : size;
		path = slash;
	}
	return size <= 1 || database_read(settings, path + 1, size - 1);
}

static enum tw_status url_read(struct settings *settings, const char *url,
			       struct tw_redis_error *error)
{
	bool local = false;
	bool sentinel = false;
	const char *rest = scheme_read(settings, url, &local, &sentinel);
	const char *slash;
	const char *end;
	const char *at;

	if (!rest)
		return error_set(
			error, TW_INVALID,
			"the URL's scheme is unknown: use redis:// or rediss://, for example");
	/* The last @ before the path counts, because a password may have one that is not
	 * escaped. */
	slash = rest + strcspn(rest, "/?#");
	at = memrchr(rest, '@', (size_t)(slash - rest));
	if (at && !login_read(settings, rest, (size_t)(at - rest)))
		return error_set(error, TW_INVALID, "the URL's user or password is malformed");
	rest = at ? at + 1 : rest;
	end = slash + strcspn(slash, "?#");
	if (local && (rest != slash || !socket_path_read(settings, slash, (size_t)(end - slash))))
		return error_set(
			error, TW_INVALID,
			"the URL's path is malformed: it must begin with / and have at most %d "
			"bytes",
			UNIX_PATH_MAX);
	if (!local && !path_read(settings, slash, (size_t)(end - slash), sentinel))
		return error_set(error, TW_INVALID, "the URL's %s is malformed",
				 sentinel ? "master or database" : "database");
	if (!local && !hosts_read(settings, rest, (size_t)(slash - rest)))
		return error_set(
			error, TW_INVALID,
			"the URL's host or port is malformed: at most %d hosts of at most %d "
			"bytes each",
			ADDRESSES_MAX, HOST_SIZE - 1);
	if (*end && (*end != '?' || !query_read(settings, end + 1)))
		return error_set(error, TW_INVALID, "the URL's settings are malformed");
	return TW_OK;
}

static bool name_is_fit(const char *name)
{
	size_t size =
		strspn(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-");

	return size && !name[size] && size <= TW_REDIS_NAMESPACE_MAX;
}

enum tw_status space_read(struct space *space, const char *name, unsigned shards,
			  struct tw_redis_error *error)
{
	if (shards > TW_REDIS_SHARDS_MAX)
		return error_set(error, TW_INVALID, "a namespace has at most %d shards",
				 TW_REDIS_SHARDS_MAX);
	if (name && !name_is_fit(name))
		return error_set(
			error, TW_INVALID,
			"a namespace's name must have 1 to %d letters, digits, '.', '_' or '-'",
			TW_REDIS_NAMESPACE_MAX);
	space_init(space, name ? name : "default", shards);
	return TW_OK;
}

/* Replaces a setting of the URL by an option, if that is not NULL. */
static bool override(char **text, const char *option)
{
	if (!option)
		return true;
	secret_free(*text);
	*text = strdup(option);
	return *text;
}

/* Completes a timeout: an option precedes the URL, and the URL precedes the default. */
static void timeout_default(tw_duration *timeout, tw_duration option, tw_duration otherwise)
{
	if (option || !*timeout)
		*timeout = option ? option : otherwise;
}

/* Returns whether Redis accepts the name of a client. */
static bool client_name_is_fit(const char *name)
{
	for (; *name; name++)
		if (*name <= ' ' || *name > '~')
			return false;
	return true;
}

enum { SERVER_NAME_MOST = 255 };

static enum tw_status options_read(struct settings *settings,
				   const struct tw_redis_options *options,
				   struct tw_redis_error *error)
{
	enum tw_status status;
	bool fine = true;

	if (options->connect_timeout < 0 || options->reply_timeout < 0)
		return error_set(error, TW_INVALID, "a timeout is negative");
	if ((unsigned)options->durability > TW_REDIS_DURABLE_BOTH)
		return error_set(error, TW_INVALID, "the durability is none of the enumerators");
	settings->patience = options->patience ? options->patience : 5 * TW_SECOND;
	settings->allow_eviction = options->allow_eviction;
	status = space_read(&settings->space, options->name_space, options->shards, error);
	if (status != TW_OK)
		return status;
	errno = 0;
	status = url_read(settings, options->url ? options->url : "redis://127.0.0.1", error);
	/* A part may be well formed where memory was missing for its copy. */
	if (status != TW_OK && errno == ENOMEM)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	if (status != TW_OK)
		return status;
	if (options->durability)
		settings->durability = options->durability;
	timeout_default(&settings->connect_timeout, options->connect_timeout, 2 * TW_SECOND);
	timeout_default(&settings->reply_timeout, options->reply_timeout, 5 * TW_SECOND);
#define OVERRIDE(name) fine &= override(&settings->name, options->name);
	SETTINGS_TEXTS(OVERRIDE)
	if (!fine)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	if (settings->server_name &&
	    (!*settings->server_name || strlen(settings->server_name) > SERVER_NAME_MOST))
		return error_set(error, TW_INVALID, "server_name must have 1 to %d bytes",
				 SERVER_NAME_MOST);
	if (settings->client_name && !client_name_is_fit(settings->client_name))
		return error_set(
			error, TW_INVALID,
			"client_name contains a blank or a character that is not printable");
	if (!settings->certificate_file != !settings->key_file)
		return error_set(error, TW_INVALID,
				 "certificate_file and key_file must be set together");
	if (settings->user && !*settings->user) {
		free(settings->user);
		settings->user = NULL;
	}
	if ((settings->user && !settings->password) ||
	    (settings->sentinel_user && !settings->sentinel_password))
		return error_set(error, TW_INVALID, "a user requires a password");
	return TW_OK;
}

enum tw_status settings_read(struct settings *settings, const struct tw_redis_options *options,
			     struct tw_redis_error *error)
{
	enum tw_status status;

	memset(settings, 0, sizeof(*settings));
	settings->stop = -1;
	if (!reserved_are_0(options->reserved))
		return error_set(error, TW_INVALID, "a reserved field of the options is not 0");
	status = options_read(settings, options, error);
	if (status != TW_OK)
		settings_free(settings);
	return status;
}

void settings_free(struct settings *settings)
{
#define FREE(name) secret_free(settings->name);
	SETTINGS_TEXTS(FREE)
	free(settings->master);
	memset(settings, 0, sizeof(*settings));
}
