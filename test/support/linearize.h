/* SPDX-License-Identifier: MIT */
/*
 * Calls of several threads are linearizable if they could have been made one after the other, each
 * step at some moment between its begin and its end, with the answers of a sequential model: Wing
 * and Gong's search, which remembers failed states (Lowe). The model is the test's.
 */
#ifndef SUPPORT_LINEARIZE_H
#define SUPPORT_LINEARIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LINEARIZE_MOST = 64,  /* steps */
	LINEARIZE_STATE = 24, /* bytes of a model's state */
};

/* A step is a call, half of one, or an event without a call. */
struct step {
	uint64_t began; /* both drawn from one counter */
	uint64_t ended;
};

/* This is the model's state. All bytes count, so they start as zeros. */
union model_state {
	unsigned char bytes[LINEARIZE_STATE];
	uint64_t alignment;
};

enum step_answer {
	STEP_FITS,     /* *state is the state after the step */
	STEP_DOES_NOT, /* not here, with this choice */
	STEP_HAS_NO_MORE_CHOICES
};

struct sequential {
	void *context;
	/* Takes the step from *state. An open step is asked with choice 0, 1, …, until there are no
	 * more. */
	enum step_answer (*take)(void *context, size_t step, unsigned choice,
				 union model_state *state);
	/* Returns whether the history may end in this state. */
	bool (*may_end)(void *context, const union model_state *state);
};

/* Searches from a state of all zeros. */
bool linearize(const struct step *steps, size_t count, const struct sequential *model);

#endif
