/* SPDX-License-Identifier: MIT */
/*
 * A set of slot numbers that finds its next member at once, however few there are: a tree of 64-bit
 * words in which each bit of a word tells whether a word below has any bit set.
 */
#ifndef SLOT_SET_H
#define SLOT_SET_H

#include <stddef.h>
#include <stdint.h>

enum { SLOT_SET_LEVELS = 11 }; /* 64^11 slots, more than size_t counts */

#define SLOT_NONE SIZE_MAX

struct slot_set {
	size_t size;
	int height;
	uint64_t *levels[SLOT_SET_LEVELS]; /* levels[0]: a bit a slot; all in one array */
};

/* How many words a set of slots 0 to size - 1 takes, size > 0. */
size_t slot_set_words(size_t size);
/* Empty. `words`: so many, all 0, which stay the caller's. */
void slot_set_init(struct slot_set *set, size_t size, uint64_t *words);
/* slot_set_add() calls this for a slot that is the first member of its word: sets its bits in the
 * words above. */
void slot_set_add_above(struct slot_set *set, size_t slot);

static inline void slot_set_add(struct slot_set *set, size_t slot)
{
	uint64_t *word = &set->levels[0][slot / 64];
	uint64_t before = *word;

	*word = before | (uint64_t)1 << slot % 64;
	if (before == 0)
		slot_set_add_above(set, slot);
}

void slot_set_remove(struct slot_set *set, size_t slot);
/* The smallest member that is at least `slot`, or SLOT_NONE. */
size_t slot_set_next(const struct slot_set *set, size_t slot);

#endif
