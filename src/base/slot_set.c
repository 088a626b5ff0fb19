/* SPDX-License-Identifier: MIT */
#include "slot_set.h"

static size_t words_for(size_t bits)
{
	return bits / 64 + (bits % 64 != 0);
}

size_t slot_set_words(size_t size)
{
	size_t total = 0;

	do {
		size = words_for(size);
		total += size;
	} while (size > 1);
	return total;
}

void slot_set_init(struct slot_set *set, size_t size, uint64_t *words)
{
	*set = (struct slot_set){.size = size};
	do {
		set->levels[set->height++] = words;
		size = words_for(size);
		words += size;
	} while (size > 1);
}

void slot_set_add_above(struct slot_set *set, size_t slot)
{
	slot /= 64;
	for (int level = 1; level < set->height; level++, slot /= 64) {
		uint64_t *word = &set->levels[level][slot / 64];
		uint64_t before = *word;

		*word = before | (uint64_t)1 << slot % 64;
		if (before != 0)
			return;
	}
}

void slot_set_remove(struct slot_set *set, size_t slot)
{
	for (int level = 0; level < set->height; level++, slot /= 64) {
		uint64_t *word = &set->levels[level][slot / 64];

		*word &= ~((uint64_t)1 << slot % 64);
		if (*word != 0)
			return;
	}
}

/* Returns the smallest number ≥ `from` whose bit is set, in the word of bit `from`, or
 * SLOT_NONE. */
static size_t slot_set_scan_word(const struct slot_set *set, int level, size_t from)
{
	uint64_t word = set->levels[level][from / 64] >> from % 64;

	return word ? from + (size_t)__builtin_ctzll(word) : SLOT_NONE;
}

size_t slot_set_next_word(const struct slot_set *set, size_t slot)
{
	size_t bits = set->size;
	size_t found = SLOT_NONE;
	int level = 0;

	/* Go up until a word has a member at `slot` or behind it. `slot` on the next level is the
	 * word behind the present one. */
	for (; level < set->height && slot < bits; level++) {
		found = slot_set_scan_word(set, level, slot);
		if (found != SLOT_NONE)
			break;
		slot = slot / 64 + 1;
		bits = words_for(bits);
	}
	if (found == SLOT_NONE)
		return SLOT_NONE;
	/* Go down to the first member of each word. */
	while (level-- > 0)
		found = slot_set_scan_word(set, level, found * 64);
	return found;
}
