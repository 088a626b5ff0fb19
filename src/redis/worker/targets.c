/* SPDX-License-Identifier: MIT */
/*
 * What fits most closely decides: of hosts the longest pattern, a name before "*.name"; of networks
 * the narrowest. Hosts go before networks. Where the same is allowed and denied, it is denied: what
 * is denied stands behind what is allowed, and of those that fit alike the last decides.
 *
 * Link-local addresses, where clouds keep their credentials, are denied but for networks in them
 * that are allowed: a wider network or a host's name does not allow them.
 *
 * An address is kept as 16 bytes. IPv4 lies at ::ffff:0:0/96, so that an IPv6 socket to an IPv4
 * address is judged as that address; a network is of one of the two, or of both ("*").
 */
#include "targets.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "redis/wire/settings.h"

enum { ADDRESS_SIZE = 16, IPV4_AT = 12, IPV4_BITS = 96, NAME_MAX_SIZE = 253 };

enum target_kind { KIND_HOST, KIND_ENDING, KIND_IPV4, KIND_IPV6, KIND_ALL };

struct target {
	bool allowed;
	enum target_kind kind;
	const char *name; /* of a host; an ending begins with its point */
	size_t size;
	unsigned char network[ADDRESS_SIZE];
	unsigned bits; /* of the 16 bytes, as far as they count */
};

static const unsigned char ipv4_start[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

static bool is_ipv4(const unsigned char address[ADDRESS_SIZE])
{
	return !memcmp(address, ipv4_start, IPV4_AT);
}

/* Reads an address without brackets. */
static bool address_read(const char *text, unsigned char address[ADDRESS_SIZE])
{
	memcpy(address, ipv4_start, IPV4_AT);
	return inet_pton(AF_INET, text, address + IPV4_AT) == 1 ||
	       inet_pton(AF_INET6, text, address) == 1;
}

/* "10.0.0.0/8", "fd00::/8", or an address alone. */
static bool network_read(struct target *target, const char *pattern)
{
	char text[INET6_ADDRSTRLEN + 4];
	char *slash;
	char *end;
	unsigned long bits;
	unsigned first; /* the bit of the 16 bytes where its text begins */

	if (snprintf(text, sizeof(text), "%s", pattern) >= (int)sizeof(text))
		return false;
	slash = strchr(text, '/');
	if (slash)
		*slash = '\0';
	if (!address_read(text, target->network))
		return false;
	first = strchr(text, ':') ? 0 : IPV4_BITS;
	bits = slash ? strtoul(slash + 1, &end, 10) : 128 - first;
	if (slash && (slash[1] < '0' || slash[1] > '9' || *end || bits > 128 - first))
		return false;
	target->bits = first + (unsigned)bits;
	target->kind =
		is_ipv4(target->network) && target->bits >= IPV4_BITS ? KIND_IPV4 : KIND_IPV6;
	return true;
}

/* "shop.example" or "*.shop.example"; a last label of digits is for addresses. */
static bool host_read(struct target *target, const char *pattern)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	bool ending = !strncmp(pattern, "*.", 2);
	const char *name = ending ? pattern + 2 : pattern;
	const char *last = strrchr(name, '.');

	last = last ? last + 1 : name;
	target->kind = ending ? KIND_ENDING : KIND_HOST;
	target->name = ending ? pattern + 1 : pattern;
	target->size = strlen(target->name);
	return *name && *name != '.' && !strstr(name, "..") && strlen(name) <= NAME_MAX_SIZE &&
	       !name[strspn(name, letters)] && last[strspn(last, "0123456789")];
}

static bool target_read(struct target *target, const char *pattern, bool allowed)
{
	target->allowed = allowed;
	target->kind = KIND_ALL;
	if (!pattern)
		return false;
	return !strcmp(pattern, "*") || network_read(target, pattern) || host_read(target, pattern);
}

/* Reads one of the lists. The names stay where they are. */
static enum tw_status list_read(struct targets *targets, const char *const *patterns, size_t count,
				bool allowed, struct tw_redis_error *error)
{
	for (size_t i = 0; i < count; i++) {
		struct target *target = &targets->list[targets->count];

		if (!target_read(target, patterns[i], allowed))
			return error_set(error, TW_INVALID,
					 "not a host, a network or an address: %.100s",
					 patterns[i] ? patterns[i] : "(null)");
		targets->any_allowed |= allowed;
		targets->count++;
	}
	return TW_OK;
}

/* The caller's patterns go; the names of hosts are kept behind the list. */
static enum tw_status names_copy(struct targets *targets, struct tw_redis_error *error)
{
	size_t size = 0;
	struct target *list;
	char *at;

	for (size_t i = 0; i < targets->count; i++)
		size += targets->list[i].size;
	list = realloc(targets->list, (targets->count + 1) * sizeof(*list) + size);
	if (!list)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	targets->list = list;
	at = (char *)(list + targets->count + 1);
	for (size_t i = 0; i < targets->count; i++) {
		if (!list[i].size)
			continue;
		memcpy(at, list[i].name, list[i].size);
		list[i].name = at;
		at += list[i].size;
	}
	return TW_OK;
}

