/* SPDX-License-Identifier: MIT */
/* Loads that run, and those who wait for them. A shard's flights are under its lock. */
#ifndef CACHE_FLIGHT_H
#define CACHE_FLIGHT_H

#include <stddef.h>
#include <stdint.h>

struct shard;

/* The key was set or deleted: what is being loaded will not be kept. Between begin and end. */
void flights_override(struct shard *shard, uint64_t hash, const void *key, size_t key_size);
void flights_override_all(struct shard *shard);
/* Wakes who waits, to look whether the cache is closed. */
void flights_wake(struct shard *shard);

#endif
