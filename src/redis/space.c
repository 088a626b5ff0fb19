/* SPDX-License-Identifier: MIT */
/*
 * All keys of a shard hold the same text in braces, {tw/NAMESPACE/SHARD}, and a cluster places a
 * key by that text alone. So they lie on one node, and one script may touch them all. CRC-16 also
 * divides the tasks among the shards: its low bits are as good as any.
 */
#include "space.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static uint16_t crc16_table[256];
static pthread_once_t crc16_once = PTHREAD_ONCE_INIT;

/* CCITT polynomial, highest bit first, as XMODEM has it. */
static void crc16_fill(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		unsigned sum = byte << 8;

		for (int bit = 0; bit < 8; bit++)
			sum = sum & 0x8000 ? sum << 1 ^ 0x1021 : sum << 1;
		crc16_table[byte] = (uint16_t)sum;
	}
}

uint16_t crc16(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	unsigned sum = 0;

	pthread_once(&crc16_once, crc16_fill);
	for (size_t i = 0; i < size; i++)
		sum = (sum << 8 ^ crc16_table[(sum >> 8 ^ bytes[i]) & 0xff]) & 0xffff;
	return (uint16_t)sum;
}

void space_init(struct space *space, const char *name, unsigned shards)
{
	memset(space, 0, sizeof(*space));
	snprintf(space->name, sizeof(space->name), "%s", name);
	snprintf(space->channel, sizeof(space->channel), "tw/%s/hint", name);
	space->shards = shards;
}

unsigned space_shard(const struct space *space, const void *key, size_t key_size)
{
	return crc16(key, key_size) % space->shards;
}

unsigned space_slot(const struct space *space, unsigned shard)
{
	char tag[TW_REDIS_NAMESPACE_MAX + 24];
	int size = snprintf(tag, sizeof(tag), "tw/%s/%u", space->name, shard);

	return crc16(tag, (size_t)size) % SLOTS;
}

void space_write_keys(const struct space *space, unsigned shard, unsigned count,
		      struct buffer *buffer)
{
	static const char *const names[] = {"due", "body", "run", "token", "dead"};
	char key[TW_REDIS_NAMESPACE_MAX + 32];
	int tag = snprintf(key, sizeof(key), "{tw/%s/%u}", space->name, shard);

	for (unsigned i = 0; i < count; i++) {
		size_t size = strlen(names[i]);

		memcpy(key + tag, names[i], size);
		buffer_bulk(buffer, key, (size_t)tag + size);
	}
}
