/* SPDX-License-Identifier: MIT */
#include "linearize.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct tried {
	uint64_t done;
	union model_state state;
	bool is_used;
};

/* This set has open addressing; its size is a power of two, and at most half of it is used. */
struct tried_set {
	struct tried *places;
	size_t size;
	size_t count;
};

struct search {
	const struct step *steps;
	size_t count;
	const struct sequential *model;
	struct tried_set tried;
};

static uint64_t hash_of(uint64_t done, const union model_state *state)
{
	uint64_t hash = done * 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < sizeof(state->bytes); i++)
		hash = (hash ^ state->bytes[i]) * 0x100000001b3;
	return hash ^ hash >> 29;
}

static struct tried *tried_place(struct tried_set *set, uint64_t done,
				 const union model_state *state)
{
	size_t at = hash_of(done, state) & (set->size - 1);

	while (set->places[at].is_used &&
	       (set->places[at].done != done ||
		memcmp(&set->places[at].state, state, sizeof(*state)) != 0))
		at = (at + 1) & (set->size - 1);
	return &set->places[at];
}

static void tried_grow(struct tried_set *set)
{
	struct tried_set larger = {.size = set->size ? 4 * set->size : 256};

	larger.places = calloc(larger.size, sizeof(*larger.places));
	assert(larger.places);
	larger.count = set->count;
	for (size_t i = 0; i < set->size; i++) {
		if (set->places[i].is_used)
			*tried_place(&larger, set->places[i].done, &set->places[i].state) =
				set->places[i];
	}
	free(set->places);
	*set = larger;
}

/* Returns false if it was there already. */
static bool tried_add(struct tried_set *set, uint64_t done, const union model_state *state)
{
	struct tried *place;

	if (2 * set->count >= set->size)
		tried_grow(set);
	place = tried_place(set, done, state);
	if (place->is_used)
		return false;
	*place = (struct tried){.done = done, .state = *state, .is_used = true};
	set->count++;
	return true;
}

/* Returns whether none of the remaining steps had ended before this one began. */
static bool may_be_next(const struct search *search, uint64_t done, size_t next)
{
	for (size_t i = 0; i < search->count; i++) {
		if (!(done >> i & 1) && search->steps[i].ended < search->steps[next].began)
			return false;
	}
	return true;
}

static bool search_from(struct search *search, uint64_t done, const union model_state *state);

/* Searches with each of the step's choices. */
static bool search_step(struct search *search, uint64_t done, size_t next,
			const union model_state *state)
{
	const struct sequential *model = search->model;

	for (unsigned choice = 0;; choice++) {
		union model_state after = *state;
		enum step_answer answer = model->take(model->context, next, choice, &after);

		if (answer == STEP_HAS_NO_MORE_CHOICES)
			return false;
		if (answer == STEP_FITS && search_from(search, done | UINT64_C(1) << next, &after))
			return true;
	}
}

static bool search_from(struct search *search, uint64_t done, const union model_state *state)
{
	const struct sequential *model = search->model;
	uint64_t all = search->count == 64 ? UINT64_MAX : (UINT64_C(1) << search->count) - 1;

	if (done == all)
		return model->may_end(model->context, state);
	if (!tried_add(&search->tried, done, state))
		return false;
	for (size_t i = 0; i < search->count; i++) {
		if (!(done >> i & 1) && may_be_next(search, done, i) &&
		    search_step(search, done, i, state))
			return true;
	}
	return false;
}

bool linearize(const struct step *steps, size_t count, const struct sequential *model)
{
	struct search search = {.steps = steps, .count = count, .model = model};
	union model_state begin;
	bool found;

	assert(count <= LINEARIZE_MOST);
	memset(&begin, 0, sizeof(begin));
	found = search_from(&search, 0, &begin);
	free(search.tried.places);
	return found;
}
