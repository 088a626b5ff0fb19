/* SPDX-License-Identifier: MIT */
/*
 * space.c is the names of keys. All keys of a shard hold the same text in braces,
 * {tw/NAMESPACE/SHARD}, and a cluster places a key by that text alone. So they lie on one node, and
 * one script may touch them all. CRC-16 also divides the tasks among the shards: its low bits are
 * as good as any.
 */
#include "space.h"

#include <stdio.h>
#include <string.h>

enum { TAG_SIZE = TW_REDIS_NAMESPACE_MAX + 24 };

/* This is the CRC of XMODEM: the CCITT polynomial, highest bit first. A step takes four bits. */
uint16_t crc16(const void *data, size_t size)
{
	static const uint16_t sums[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
					  0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
					  0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
	const unsigned char *bytes = data;
	unsigned sum = 0;

	for (size_t i = 0; i < size; i++) {
		sum = (sum << 4 ^ sums[(sum >> 12 ^ bytes[i] >> 4) & 15]) & 0xffff;
		sum = (sum << 4 ^ sums[(sum >> 12 ^ bytes[i]) & 15]) & 0xffff;
	}
	return (uint16_t)sum;
}

void space_init(struct space *space, const char *name, unsigned shards)
{
	memset(space, 0, sizeof(*space));
	snprintf(space->name, sizeof(space->name), "%s", name);
	snprintf(space->channel, sizeof(space->channel), "tw/%s/hint", name);
	space->shards = shards;
}

/* Returns the size of a key without "#due=TIME", by which a dead letter names an occurrence. */
static size_t key_root_size(const char *key, size_t size)
{
	static const char mark[] = "#due=";
	const size_t mark_size = sizeof(mark) - 1;
	size_t root = size;

	while (root && key[root - 1] >= '0' && key[root - 1] <= '9')
		root--;
	if (root == size || root <= mark_size || memcmp(key + root - mark_size, mark, mark_size))
		return size;
	return root - mark_size;
}

unsigned space_shard(const struct space *space, const void *key, size_t key_size)
{
	return crc16(key, key_root_size(key, key_size)) % space->shards;
}

/* Writes the text in braces. Returns its length. */
static size_t tag_write(const struct space *space, unsigned shard, char *text, size_t room)
{
	return (size_t)(shard == SHARD_NONE ? snprintf(text, room, "tw/%s", space->name)
					    : snprintf(text, room, "tw/%s/%u", space->name, shard));
}

unsigned space_slot(const struct space *space, unsigned shard)
{
	char tag[TAG_SIZE];

	return crc16(tag, tag_write(space, shard, tag, sizeof(tag))) % SLOTS;
}

void space_write_keys(const struct space *space, unsigned shard, unsigned count,
		      struct buffer *buffer)
{
	static const char *const of_shard[] = {"due",    "body",   "run",   "state",
					       "dead",   "limits", "every", "died",
					       "leases", "queue",  "turns", "busy"};
	static const char *const of_namespace[OWN_KEYS] = {"layout", "present", "workers"};
	const char *const *names = shard == SHARD_NONE ? of_namespace : of_shard;
	char key[TAG_SIZE + 16] = "{";
	char *name = key + 1 + tag_write(space, shard, key + 1, TAG_SIZE);

	*name++ = '}';
	for (unsigned i = 0; i < count; i++)
		buffer_bulk(buffer, key, (size_t)(stpcpy(name, names[i]) - key));
}

void space_write_key(const struct space *space, unsigned shard, const char *name,
		     struct buffer *buffer)
{
	char tag[TAG_SIZE];
	char key[TAG_SIZE + 16];

	tag_write(space, shard, tag, sizeof(tag));
	snprintf(key, sizeof(key), "{%s}%s", tag, name);
	buffer_bulk_text(buffer, key);
}
