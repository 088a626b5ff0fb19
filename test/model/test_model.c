/* SPDX-License-Identifier: MIT */
/*
 * The wheel is compared with the model: random commands, also from inside tasks, and every event in
 * order: which value, what happened to it, when, how late, and why. Each value comes back exactly
 * once: a missing or additional event is a mismatch.
 */
#include "support/test.h"

#include "support/recorder.h"
#include "model/trial.h"

enum { OPERATIONS = TEST_SHARE_OF(60000), OPERATIONS_BY_HANDLE = TEST_SHARE_OF(30000) };

static void run_trial(const struct trial_setting *setting, uint64_t stream)
{
	static struct trial trial;

	trial_begin(&trial, setting, random_from(seed_choose(), stream));
	trial_run(&trial, setting->is_of_handles ? OPERATIONS_BY_HANDLE : OPERATIONS);
	trial_end(&trial);
	if (trial.wrong[0] != '\0')
		fail_msg("SEED=%" PRIu64 ", stream %" PRIu64 ", %zu slots, %" PRIu32 " keys: %s",
			 seed_choose(), stream, setting->slots, setting->keys, trial.wrong);
}

/* clang-format off */
#define TRIAL(slots, keys, longest, queue) {                                                       \
	#slots " slots, " #keys " keys, queue " #queue,                                            \
	&(struct trial_setting){TW_LAYOUT_LEVELS, slots, keys, longest, queue, false, false}}
/* clang-format on */

static struct trial_setting with_owner = {.layout = TW_LAYOUT_ROUNDS,
					  .slots = 10,
					  .keys = 200,
					  .longest_advance = 5000,
					  .has_owner = true};

static const struct test_kind kind_trials = {
	.variants = TEST_VARIANTS(
		TRIAL(1, 200, 2000, 0), TRIAL(1, 5000, 200, 0), TRIAL(3, 200, 5000, 0),
		TRIAL(3, 5000, 500, 0), TRIAL(10, 200, 5000, 0), TRIAL(10, 5000, 2000, 0),
		TRIAL(512, 200, 5000, 0), TRIAL(512, 5000, 5000, 0), TRIAL(10, 200, 1000, 16),
		TRIAL(64, 5000, 1000, 64), {"rounds, owner", &with_owner}),
};

TEST(trials, every_event_is_as_the_model_says)
{
	for (uint64_t stream = 0; stream < 2; stream++)
		run_trial(*state, stream);
}

TEST(ordered, every_event_of_handles_is_as_the_model_says)
{
	const struct variant *variant = *state;
	const struct trial_setting setting = {.slots = 10,
					      .keys = 1,
					      .longest_advance = 300,
					      .is_of_handles = true,
					      .has_owner = variant->drive == TW_DRIVE_THREAD};

	run_trial(&setting, 1);
}
