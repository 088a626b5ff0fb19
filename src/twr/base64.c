/* SPDX-License-Identifier: MIT */
/* base64.c accepts only what it writes: it encodes again what it has decoded, and compares. */
#include "base64.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

/* Returns the text, which the caller frees, or NULL without memory. */
static char *base64_write(const void *bytes, size_t size)
{
	char *text = malloc((size + 2) / 3 * 4 + 1);

	if (text)
		EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
	return text;
}

void json_set_bytes(json_t *object, const char *name, const void *bytes, size_t size)
{
	json_t *string = json_stringn(size ? bytes : "", size);
	char base64_name[64];
	char *base64;

	if (string) {
		json_object_set_new(object, name, string);
		return;
	}
	base64 = base64_write(bytes, size);
	snprintf(base64_name, sizeof(base64_name), "%s_base64", name);
	if (base64)
		json_object_set_new(object, base64_name, json_string(base64));
	free(base64);
}

json_t *json_read_base64(const json_t *base64)
{
	const char *text = json_string_value(base64);
	size_t size = json_string_length(base64);
	unsigned char *bytes = text && size <= INT_MAX ? malloc(size + 1) : NULL;
	int decoded = bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)size) : -1;
	int padding = size > 2 ? (text[size - 1] == '=') + (text[size - 2] == '=') : 0;
	char *again = decoded >= padding ? base64_write(bytes, (size_t)(decoded - padding)) : NULL;
	json_t *read = NULL;

	if (again && strlen(again) == size && !memcmp(again, text, size))
		read = json_stringn_nocheck((char *)bytes, (size_t)(decoded - padding));
	free(again);
	free(bytes);
	return read;
}
