/* SPDX-License-Identifier: MIT */
/*
 * A reader goes through a text. The functions for letters replace those of ctype.h, which depend on
 * the locale.
 */
#ifndef TEXT_READER_H
#define TEXT_READER_H

#include <stdbool.h>

enum { NUMBER_MOST = 1000 };

struct text_reader {
	const char *next;
	const char *end;   /* the text need not end with NUL */
	const char *wrong; /* the error, a static string, or NULL */
};

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

/* Returns the next character, or '\0' at the end. */
static inline char text_next(const struct text_reader *reader)
{
	return reader->next < reader->end ? *reader->next : '\0';
}

/* Skips the character `c` if it is the next one. Returns whether it was. */
static inline bool text_skip(struct text_reader *reader, char c)
{
	if (reader->next == reader->end || *reader->next != c)
		return false;
	reader->next++;
	return true;
}

/* Reads digits. A number of NUMBER_MOST or more comes out as one that is not less. */
static inline int text_digits(struct text_reader *reader)
{
	int number = 0;

	for (; is_digit(text_next(reader)); reader->next++)
		if (number < NUMBER_MOST)
			number = number * 10 + (text_next(reader) - '0');
	return number;
}

#endif
