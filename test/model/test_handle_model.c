/* SPDX-License-Identifier: MIT */
/* Handles get random commands, beside a model, and from tasks. */
#include "support/test.h"

#include "support/recorder.h"
#include "model/trial.h"

enum { MODEL_STEPS = TEST_SHARE_OF(30000) };

TEST(ordered, random_commands_do_what_a_model_predicts)
{
	const struct variant *variant = *state;
	struct trial_setting setting = {.layout = variant->layout,
					.slots = 10,
					.keys = 1,
					.longest_advance = 300,
					.is_of_handles = true,
					.has_owner = variant->drive == TW_DRIVE_THREAD};
	static struct trial trial;

	trial_begin(&trial, &setting, random_from(seed_choose(), 1));
	trial_run(&trial, MODEL_STEPS);
	trial_end(&trial);
	if (trial.wrong[0] != '\0')
		fail_msg("%s", trial.wrong);
}
