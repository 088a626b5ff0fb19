/* SPDX-License-Identifier: MIT */
/*
 * A wheel and its model, given the same random commands, also from inside tasks. Every event is
 * compared, in order, with what the model foretells; so is every answer. The wheel is driven by the
 * caller, with inline tasks, on the manual clock.
 */
#ifndef SUPPORT_TRIAL_H
#define SUPPORT_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <timingwheel/timingwheel.h>

#include "model.h"
#include "seed.h"

struct trial_setting {
	enum tw_layout layout;
	size_t slots;
	uint32_t keys;
	int64_t longest_advance; /* ticks */
	size_t queue_capacity;   /* 0: default, and tasks call the wheel */
};

struct trial {
	const struct trial_setting *setting;
	struct tw_wheel *wheel;
	struct model *model;
	struct random random;
	uint32_t operation; /* number */
	uint32_t values;    /* given so far */
	bool in_task;
	bool stopped;
	char wrong[400]; /* the first mismatch; then nothing more is compared */
};

/* The setting must outlive the trial. */
void trial_begin(struct trial *trial, const struct trial_setting *setting,
		 enum tw_delay_from delay_from, struct random random);
/* A random command, or a random call that drives the wheel. */
void trial_operate(struct trial *trial);
/* Stops the wheel: everything left is released, and further calls are refused. */
void trial_stop(struct trial *trial);
void trial_end(struct trial *trial);

#endif
