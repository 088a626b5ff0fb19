/* SPDX-License-Identifier: MIT */
/*
 * targets.c is the reader and the judge of these patterns.
 *
 * Invariants:
 *  - The most specific pattern decides: of hosts the longest, of networks the narrowest. A host
 *    "a.b" is longer than the ending "*.b", which is kept as ".b".
 *  - Denied patterns follow allowed ones in the list. Of two that are alike, the later decides.
 *  - An address is 16 bytes. IPv4 is ::ffff:a.b.c.d, and a network is of either kind, or of both
 *    ("*").
 *
 * An IPv6 address that a gateway turns into an IPv4 address has two forms. It is judged in both:
 * one denial denies it, otherwise one permission allows it.
 */
#include "targets.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "redis/wire/settings.h"

enum { ADDRESS_SIZE = 16, IPV4_AT = 12, IPV4_SIZE = 4, IPV4_BITS = 96, NAME_MAX_SIZE = 253 };

enum target_kind { KIND_HOST, KIND_ENDING, KIND_IPV4, KIND_IPV6, KIND_ALL };

struct target {
	bool allowed;
	enum target_kind kind;
	char name[NAME_MAX_SIZE + 2]; /* the host's, or ""; an ending begins with its point */
	size_t size;
	unsigned char network[ADDRESS_SIZE];
	unsigned bits; /* the length of the network's prefix in the 16 bytes */
};

