/* SPDX-License-Identifier: MIT */
/* Inline tasks run in the order of deadlines, equal ones of a kind in the order of their sets. */
#include "support/test.h"

#include "support/recorder.h"

enum { TIMERS = 9, START = 10 * INTERVAL };

enum kind { BY_KEY, BY_HANDLE, ALARM, KINDS };

/* They are set in this order. */
static const int shuffled[TIMERS] = {5, 1, 9, 3, 7, 2, 8, 4, 6};

struct note {
	struct recorder *recorder;
	int number;
	enum kind kind;
	struct tw_alarm alarm;
};

static void take_note(void *argument)
{
	struct note *note = argument;
	struct tw_task task = *tw_current_task();

	task.value = VALUE(note->number);
	record_execute(note->recorder, &task);
}

static void set_note(struct note *note, tw_duration deadline)
{
	struct tw_wheel *wheel = note->recorder->wheel;

	if (note->kind == BY_KEY) {
		assert_status(tw_set_timer(wheel, &note->number, sizeof(note->number),
					   VALUE(note->number), deadline - tw_now(wheel)),
			      TW_OK);
	} else if (note->kind == BY_HANDLE) {
		assert_status(tw_after_func(wheel, deadline - tw_now(wheel), take_note, note, NULL),
			      TW_OK);
	} else {
		assert_status(tw_alarm_init(wheel, &note->alarm, take_note, note), TW_OK);
		assert_status(tw_alarm_set_at(&note->alarm, deadline), TW_OK);
	}
}

/* Sets timers of the kind, or of all kinds by turns, with deadlines `apart`; all have run then. */
static void run_notes(struct recorder *recorder, enum kind kind, tw_duration apart)
{
	struct note notes[TIMERS];

	for (int i = 0; i < TIMERS; i++) {
		notes[i] = (struct note){recorder,
					 apart ? shuffled[i] : i + 1,
					 kind == KINDS ? (enum kind)(i % KINDS) : kind,
					 {{0}}};
		set_note(&notes[i], tw_now(recorder->wheel) + START + apart * notes[i].number);
	}
	advance(recorder, START + 20 * INTERVAL);
	for (int i = 0; i < TIMERS; i++)
		if (notes[i].kind == ALARM)
			assert_status(tw_alarm_destroy(&notes[i].alarm), TW_OK);
}

/* The last events are of 1, 2, 3, … */
static void assert_ascending(struct recorder *recorder)
{
	size_t count = event_count(recorder);

	assert_true(count >= TIMERS);
	for (size_t i = 0; i < TIMERS; i++)
		assert_ptr_equal(event_at(recorder, count - TIMERS + i).value, VALUE(i + 1));
}

RECORDED(ordered, timers_of_a_tick_and_of_several_run_in_the_order_of_deadlines)
{
	static const tw_duration distances[] = {1, INTERVAL / 10, INTERVAL / 3, INTERVAL};

	for (int kind = BY_KEY; kind <= KINDS; kind++) {
		for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
			run_notes(recorder, (enum kind)kind, distances[i]);
			assert_ascending(recorder);
		}
	}
}

RECORDED(ordered, timers_of_a_kind_with_one_deadline_run_in_the_order_of_their_sets)
{
	for (int kind = BY_KEY; kind < KINDS; kind++) {
		run_notes(recorder, (enum kind)kind, 0);
		assert_ascending(recorder);
	}
}

/* The later timers lie in other slots than the earlier ones, which come down to theirs. */
RECORDED(ordered, timers_set_from_far_and_near_run_in_the_order_of_deadlines)
{
	for (int far = 1; far <= 9; far += 2)
		set_timer(recorder, (const char[]){(char)('0' + far), 0}, (uintptr_t)far,
			  1000 * INTERVAL + far);
	advance(recorder, 990 * INTERVAL);
	for (int near = 8; near > 0; near -= 2)
		set_timer(recorder, (const char[]){(char)('0' + near), 0}, (uintptr_t)near,
			  10 * INTERVAL + near);
	advance(recorder, 20 * INTERVAL);
	assert_ascending(recorder);
}

RECORDED(ordered, timer_moved_or_set_again_takes_its_new_place)
{
	set_timer(recorder, "a", 1, START + 1);
	set_timer(recorder, "b", 2, START + 2);
	set_timer(recorder, "c", 3, START + 3);
	set_timer(recorder, "d", 4, START + 4);
	flush_wheel(recorder);
	move_timer(recorder, "a", START + 4);
	set_timer(recorder, "c", 5, START + 1);
	advance(recorder, START + INTERVAL);
	assert_order(recorder, 3, 5, 2, 4, 1);
}

RECORDED(inline, alarms_with_deadlines_that_have_passed_run_in_their_order)
{
	struct note notes[TIMERS];

	advance(recorder, START);
	for (int i = 0; i < TIMERS; i++) {
		notes[i] = (struct note){recorder, shuffled[i], ALARM, {{0}}};
		set_note(&notes[i], START - 10 + shuffled[i]);
	}
	advance(recorder, 0);
	assert_ascending(recorder);
	for (int i = 0; i < TIMERS; i++)
		assert_status(tw_alarm_destroy(&notes[i].alarm), TW_OK);
}
