/* SPDX-License-Identifier: MIT */
/* Bytes that are not text, as text: RFC 4648, with + and /, padded. */
#ifndef TWR_BASE64_H
#define TWR_BASE64_H

#include <stddef.h>

/* The text, the caller's to free; NULL without memory. */
char *base64_write(const void *bytes, size_t size);

/*
 * The bytes that the text stands for, *size of them, the caller's to free, with room for one more.
 * NULL: it is not base64 as base64_write writes it, or there is no memory.
 */
void *base64_read(const char *text, size_t text_size, size_t *size);

#endif