static const unsigned char ipv4_start[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

/* Clouds give credentials to any program that asks here. Only networks within these allow it. */
static const struct target guarded_networks[] = {
	{.kind = KIND_IPV4, .network = {[10] = 0xff, 0xff, 169, 254}, .bits = 112}, /* link-local */
	{.kind = KIND_IPV6, .network = {0xfe, 0x80}, .bits = 10},                   /* link-local */
	{.kind = KIND_IPV6, .network = {0xfd, 0x00, 0x0e, 0xc2}, .bits = 32},       /* AWS */
	/* Google, Alibaba, Azure, Oracle */
	{.kind = KIND_IPV6, .network = {0xfd, 0x20, 0x00, 0xce, [14] = 2, 0x54}, .bits = 128},
	{.kind = KIND_IPV4, .network = {[10] = 0xff, 0xff, 100, 100, 100, 200}, .bits = 128},
	{.kind = KIND_IPV4, .network = {[10] = 0xff, 0xff, 168, 63, 129, 16}, .bits = 128},
	{.kind = KIND_IPV4, .network = {[10] = 0xff, 0xff, 192, 0, 0, 192}, .bits = 128},
};

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

/* Reads "10.0.0.0/8", "fd00::/8", or an address. Returns false for other patterns. */
static bool network_read(struct target *target, const char *pattern)
{
	char text[INET6_ADDRSTRLEN + 4];
	char *slash;
	char *end;
	unsigned long bits;
	unsigned first; /* the bit of the 16 bytes that the text's prefix counts from */

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

/* Reads "shop.example" or "*.shop.example". Names whose last label has digits alone are none. */
static bool host_read(struct target *target, const char *pattern)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	bool ending = !strncmp(pattern, "*.", 2);
	const char *name = ending ? pattern + 2 : pattern;
	const char *last = strrchr(name, '.');

	last = last ? last + 1 : name;
	target->kind = ending ? KIND_ENDING : KIND_HOST;
	target->size = (size_t)snprintf(target->name, sizeof(target->name), "%s", pattern + ending);
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

/* Appends the patterns of one list. */
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
	/* "shop.example." and "shop.example" are one name. */
	size -= size && host[size - 1] == '.';
	for (size_t i = 0; i < targets->count; i++) {
		const struct target *target = &targets->list[i];

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

/* Returns the narrowest network that contains the address, of two the later one, or NULL. */
static const struct target *network_find(const struct target *list, size_t count,
					 const unsigned char address[ADDRESS_SIZE])
{
	const struct target *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (network_fits(&list[i], address) && (!found || list[i].bits >= found->bits))
			found = &list[i];
	return found;
}

/* Replaces the address of all zeros, by which the system means this machine, by loopback. */
static void form_complete(unsigned char form[ADDRESS_SIZE])
{
	static const unsigned char zeros[ADDRESS_SIZE];
	size_t start = is_ipv4(form) ? IPV4_AT : 0;

	if (memcmp(form + start, zeros, ADDRESS_SIZE - start))
		return;
	form[start] = start ? 127 : 0;
	form[ADDRESS_SIZE - 1] = 1;
}

/* Writes the IPv4 address that the IPv6 one contains. Returns false if it contains none. */
static bool embedded_find(const unsigned char address[ADDRESS_SIZE],
			  unsigned char found[ADDRESS_SIZE])
{
	static const struct {
		unsigned char start[IPV4_AT];
		size_t size; /* the prefix's, in bytes */
		size_t at;
	} carriers[] = {
		{{0x00, 0x64, 0xff, 0x9b}, 12, 12},      /* NAT64, 64:ff9b::/96 */
		{{0x00, 0x64, 0xff, 0x9b, 0, 1}, 6, 12}, /* NAT64 of a site, 64:ff9b:1::/48 */
		{{0x20, 0x02}, 2, 2},                    /* 6to4, 2002::/16 */
		{{[8] = 0xff, 0xff}, 12, 12},            /* translated, ::ffff:0:a.b.c.d */
		{{0}, 12, 12},                           /* compatible, ::a.b.c.d */
	};

	memcpy(found, ipv4_start, IPV4_AT);
	for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++) {
		if (memcmp(address, carriers[i].start, carriers[i].size))
			continue;
		memcpy(found + IPV4_AT, address + carriers[i].at, IPV4_SIZE);
		/* ::1 is no address of 0.0.0.0/8. */
		return found[IPV4_AT];
	}
	return false;
}

/* Writes the forms of the address. Returns their number, 0 if it is neither IPv4 nor IPv6. */
static size_t forms_write(const struct sockaddr *from, unsigned char forms[2][ADDRESS_SIZE])
{
	size_t count = 1;

	memcpy(forms[0], ipv4_start, IPV4_AT);
	if (from->sa_family == AF_INET)
		memcpy(forms[0] + IPV4_AT,
		       &((const struct sockaddr_in *)(const void *)from)->sin_addr, IPV4_SIZE);
	else if (from->sa_family == AF_INET6)
		memcpy(forms[0], &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
		       ADDRESS_SIZE);
	else
		return 0;
	if (!is_ipv4(forms[0]) && embedded_find(forms[0], forms[1]))
		count = 2;
	for (size_t i = 0; i < count; i++)
		form_complete(forms[i]);
	return count;
}

static void form_show(const unsigned char form[ADDRESS_SIZE], char text[INET6_ADDRSTRLEN])
{
	bool is_v4 = is_ipv4(form);

	inet_ntop(is_v4 ? AF_INET : AF_INET6, form + (is_v4 ? IPV4_AT : 0), text, INET6_ADDRSTRLEN);
}

/* Judges one form of an address for a host of the verdict `host`. TARGET_BY_ADDRESS means that no
 * pattern matches. */
static enum target_verdict form_judge(const struct targets *targets, enum target_verdict host,
				      const unsigned char form[ADDRESS_SIZE])
{
	const struct target *found = network_find(targets->list, targets->count, form);
	const struct target *guarded =
		network_find(guarded_networks, sizeof(guarded_networks) / sizeof(*found), form);
	enum target_verdict verdict = TARGET_BY_ADDRESS;

	if (found)
		verdict = found->allowed ? TARGET_ALLOWED : TARGET_DENIED;
	if (guarded)
		return found && found->bits >= guarded->bits ? verdict : TARGET_DENIED;
	return host == TARGET_BY_ADDRESS ? verdict : host;
}

bool targets_allow_address(const struct targets *targets, enum target_verdict host,
			   const struct sockaddr *from, char text[INET6_ADDRSTRLEN])
{
	unsigned char forms[2][ADDRESS_SIZE];
	size_t count = forms_write(from, forms);
	bool allowed = count && !targets->any_allowed;

	strcpy(text, "?");
	if (count)
		form_show(forms[0], text);
	for (size_t i = 0; i < count; i++) {
		enum target_verdict verdict = form_judge(targets, host, forms[i]);

		if (verdict == TARGET_DENIED)
			return false;
		allowed = allowed || verdict == TARGET_ALLOWED;
	}
	return allowed;
}
