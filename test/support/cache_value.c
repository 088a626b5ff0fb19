/* SPDX-License-Identifier: MIT */
#include "cache_value.h"

#include <string.h>

/* Every value begins with a head; filling follows. */
struct head {
	uint64_t key;
	uint64_t version;
	uint64_t size;
	uint64_t checksum; /* over all bytes, with this as 0 */
};

_Static_assert(sizeof(struct head) == CHECKED_VALUE_LEAST, "the head is the smallest value");

static uint64_t mix(uint64_t number)
{
	number = (number ^ (number >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
	return number ^ (number >> 32);
}

static uint64_t checksum_of(const struct head *head, const unsigned char *filling)
{
	uint64_t sum = mix(head->key) + mix(head->version + 1) * 3 + head->size;

	for (size_t i = 0; i < head->size - sizeof(*head); i++)
		sum = (sum ^ filling[i]) * UINT64_C(0x100000001b3);
	return sum;
}

size_t checked_value_size(uint64_t key, uint64_t version)
{
	uint64_t mixed = mix(key * 1000003 + version);

	/* Most values are small. */
	return CHECKED_VALUE_LEAST +
	       mixed % (mixed >> 60 ? 90 : CHECKED_VALUE_MOST - CHECKED_VALUE_LEAST);
}

void checked_value_fill(unsigned char *value, uint64_t key, uint64_t version, size_t size)
{
	struct head head = {.key = key, .version = version, .size = size};

	for (size_t i = sizeof(head); i < size; i++)
		value[i] = (unsigned char)(mix(version) + i);
	head.checksum = checksum_of(&head, value + sizeof(head));
	memcpy(value, &head, sizeof(head));
}

size_t checked_value_write(unsigned char *value, uint64_t key, uint64_t version)
{
	size_t size = checked_value_size(key, version);

	checked_value_fill(value, key, version, size);
	return size;
}

bool checked_value_is_sound(const void *value, size_t size, uint64_t key, uint64_t *version)
{
	const unsigned char *bytes = value;
	struct head head;

	if (size < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	*version = head.version;
	return head.key == key && head.size == size &&
	       head.checksum == checksum_of(&head, bytes + sizeof(head));
}
