/* SPDX-License-Identifier: MIT */
/* What a callback's response asks for by its headers; texts that are none of these ask for 0. */
#ifndef REDIS_WORKER_ANSWER_H
#define REDIS_WORKER_ANSWER_H

#include <timingwheel/redis.h>

/* Retry-After, in seconds or as a date that is read against `date`, the response's own; a day at
 * most. */
tw_duration answer_retry_after(const char *text, const char *date);
/* Tw-Snooze, in seconds; TW_REDIS_DELAY_MAX at most. */
tw_duration answer_snooze(const char *text);

#endif