enum tw_status targets_read(struct targets *targets, const struct tw_redis_worker_options *options,
			    struct tw_redis_error *error)
{
	enum tw_status status;

	memset(targets, 0, sizeof(*targets));
	if (options->allow_count > TW_REDIS_TARGETS_MAX ||
	    options->deny_count > TW_REDIS_TARGETS_MAX ||
	    (options->allow_count && !options->allow) || (options->deny_count && !options->deny))
		return error_set(error, TW_INVALID, "allow and deny have at most %d patterns each",
				 TW_REDIS_TARGETS_MAX);
	targets->list =
		calloc(options->allow_count + options->deny_count + 1, sizeof(*targets->list));
	if (!targets->list)
		return error_set(error, TW_NO_MEMORY, "out of memory");
	status = list_read(targets, options->allow, options->allow_count, true, error);
	if (status == TW_OK)
		status = list_read(targets, options->deny, options->deny_count, false, error);
	if (status == TW_OK)
		status = names_copy(targets, error);
	if (status != TW_OK)
		targets_free(targets);
	return status;
}

void targets_free(struct targets *targets)
{
	free(targets->list);
	memset(targets, 0, sizeof(*targets));
}

static bool host_fits(const struct target *target, const char *host, size_t size)
{
	if (target->kind == KIND_HOST)
		return target->size == size && !strncasecmp(target->name, host, size);
	return target->kind == KIND_ENDING && target->size < size &&
	       !strncasecmp(target->name, host + size - target->size, target->size);
}

enum target_verdict targets_judge_host(const struct targets *targets, const char *host)
{
	enum target_verdict verdict = TARGET_BY_ADDRESS;
	unsigned char address[ADDRESS_SIZE];
	size_t size = strlen(host);
	size_t longest = 0;

	if (*host == '[' || address_read(host, address))
		return TARGET_BY_ADDRESS;
	/* "shop.example." is the same name. */
	size -= size && host[size - 1] == '.';
	for (size_t i = 0; i < targets->count; i++) {
		const struct target *target = &targets->list[i];

		/* An ending is shorter than a host that it fits. */
		if (!host_fits(target, host, size) || target->size < longest)
			continue;
		longest = target->size;
		verdict = target->allowed ? TARGET_ALLOWED : TARGET_DENIED;
	}
	return verdict;
}

static bool network_fits(const struct target *target, const unsigned char address[ADDRESS_SIZE])
{
	unsigned bytes = target->bits / 8;
	unsigned rest = target->bits % 8;

	if (target->kind == KIND_ALL)
		return true;
	if (target->kind != (is_ipv4(address) ? KIND_IPV4 : KIND_IPV6))
		return false;
	return !memcmp(target->network, address, bytes) &&
	       (!rest || !((target->network[bytes] ^ address[bytes]) >> (8 - rest)));
}

/* The narrowest that the address lies in, of two the later one; NULL: none. */
static const struct target *network_find(const struct target *list, size_t count,
					 const unsigned char address[ADDRESS_SIZE])
{
	const struct target *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (network_fits(&list[i], address) && (!found || list[i].bits >= found->bits))
			found = &list[i];
	return found;
}

/* As the 16 bytes. To the system the address of all zeros is this machine. False: of another kind.
 * */
static bool address_take(const struct sockaddr *from, unsigned char address[ADDRESS_SIZE])
{
	static const unsigned char nobody[ADDRESS_SIZE];

	memcpy(address, ipv4_start, IPV4_AT);
	if (from->sa_family == AF_INET)
		memcpy(address + IPV4_AT,
		       &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
	else if (from->sa_family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
		       ADDRESS_SIZE);
	else
		return false;
	if (!memcmp(address, nobody, ADDRESS_SIZE))
		address[15] = 1; /* ::1 */
	if (is_ipv4(address) && !memcmp(address + IPV4_AT, nobody, 4)) {
		address[IPV4_AT] = 127;
		address[15] = 1;
	}
	return true;
}

bool targets_allow_address(const struct targets *targets, enum target_verdict host,
			   const struct sockaddr *from, char text[INET6_ADDRSTRLEN])
{
	static const struct target link_local[] = {
		{.kind = KIND_IPV4,
		 .network = {[10] = 0xff, 0xff, 169, 254},
		 .bits = IPV4_BITS + 16},
		{.kind = KIND_IPV6, .network = {0xfe, 0x80}, .bits = 10}};
	unsigned char address[ADDRESS_SIZE];
	const struct target *local;
	const struct target *found;

	strcpy(text, "?");
	if (!address_take(from, address))
		return false;
	if (is_ipv4(address))
		inet_ntop(AF_INET, address + IPV4_AT, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	local = network_find(link_local, 2, address);
	found = network_find(targets->list, targets->count, address);
	if (local)
		return found && found->bits >= local->bits && found->allowed;
	if (host != TARGET_BY_ADDRESS)
		return host == TARGET_ALLOWED;
	return found ? found->allowed : !targets->any_allowed;
}
