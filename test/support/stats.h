/* SPDX-License-Identifier: MIT */
/* These check all counts of a wheel or a cache. Only the main thread may use them. */
#ifndef SUPPORT_STATS_H
#define SUPPORT_STATS_H

#include <timingwheel/cache.h>

struct tw_stats stats_of_wheel(struct tw_wheel *wheel);

/* Checks the named counts (set, replaced, …, pending) and that all others are 0, except times. */
#define assert_counts(wheel, ...) \
	assert_counts_(wheel, (struct tw_stats){__VA_ARGS__}, __FILE__, __LINE__)
void assert_counts_(struct tw_wheel *wheel, struct tw_stats expected, const char *file, int line);

uint64_t entries_of(struct tw_cache *cache);
/* Checks a cache's named counts and that all others are 0, except removals and weights. */
#define assert_cache_counts(cache, ...) \
	assert_cache_counts_(cache, (struct tw_cache_stats){__VA_ARGS__}, __FILE__, __LINE__)
void assert_cache_counts_(struct tw_cache *cache, struct tw_cache_stats expected, const char *file,
			  int line);

#endif
