/* SPDX-License-Identifier: MIT */
#include "storm.h"

#include "support/process.h"
#include "support/stopwatch.h"
#include "timers.h"

#include <stdlib.h>

enum { BATCH = 64, HANDLES = 1024 };

enum storm_kind { DUE_TOGETHER, REMOVED_TOGETHER, DRAINED_TOGETHER, STOPPED_TOGETHER, STORM_KINDS };

struct storm_key {
	uint64_t storm; /* no user's number */
	uint64_t number;
};

/* A full queue or wheel is waited for: its owner has much to do. */
static void wait_a_moment(void)
{
	stopwatch_sleep(TW_MILLISECOND);
}

/* Sets them all. Returns how many: fewer where the book is full. */
static int64_t set_all(struct place *place, struct book *book, tw_duration delay, int64_t count)
{
	struct storm_key keys[BATCH];
	struct tw_set sets[BATCH];
	int64_t done = 0;

	while (done < count) {
		size_t n = 0;
		size_t accepted;

		for (; n < BATCH && done + (int64_t)n < count; n++) {
			keys[n] = (struct storm_key){UINT64_MAX, (uint64_t)done + n};
			sets[n] = (struct tw_set){&keys[n], sizeof(keys[n]), NULL, delay};
			sets[n].value =
				book_give(book, &place->account, tw_now(place->wheel) + delay);
			if (!sets[n].value)
				break;
		}
		if (n == 0)
			break;
		place_judge_status(place, tw_set_timers(place->wheel, sets, n, &accepted));
		for (size_t i = accepted; i < n; i++)
			book_refuse(sets[i].value);
		if (accepted < n)
			wait_a_moment();
		done += (int64_t)accepted;
	}
	return done;
}

static void remove_all(struct place *place, int64_t count)
{
	struct storm_key keys[BATCH];
	struct tw_key removes[BATCH];
	int64_t done = 0;

	while (done < count) {
		size_t n = 0;
		size_t accepted;

		for (; n < BATCH && done + (int64_t)n < count; n++) {
			keys[n] = (struct storm_key){UINT64_MAX, (uint64_t)done + n};
			removes[n] = (struct tw_key){&keys[n], sizeof(keys[n])};
		}
		place_judge_status(place, tw_remove_timers(place->wheel, removes, n, &accepted));
		if (accepted < n)
			wait_a_moment();
		done += (int64_t)accepted;
	}
}

struct handles {
	struct tw_timer *timers;
	void **values;
	int64_t count;
};

static void set_by_handle(struct place *place, struct book *book, tw_duration delay, int64_t count,
			  struct handles *handles)
{
	while (handles->count < count) {
		void *value = book_give(book, &place->account, tw_now(place->wheel) + delay);
		enum tw_status status;

		if (!value)
			break;
		status = tw_after_func(place->wheel, delay, timers_run_once, value,
				       &handles->timers[handles->count]);
		place_judge_status(place, status);
		if (status == TW_OK) {
			handles->values[handles->count++] = value;
		} else {
			book_refuse(value);
			wait_a_moment();
		}
	}
}

static void stop_by_handle(struct place *place, struct handles *handles)
{
	enum tw_status statuses[HANDLES];

	for (int64_t done = 0; done < handles->count; done += HANDLES) {
		int64_t left = handles->count - done;
		size_t n = left < HANDLES ? (size_t)left : HANDLES;

		place_judge_status(place, tw_timers_stop(place->wheel, &handles->timers[done], n,
							 statuses, NULL));
		for (size_t i = 0; i < n; i++)
			if (statuses[i] == TW_OK)
				book_return(handles->values[done + (int64_t)i], REMOVED,
					    TW_FOREVER);
	}
}

static void storm_by_handle(struct place *place, struct book *book, tw_duration delay,
			    int64_t count)
{
	struct handles handles = {
		.timers = malloc((size_t)count * sizeof(*handles.timers)),
		.values = malloc((size_t)count * sizeof(*handles.values)),
	};

	if (!handles.timers || !handles.values)
		process_fail("out of memory");
	set_by_handle(place, book, delay, count, &handles);
	stop_by_handle(place, &handles);
	free(handles.timers);
	free(handles.values);
}

void storm(struct place *place, struct book *book, struct generator *generator, int64_t count)
{
	tw_duration soon = generator_range(generator, 1000, 3000) * TW_MILLISECOND;

	switch ((enum storm_kind)generator_range(generator, 0, STORM_KINDS)) {
	case REMOVED_TOGETHER:
		remove_all(place, set_all(place, book, TW_MINUTE, count));
		break;
	case DRAINED_TOGETHER:
		set_all(place, book, TW_MINUTE, count);
		place_judge_status(place, tw_drain(place->wheel, timers_drain, &place->account));
		break;
	case STOPPED_TOGETHER:
		storm_by_handle(place, book, soon, count);
		break;
	default:
		set_all(place, book, soon, count);
	}
}
