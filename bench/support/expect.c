/* SPDX-License-Identifier: MIT */
#include "expect.h"

#include "process.h"

void expect_ok(enum tw_status status, const char *call)
{
	if (status != TW_OK)
		process_fail("%s answered %s: %s", call, tw_status_name(status),
			     tw_status_text(status));
}

struct tw_stats expect_stats(struct tw_wheel *wheel)
{
	struct tw_stats stats;

	expect_ok(tw_get_stats(wheel, &stats), "tw_get_stats");
	return stats;
}
