/* SPDX-License-Identifier: MIT */
/*
 * Whether what several threads did could have been done one after the other, each step at some
 * moment between its begin and its end, so that a sequential model gives the same answers: Wing and
 * Gong's search, which remembers what it has tried in vain (Lowe). The model is the test's.
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

/* A call, half of one, or what happened by itself. */
struct step {
	uint64_t began; /* both drawn from one counter */
	uint64_t ended;
};

/* What the model knows. All bytes count, so they begin as zeros. */
union model_state {
	unsigned char bytes[LINEARIZE_STATE];
	uint64_t alignment;
};

enum step_answer {
	STEP_FITS,     /* *state is what it is after the step */
	STEP_DOES_NOT, /* not here, with this choice */
	STEP_HAS_NO_MORE_CHOICES
};

struct sequential {
	void *context;
	/* Takes the step where the model is in *state. A step may be open: it is asked with choice
	 * 0, 1, …, until there are no more. */
	enum step_answer (*take)(void *context, size_t step, unsigned choice,
				 union model_state *state);
	/* Whether the history may end so. */
	bool (*may_end)(void *context, const union model_state *state);
};

/* From a state of all zeros. *tried, which may be NULL, grows by the states it went through. */
bool linearize(const struct step *steps, size_t count, const struct sequential *model,
	       uint64_t *tried);

#endif
