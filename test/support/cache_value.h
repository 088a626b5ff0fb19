/* SPDX-License-Identifier: MIT */
/*
 * Every thread can check these values: they contain their key and version, and a checksum over all
 * their bytes.
 */
#ifndef SUPPORT_CACHE_VALUE_H
#define SUPPORT_CACHE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECKED_VALUE_LEAST = 32, CHECKED_VALUE_MOST = 1024 };

/* Returns the size of this version's value. */
size_t checked_value_size(uint64_t key, uint64_t version);
/* Writes a value to `value`, which has room for CHECKED_VALUE_MOST bytes. Returns its size. */
size_t checked_value_write(unsigned char *value, uint64_t key, uint64_t version);
/* Writes a value of this size, which is CHECKED_VALUE_LEAST or more. */
void checked_value_fill(unsigned char *value, uint64_t key, uint64_t version, size_t size);
/* Returns whether these bytes are a value of the key. */
bool checked_value_is_sound(const void *value, size_t size, uint64_t key, uint64_t *version);

#endif
