/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "stats.h"

#include "recorder.h"

/* A count is a field of a struct of statistics. */
struct count {
	const char *name;
	size_t offset;
};

#define COUNT(type, name)                          \
	{                                          \
#name, offsetof(struct type, name) \
	}

static void assert_all_equal(const void *stats, const void *expected, const struct count *count,
			     const char *file, int line)
{
	bool differ = false;

	for (; count->name != NULL; count++) {
		uint64_t is = *(const uint64_t *)((const char *)stats + count->offset);
		uint64_t should = *(const uint64_t *)((const char *)expected + count->offset);

		if (is != should)
			print_error("%s is %llu, not %llu\n", count->name, (unsigned long long)is,
				    (unsigned long long)should);
		differ |= is != should;
	}
	if (differ)
		_fail(file, line);
}

struct tw_stats stats_of_wheel(struct tw_wheel *wheel)
{
	struct tw_stats stats;

	assert_status(tw_get_stats(wheel, &stats), TW_OK);
	return stats;
}

void assert_counts_(struct tw_wheel *wheel, struct tw_stats expected, const char *file, int line)
{
	static const struct count counts[] = {
		COUNT(tw_stats, set),        COUNT(tw_stats, replaced), COUNT(tw_stats, moved),
		COUNT(tw_stats, removed),    COUNT(tw_stats, fired),    COUNT(tw_stats, drained),
		COUNT(tw_stats, stopped),    COUNT(tw_stats, refused),  COUNT(tw_stats, pending),
		COUNT(tw_stats, unfinished), COUNT(tw_stats, running),  {NULL, 0},
	};
	struct tw_stats stats = stats_of_wheel(wheel);

	assert_all_equal(&stats, &expected, counts, file, line);
}

uint64_t entries_of(struct tw_cache *cache)
{
	struct tw_cache_stats stats;

	assert_status(tw_cache_get_stats(cache, &stats), TW_OK);
	return stats.entries;
}

void assert_cache_counts_(struct tw_cache *cache, struct tw_cache_stats expected, const char *file,
			  int line)
{
	static const struct count counts[] = {
		COUNT(tw_cache_stats, hits),          COUNT(tw_cache_stats, misses),
		COUNT(tw_cache_stats, absent),        COUNT(tw_cache_stats, loads),
		COUNT(tw_cache_stats, load_errors),   COUNT(tw_cache_stats, load_waits),
		COUNT(tw_cache_stats, wait_timeouts), COUNT(tw_cache_stats, inserts),
		COUNT(tw_cache_stats, entries),       {NULL, 0},
	};
	struct tw_cache_stats stats;

	assert_status(tw_cache_get_stats(cache, &stats), TW_OK);
	assert_all_equal(&stats, &expected, counts, file, line);
}
