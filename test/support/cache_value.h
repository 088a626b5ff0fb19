/* SPDX-License-Identifier: MIT */
/*
 * Values that can be judged by whoever meets them: they name their key and version, and carry a
 * checksum over all their bytes.
 */
#ifndef SUPPORT_CACHE_VALUE_H
#define SUPPORT_CACHE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECKED_VALUE_LEAST = 32, CHECKED_VALUE_MOST = 1024 };

/* The size of this version's value. */
size_t checked_value_size(uint64_t key, uint64_t version);
/* `value` has room for CHECKED_VALUE_MOST bytes; answers the size. */
size_t checked_value_write(unsigned char *value, uint64_t key, uint64_t version);
/* Whether these bytes are a value of the key. */
bool checked_value_is_sound(const void *value, size_t size, uint64_t key, uint64_t *version);

#endif
