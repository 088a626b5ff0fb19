/* SPDX-License-Identifier: MIT */
/* base64.c writes three bytes as four digits. Bits left over are 0, so bytes have one text. */
#include "base64.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_write(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	char *text = malloc((size + 2) / 3 * 4 + 1);
	char *at = text;

	for (size_t i = 0; text && i < size; i += 3) {
		size_t left = size - i;
		unsigned group = (unsigned)bytes[i] << 16;

		group |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
		group |= left > 2 ? bytes[i + 2] : 0;
		*at++ = digits[group >> 18];
		*at++ = digits[group >> 12 & 63];
		*at++ = left > 1 ? digits[group >> 6 & 63] : '=';
		*at++ = left > 2 ? digits[group & 63] : '=';
	}
	if (text)
		*at = '\0';
	return text;
}

/* Reads four digits, the last `padding` of them '='. Returns false if they are none, or bits are
 * left over. */
static bool group_read(const char *text, size_t padding, unsigned char bytes[3])
{
	unsigned group = 0;

	for (size_t i = 0; i < 4; i++) {
		bool padded = i >= 4 - padding;
		const char *digit = padded || !text[i] ? NULL : strchr(digits, text[i]);

		if (padded ? text[i] != '=' : !digit)
			return false;
		group = group << 6 | (digit ? (unsigned)(digit - digits) : 0);
	}
	bytes[0] = (unsigned char)(group >> 16);
	bytes[1] = (unsigned char)(group >> 8);
	bytes[2] = (unsigned char)group;
	return (padding < 1 || !bytes[2]) && (padding < 2 || !bytes[1]);
}

void *base64_read(const char *text, size_t text_size, size_t *size)
{
	unsigned char *bytes = text_size % 4 ? NULL : malloc(text_size / 4 * 3 + 1);

	*size = 0;
	for (size_t i = 0; bytes && i < text_size; i += 4) {
		bool last = i + 4 == text_size;
		size_t padding = !last || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;

		if (!group_read(text + i, padding, bytes + i / 4 * 3)) {
			free(bytes);
			return NULL;
		}
		*size += 3 - padding;
	}
	return bytes;
}
