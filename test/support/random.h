/* SPDX-License-Identifier: MIT */
/*
 * Random numbers are made of a seed, or read from bytes, for fuzzers.
 */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
	uint64_t state;
	const uint8_t *bytes; /* those that are left; NULL: numbers come from the state */
	size_t left;
};

/* The stream-th generator of a seed. */
struct random random_from(uint64_t seed, uint64_t stream);
/* One that reads its numbers from bytes, as few for each as its bound needs; behind them it is
 * always 0. */
struct random random_from_bytes(const uint8_t *bytes, size_t size);
/* It has none left. */
bool random_is_spent(const struct random *random);
uint64_t random_next(struct random *random);
/* 0 … bound - 1; bound > 0. */
uint64_t random_below(struct random *random, uint64_t bound);
/* low … high. */
int64_t random_between(struct random *random, int64_t low, int64_t high);
/* True once in `times`. */
int random_once_in(struct random *random, uint64_t times);

#endif
