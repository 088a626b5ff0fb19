/* SPDX-License-Identifier: MIT */
/*
 * The input is any text as a cron expression: it is refused with a position in it, or its times go
 * up. The first byte chooses the zone, the next four the start of the search; the rest is the text.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <timingwheel/cron.h>

#include "fuzz.h"

enum { HEAD_SIZE = 5, TIMES = 20 };

static const char *const zones[] = {NULL, "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"};

static void check_times(const struct tw_cron *cron, int64_t after)
{
	int64_t next;
	int64_t again;

	for (int i = 0; i < TIMES && tw_cron_next(cron, after, &next) == TW_OK; i++) {
		assert(next > after);
		assert(tw_cron_next(cron, next - 1, &again) == TW_OK && again == next);
		after = next;
	}
}

/* Without the system's zone files all times are UTC. */
static const char *zone_choose(uint8_t number)
{
	const char *zone = zones[number % 4];
	struct tw_cron *cron;
	bool is_there = tw_cron_create(&cron, "* * * * *", zone, NULL) == TW_OK;

	tw_cron_destroy(cron);
	return is_there ? zone : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tw_cron_error error;
	struct tw_cron *cron;
	uint32_t after;
	char *text;

	if (size < HEAD_SIZE)
		return 0;
	text = malloc(size - HEAD_SIZE + 1);
	if (!text)
		return 0;
	memcpy(text, data + HEAD_SIZE, size - HEAD_SIZE);
	text[size - HEAD_SIZE] = '\0';
	memcpy(&after, data + 1, sizeof(after));
	if (tw_cron_create(&cron, text, zone_choose(data[0]), &error) == TW_OK)
		check_times(cron, after);
	else
		assert(!cron && error.text && !error.in_zone && error.position <= strlen(text));
	tw_cron_destroy(cron);
	free(text);
	return 0;
}
