/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <string.h>

#include <timingwheel/redis.h>

const char *const state_names[] = {[TW_REDIS_PENDING] = "pending",
				   [TW_REDIS_LEASED] = "leased",
				   [TW_REDIS_WAITING] = "waiting",
				   [TW_REDIS_DEAD] = "dead",
				   NULL};
const char *const missed_names[] = {[TW_REDIS_MISSED_ONE] = "one",
				    [TW_REDIS_MISSED_SKIP] = "skip",
				    [TW_REDIS_MISSED_ALL] = "all",
				    NULL};
const char *const method_names[] = {TW_REDIS_METHOD_NAMES, NULL};
const char *const end_names[] = {
	[TW_REDIS_END_DONE] = "done",         [TW_REDIS_END_RETRIED] = "retry",
	[TW_REDIS_END_DEAD] = "dead",         [TW_REDIS_END_STALE] = "stale",
	[TW_REDIS_END_RELEASED] = "released", [TW_REDIS_END_UNCONFIRMED] = "unconfirmed",
	[TW_REDIS_END_SNOOZED] = "snoozed",   NULL};

bool name_read(const char *name, const char *const *names, unsigned *value)
{
	for (unsigned i = 0; name && names[i]; i++)
		if (!strcmp(name, names[i])) {
			*value = i;
			return true;
		}
	return false;
}
