/* SPDX-License-Identifier: MIT */
/*
 * A struct that crosses between a program and the library may have more fields on one side, which
 * was built with a later header: structs grow at their end. So its size crosses, too (the calls
 * that end in _sized).
 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

/* Copies a program's struct to the library's. What the program's lacks becomes zero, or everything
 * if theirs is NULL. Returns false if the program's has more than the library's, and not zero
 * there: it asks for what the library can't do. */
bool sized_read(void *own, size_t own_size, const void *theirs, size_t their_size);
/* Copies the library's struct to a program's. What that one has more becomes zero. */
void sized_write(void *theirs, size_t their_size, const void *own, size_t own_size);

#endif
