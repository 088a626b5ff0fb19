/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "checks.h"
#include "support/expect.h"
#include "timers.h"

void place_open(struct place *place, tw_duration interval, size_t slots, struct tw_options options)
{
	options.context = &place->account;
	options.release = timers_release;
	expect_ok(tw_create(&place->wheel, interval, slots, timers_execute, &options), "tw_create");
}

void place_judge_status(struct place *place, enum tw_status status)
{
	switch (status) {
	case TW_OK:
	case TW_FULL:
	case TW_EXISTS:
	case TW_NOT_FOUND:
	case TW_RUNNING:
	case TW_REARMED:
		break;
	case TW_CLOSED:
		if (atomic_load(&place->account.is_stopping))
			break;
		/* fall through */
	default:
		check_failed(tw_status_name(status));
	}
}

void place_check_empty(struct place *place)
{
	check_equal("values that did not come back", (int64_t)account_open(&place->account), 0);
}
