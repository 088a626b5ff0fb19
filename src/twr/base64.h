/* SPDX-License-Identifier: MIT */
/* base64 has bytes in JSON: as strings, or as base64 (RFC 4648, with + and /, padded). */
#ifndef TWR_BASE64_H
#define TWR_BASE64_H

#include <jansson.h>

/* Sets `name` to the bytes if they are UTF-8, and otherwise name_base64 to their base64. */
void json_set_bytes(json_t *object, const char *name, const void *bytes, size_t size);

/* Returns the bytes of a base64 as a string, or NULL if json_set_bytes() would write it in another
 * way, or without memory. */
json_t *json_read_base64(const json_t *base64);

#endif
