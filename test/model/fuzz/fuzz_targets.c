/* SPDX-License-Identifier: MIT */
/*
 * The input is any texts as the hosts and networks allowed ("+") or denied ("-") for callbacks. The
 * first line is the host to check, and its bytes are an address, too.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "redis/worker/targets.h"

#include "fuzz.h"
#include "lines.h"

static void address_from(const char *text, struct sockaddr_in *four, struct sockaddr_in6 *six)
{
	*four = (struct sockaddr_in){.sin_family = AF_INET};
	*six = (struct sockaddr_in6){.sin6_family = AF_INET6};
	if (inet_pton(AF_INET, text, &four->sin_addr) != 1)
		memcpy(&four->sin_addr, text, strnlen(text, 4));
	if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1)
		memcpy(&six->sin6_addr, text, strnlen(text, 16));
}

static bool allows(const struct targets *targets, enum target_verdict verdict, const void *address)
{
	char text[INET6_ADDRSTRLEN];
	bool allowed = targets_allow_address(targets, verdict, address, text);

	assert(*text && memchr(text, '\0', sizeof(text)));
	return allowed;
}

/* An IPv6 socket's form of it is the same address. */
static void check_addresses(const struct targets *targets, const char *host)
{
	enum target_verdict verdict = targets_judge_host(targets, host);
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	address_from(host, &four, &six);
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(mapped.sin6_addr.s6_addr + 12, &four.sin_addr, 4);
	assert(allows(targets, verdict, &four) == allows(targets, verdict, &mapped));
	(void)allows(targets, verdict, &six);
	/* No host's name allows the address where clouds keep their credentials. */
	inet_pton(AF_INET, "169.254.169.254", &four.sin_addr);
	assert(targets->count || !allows(targets, TARGET_ALLOWED, &four));
}

/* Capitals and a final point do not make it another host. */
static void check_host(const struct targets *targets, const char *host)
{
	enum target_verdict verdict = targets_judge_host(targets, host);
	char other[256];
	size_t size = strlen(host);

	if (!size || size > 253 || host[size - 1] == '.' || verdict == TARGET_BY_ADDRESS)
		return;
	for (size_t i = 0; i < size; i++)
		other[i] = isascii(host[i]) ? (char)toupper(host[i]) : host[i];
	strcpy(other + size, ".");
	assert(targets_judge_host(targets, other) == verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_redis_error error = {0};
	struct tw_redis_worker_options options = {0};
	const char *allow[LINES_MOST];
	const char *deny[LINES_MOST];
	struct targets targets;
	struct lines lines;

	lines_read(&lines, data, size);
	options.allow = allow;
	options.deny = deny;
	for (size_t i = 1; i < lines.count; i++) {
		if (lines.line[i][0] == '+')
			allow[options.allow_count++] = lines.line[i] + 1;
		else if (lines.line[i][0] == '-')
			deny[options.deny_count++] = lines.line[i] + 1;
	}
	if (targets_read(&targets, &options, &error) == TW_OK) {
		check_host(&targets, lines.line[0]);
		check_addresses(&targets, lines.line[0]);
		targets_free(&targets);
	} else {
		assert(*error.text);
	}
	lines_free(&lines);
	return 0;
}
