/* SPDX-License-Identifier: MIT */
/* These write TZif files (RFC 9636) for tests, byte by byte. */
#ifndef SUPPORT_TZIF_H
#define SUPPORT_TZIF_H

#include <stddef.h>
#include <stdint.h>

enum { TZIF_MOST = 4096 };

struct tzif {
	unsigned char bytes[TZIF_MOST];
	size_t size;
};

struct tzif_change {
	int64_t at;
	unsigned char type;
};

/* Fields left out are empty. */
struct tzif_contents {
	char version;           /* '2' … */
	const int32_t *offsets; /* offsets of the types, in seconds */
	int offset_count;
	const struct tzif_change *changes;
	unsigned char change_count;
	unsigned char leap_count;
	const char *rule; /* NULL for an empty line */
};

/* Writes a file. The first body has a single type and is as short as possible. */
void tzif_write(struct tzif *file, const struct tzif_contents *contents);

#endif
