/* SPDX-License-Identifier: MIT */
/* A key is 1 to TW_KEY_SIZE_MAX bytes. */
#ifndef KEY_H
#define KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <timingwheel/timingwheel.h>

static inline bool key_is_valid(const void *key, size_t size)
{
	return key && size > 0 && size <= TW_KEY_SIZE_MAX;
}

/* A short key has 8 to 16 bytes, as most keys do: two words of 8 bytes, which may overlap, hold all
 * of it. */
static inline bool key_is_short(size_t size)
{
	return size - 8 <= 8;
}

/* Compares two short keys of the same size. */
static inline bool short_keys_are_equal(const void *left, const void *right, size_t size)
{
	uint64_t words[4];

	memcpy(&words[0], left, 8);
	memcpy(&words[1], right, 8);
	memcpy(&words[2], (const unsigned char *)left + size - 8, 8);
	memcpy(&words[3], (const unsigned char *)right + size - 8, 8);
	return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
}

/*
 * Compares two keys of the same size. For a short key memcmp may load bytes behind the key and mask
 * them off, which can cost a cache miss on a line that is not needed.
 */
static inline bool keys_are_equal(const void *left, const void *right, size_t size)
{
	return key_is_short(size) ? short_keys_are_equal(left, right, size)
				  : memcmp(left, right, size) == 0;
}

/* Copies `size` bytes to `to`. */
static inline void key_copy(void *to, const void *from, size_t size)
{
	uint64_t words[2];

	if (!key_is_short(size)) {
		memcpy(to, from, size);
		return;
	}
	memcpy(&words[0], from, 8);
	memcpy(&words[1], (const unsigned char *)from + size - 8, 8);
	memcpy(to, &words[0], 8);
	memcpy((unsigned char *)to + size - 8, &words[1], 8);
}

#endif
