/* SPDX-License-Identifier: MIT */
/* base64.c accepts only what it writes: it encodes again what it has decoded, and compares. */
#include "base64.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

char *base64_write(const void *bytes, size_t size)
{
	char *text = malloc((size + 2) / 3 * 4 + 1);

	if (text)
		EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
	return text;
}

void *base64_read(const char *text, size_t text_size, size_t *size)
{
	unsigned char *bytes = text_size <= INT_MAX ? malloc(text_size + 1) : NULL;
	int decoded =
		bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)text_size) : -1;
	size_t padding = text_size > 2 && text[text_size - 1] == '=';
	char *again;
	bool same;

	padding += padding && text[text_size - 2] == '=';
	again = decoded >= (int)padding ? base64_write(bytes, (size_t)decoded - padding) : NULL;
	same = again && strlen(again) == text_size && !memcmp(again, text, text_size);

	free(again);
	*size = same ? (size_t)decoded - padding : 0;
	if (same)
		return bytes;
	free(bytes);
	return NULL;
}
