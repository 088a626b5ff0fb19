/* SPDX-License-Identifier: MIT */
/* A space is a namespace: its shards, their slots in a cluster, and the names of their keys. */
#ifndef REDIS_WIRE_SPACE_H
#define REDIS_WIRE_SPACE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include <timingwheel/redis.h>

#include "buffer.h"

/* The number of slots of a cluster. */
enum { SLOTS = 16384 };
/* SHARD_NONE stands for a shard where the keys are the namespace's own. SHARD_REFUSED is none. */
#define SHARD_NONE UINT_MAX
#define SHARD_REFUSED (UINT_MAX - 1)
enum { OWN_KEYS = 3 };

struct space {
	char name[TW_REDIS_NAMESPACE_MAX + 1];
	char channel[TW_REDIS_NAMESPACE_MAX + 16]; /* for hints */
	unsigned shards;
};

void space_init(struct space *space, const char *name, unsigned shards);

/* Returns the shard of the key. KEY#due=TIME is in the shard of KEY, so that a script can make the
 * letter of an occurrence (finish.lua). */
unsigned space_shard(const struct space *space, const void *key, size_t key_size);
/* Returns the cluster's slot that all keys of the shard lie in. */
unsigned space_slot(const struct space *space, unsigned shard);

/* Writes the first `count` keys of the shard as arguments: due, body, run, state, dead, limits,
 * every, died, leases, queue, turns, busy; of the namespace, which has OWN_KEYS: layout,
 * present, workers. */
void space_write_keys(const struct space *space, unsigned shard, unsigned count,
		      struct buffer *buffer);

/* Writes the key of the shard with this name. */
void space_write_key(const struct space *space, unsigned shard, const char *name,
		     struct buffer *buffer);

/* Returns the checksum that Redis Cluster uses. */
uint16_t crc16(const void *data, size_t size);

#endif
