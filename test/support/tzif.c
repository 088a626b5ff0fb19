/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "tzif.h"

static void put(struct tzif *file, const void *bytes, size_t size)
{
	assert_true(size <= TZIF_MOST - file->size);
	memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
}

/* Numbers are big endian. */
static void put_number(struct tzif *file, int64_t number, size_t size)
{
	for (size_t i = size; i-- > 0;) {
		unsigned char byte = (unsigned char)((uint64_t)number >> 8 * i);

		put(file, &byte, 1);
	}
}

static void put_header(struct tzif *file, const struct tzif_contents *contents)
{
	static const char zeros[15];

	put(file, "TZif", 4);
	put(file, &contents->version, 1);
	put(file, zeros, sizeof(zeros));
	put_number(file, 0, 4);
	put_number(file, 0, 4);
	put_number(file, contents->leap_count, 4);
	put_number(file, contents->change_count, 4);
	put_number(file, contents->offset_count, 4);
	put_number(file, 4, 4);
}

static void put_part(struct tzif *file, const struct tzif_contents *contents, size_t time_size)
{
	put_header(file, contents);
	for (int i = 0; i < contents->change_count; i++)
		put_number(file, contents->changes[i].at, time_size);
	for (int i = 0; i < contents->change_count; i++)
		put_number(file, contents->changes[i].type, 1);
	for (int i = 0; i < contents->offset_count; i++) {
		put_number(file, contents->offsets[i], 4);
		put_number(file, 0, 2);
	}
	put(file, "LMT", 4);
	for (int i = 0; i < contents->leap_count; i++) {
		put_number(file, 78796800, time_size);
		put_number(file, 1, 4);
	}
}

void tzif_write(struct tzif *file, const struct tzif_contents *contents)
{
	static const int32_t none = 0;
	struct tzif_contents first = {
		.version = contents->version, .offsets = &none, .offset_count = 1};

	file->size = 0;
	put_part(file, &first, 4);
	put_part(file, contents, 8);
	put(file, "\n", 1);
	if (contents->rule)
		put(file, contents->rule, strlen(contents->rule));
	put(file, "\n", 1);
}
