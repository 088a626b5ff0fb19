/* SPDX-License-Identifier: MIT */
/*
 * A trial is a wheel and its model in the exact case: one user, who also commands the wheel from
 * inside tasks, and drives it. Every event and every answer is known.
 */
#ifndef MODEL_TRIAL_H
#define MODEL_TRIAL_H

#include "wheel_user.h"

enum { TRIAL_TIMERS = 60 };

struct trial_setting {
	enum tw_layout layout;
	size_t slots;
	uint32_t keys;
	int64_t longest_advance; /* in ticks */
	size_t queue_capacity;   /* 0 means the default, and that tasks call the wheel */
	bool is_of_handles;      /* timers by handle; the wheel is driven after each act */
	bool has_owner;          /* a thread that drives the wheel */
};

struct trial {
	struct model model; /* the first member: hooks find the trial by it */
	struct wheel_user user;
	struct timer_set timers;
	struct model_timer timer[TRIAL_TIMERS];
	const struct trial_setting *setting;
	uint32_t operation; /* number */
	char wrong[600];    /* the first mismatch, which ends the trial */
};

/* Begins a trial. The setting must outlive it. */
void trial_begin(struct trial *trial, const struct trial_setting *setting, struct random random);
/* Makes `operations` random acts; stops early at a mismatch or when the random numbers are
 * spent. */
void trial_run(struct trial *trial, uint32_t operations);
/* Stops the wheel: everything left is released, and further calls are refused. */
void trial_end(struct trial *trial);

#endif
