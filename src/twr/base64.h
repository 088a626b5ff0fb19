/* SPDX-License-Identifier: MIT */
/* base64 writes bytes as text: RFC 4648, with + and /, padded. */
#ifndef TWR_BASE64_H
#define TWR_BASE64_H

#include <stddef.h>

/* Returns the text, which the caller frees, or NULL without memory. */
char *base64_write(const void *bytes, size_t size);

/*
 * Returns the *size bytes of the text, with room for one more, which the caller frees. Returns NULL
 * if the text is not as base64_write() writes it, or without memory.
 */
void *base64_read(const char *text, size_t text_size, size_t *size);

#endif
