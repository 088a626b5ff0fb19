/* SPDX-License-Identifier: MIT */
/* What a wheel or a cache counts, and whether it is exactly this. Main thread. */
#ifndef SUPPORT_STATS_H
#define SUPPORT_STATS_H

#include <timingwheel/cache.h>

struct tw_stats stats_of_wheel(struct tw_wheel *wheel);

/* So many were set, replaced, …, are pending; what is not named is 0. Times do not count. */
#define assert_counts(wheel, ...) \
	assert_counts_(wheel, (struct tw_stats){__VA_ARGS__}, __FILE__, __LINE__)
void assert_counts_(struct tw_wheel *wheel, struct tw_stats expected, const char *file, int line);

uint64_t entries_of(struct tw_cache *cache);
/* The same of a cache; what left it, and the weights, are not looked at. */
#define assert_cache_counts(cache, ...) \
	assert_cache_counts_(cache, (struct tw_cache_stats){__VA_ARGS__}, __FILE__, __LINE__)
void assert_cache_counts_(struct tw_cache *cache, struct tw_cache_stats expected, const char *file,
			  int line);

#endif
