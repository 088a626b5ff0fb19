/* SPDX-License-Identifier: MIT */
/* These functions replace those of ctype.h, which depend on the locale. */
#ifndef LETTER_H
#define LETTER_H

#include <stdbool.h>

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool is_letter(char c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

#endif
