/* SPDX-License-Identifier: MIT */
/*
 * A slot set is a set of slot numbers that finds its next member in a few steps, also where members
 * are few. It is a tree of 64-bit words.
 *
 * Invariant: bit i of level n + 1 is set if, and only if, word i of level n is not 0.
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
	uint64_t *levels[SLOT_SET_LEVELS]; /* in one array; levels[0] has a bit for each slot */
};

/* Returns the number of words that a set of slots 0 to size - 1 needs. `size` is > 0. */
size_t slot_set_words(size_t size);
/* Initializes an empty set. `words` has slot_set_words(size) words, all 0, which the caller
 * owns. */
void slot_set_init(struct slot_set *set, size_t size, uint64_t *words);
/* Sets the slot's bits in the words above. slot_set_add() calls it for the first member of a
 * word. */
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
/* Does what slot_set_next() does, where the slot's own word has no such member. */
size_t slot_set_next_word(const struct slot_set *set, size_t slot);

/* Returns the smallest member that is at least `slot`, one of the set's slots, or SLOT_NONE. */
static inline size_t slot_set_next(const struct slot_set *set, size_t slot)
{
	uint64_t word = set->levels[0][slot / 64] >> slot % 64;

	return word ? slot + (size_t)__builtin_ctzll(word) : slot_set_next_word(set, slot);
}

#endif
