/* SPDX-License-Identifier: MIT */
/*
 * A date is read against the response's own Date: no clock of this machine is asked for the time of
 * day.
 */
#include "answer.h"

#include <ctype.h>
#include <stdlib.h>

#include <curl/curl.h>

static const tw_duration retry_after_max = 24 * TW_HOUR;

tw_duration answer_retry_after(const char *text, const char *date)
{
	long long seconds = 0;

	if (isdigit((unsigned char)*text)) {
		seconds = strtoll(text, NULL, 10);
	} else {
		time_t until = curl_getdate(text, NULL);
		time_t now = curl_getdate(date, NULL);

		if (until != -1 && now != -1)
			seconds = (long long)(until - now);
	}
	if (seconds > retry_after_max / TW_SECOND)
		return retry_after_max;
	return seconds > 0 ? seconds * TW_SECOND : 0;
}

tw_duration answer_snooze(const char *text)
{
	long long seconds = isdigit((unsigned char)*text) ? strtoll(text, NULL, 10) : 0;

	return seconds < TW_REDIS_DELAY_MAX / TW_SECOND ? seconds * TW_SECOND : TW_REDIS_DELAY_MAX;
}
