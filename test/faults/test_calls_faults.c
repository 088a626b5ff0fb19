/* SPDX-License-Identifier: MIT */
/*
 * Every public call of the wheel and of the schedules (wheel_calls, in support/script.c) meets the
 * failure of each of its allocations, threads and descriptors; the calls that create something also
 * meet the failure of each pair of allocations. A call that reports missing memory has changed
 * nothing and works when there is memory again; its arguments come back once. Leaks are found by
 * the address sanitizer's run.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/script.h"

/* A stage has a wheel, or a call for the wheel of a script. */
struct stage {
	const struct variant *variant;
	enum tw_clock clock;
	struct tw_wheel *wheel;
	const struct script_call *call;
	bool is_first; /* the call is the first, which allocates what was not needed before */
};

static struct tw_options options_of(const struct stage *stage)
{
	return variant_options(stage->variant, (struct tw_options){.queue_capacity = 64,
								   .patience_for_worker = TW_HOUR});
}

static enum tw_status create(struct stage *stage)
{
	struct tw_options options = options_of(stage);

	options.clock = stage->clock;
	return tw_create(&stage->wheel, INTERVAL, 16, ignore_task, &options);
}

/* Writes what a call that fails leaves as it is: the number of timers, and the time that the long
 * key's timer has. A stage without timers is not asked: a question may be its first call. */
static void look(const struct stage *stage, struct script *script, char state[2][SCRIPT_ANSWER])
{
	if (stage->is_first)
		return;
	script_answer(script, script_wheel(script), "left L1", state[0]);
	script_answer(script, script_wheel(script), "pending", state[1]);
}

static void call_with_fault(void *context)
{
	const struct stage *stage = context;
	const char *step = stage->call->step;
	struct script *script = script_open(stage->variant, options_of(stage));
	char before[2][SCRIPT_ANSWER] = {{0}};
	char after[2][SCRIPT_ANSWER] = {{0}};
	char answer[SCRIPT_ANSWER];
	bool met;

	if (!stage->is_first)
		script_make(script, SCRIPT_STAGE);
	look(stage, script, before);
	begin_faults();
	script_answer(script, script_wheel(script), step, answer);
	met = end_faults();
	if (strcmp(answer, "NO_MEMORY") == 0) {
		assert_true(met);
		look(stage, script, after);
		assert_memory_equal(after, before, sizeof(before));
		script_answer(script, script_wheel(script), step, answer);
	}
	if (strcmp(stage->call->answer, "any") != 0)
		assert_string_equal(answer, stage->call->answer);
	script_close(script, step, __FILE__, __LINE__);
}

TEST(everywhere, each_call_meets_each_failure)
{
	struct stage stage = {.variant = *state};

	for (stage.call = wheel_calls; stage.call->step; stage.call++)
		for (enum fault fault = 0; fault < FAULT_KINDS; fault++)
			if (script_has_call(stage.variant, stage.call))
				(void)fail_each(fault, call_with_fault, &stage);
}

TEST(everywhere, each_first_call_meets_each_failure)
{
	struct stage stage = {.variant = *state, .is_first = true};

	for (stage.call = wheel_calls; stage.call->step; stage.call++) {
		if (stage.call->trait != CALL_ALLOCATES)
			continue;
		assert_true(fail_each(FAULT_ALLOCATION, call_with_fault, &stage) > 0);
		(void)fail_each(FAULT_PAIR, call_with_fault, &stage);
	}
}

static void create_with_fault(void *context)
{
	struct stage *stage = context;
	enum tw_status status;
	int anything;
	bool met;

	stage->wheel = (void *)&anything;
	begin_faults();
	errno = 0;
	status = create(stage);
	met = end_faults();
	if (status == TW_OK) {
		tw_destroy(stage->wheel);
	} else {
		assert_true(met);
		assert_null(stage->wheel);
		if (status != TW_NO_MEMORY) {
			assert_status(status, TW_SYSTEM);
			assert_true(errno == EAGAIN || errno == EMFILE);
		}
	}
}

TEST(everywhere, creation_meets_each_failure)
{
	struct stage stage = {.variant = *state};

	for (int clock = TW_CLOCK_MONOTONIC; clock <= TW_CLOCK_MANUAL; clock++) {
		stage.clock = (enum tw_clock)clock;
		assert_in_range(fail_each(FAULT_ALLOCATION, create_with_fault, &stage), 5, 1000);
		(void)fail_each(FAULT_PAIR, create_with_fault, &stage);
		(void)fail_each(FAULT_THREAD, create_with_fault, &stage);
		assert_int_equal(fail_each(FAULT_DESCRIPTOR, create_with_fault, &stage),
				 clock == TW_CLOCK_BOOTTIME &&
					 stage.variant->drive == TW_DRIVE_THREAD);
	}
}

TEST(everywhere, wheel_without_a_clock_is_refused)
{
	struct stage stage = {.variant = *state};

	fail_calls("clock_getres", EINVAL);
	assert_status(create(&stage), TW_SYSTEM);
	assert_true(end_faults());
	assert_null(stage.wheel);
}

/* The seed of the hash is then made from the time and an address. */
TEST(everywhere, wheel_needs_no_random_bytes)
{
	struct script *script;

	fail_calls("getrandom", EAGAIN);
	script = script_open(*state, (struct tw_options){0});
	assert_true(end_faults());
	script_make(script, SCRIPT_STAGE "; left L1 = 3600000");
	script_close(script, "without random bytes", __FILE__, __LINE__);
}

TEST(inline, wheel_without_a_descriptor_has_none_to_show_until_there_is_one)
{
	struct stage stage = {.variant = *state, .clock = TW_CLOCK_MONOTONIC};

	assert_status(create(&stage), TW_OK);
	fail_descriptor(1);
	assert_true(tw_fd(stage.wheel) < 0);
	assert_true(end_faults());
	assert_true(tw_fd(stage.wheel) >= 0);
	tw_destroy(stage.wheel);
}
