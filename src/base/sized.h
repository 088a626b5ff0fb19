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

#include <timingwheel/timingwheel.h>

/* Copies a program's struct to the library's. What the program's lacks becomes zero, or everything
 * if theirs is NULL. Returns false if the program's has more than the library's, and not zero
 * there: it asks for what the library can't do. */
bool sized_read(void *own, size_t own_size, const void *theirs, size_t their_size);
/* Copies the library's struct to a program's. What that one has more becomes zero. */
void sized_write(void *theirs, size_t their_size, const void *own, size_t own_size);

/* Returns the program's struct as the library's: itself if the sizes are equal, and otherwise *own,
 * which becomes a copy. Returns NULL if `theirs` is NULL or asks for what the library can't do. */
const void *sized_view(void *own, size_t own_size, const void *theirs, size_t their_size);

/* An array of the library's structs: the program's own, or a copy. */
struct sized_array {
	const void *items;
	void *copy; /* for free() */
};

/* Makes the array of the program's `count` structs. Returns TW_OK, TW_NO_MEMORY, or TW_INVALID if
 * one of them asks for what the library can't do. */
enum tw_status sized_array_read(struct sized_array *array, size_t own_size, const void *theirs,
				size_t their_size, size_t count);

#endif
