/* SPDX-License-Identifier: MIT */
/*
 * Large zeroed memory straight from the kernel: pages that were never written take no room, and
 * giving it back, which costs a millisecond for some 10 MiB, can be done in steps.
 */
#ifndef PAGES_H
#define PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct pages {
	char *memory;
	size_t size; /* 0: all was given back */
};

/* False: out of memory. */
bool pages_map(struct pages *pages, size_t size);
/* Gives some of it back, from the end; true: there is nothing left. */
bool pages_unmap_some(struct pages *pages);

#endif
