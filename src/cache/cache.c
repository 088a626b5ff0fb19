/* SPDX-License-Identifier: MIT */
/* The public calls for all keys go shard by shard, in short steps. */
#include "cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/metric.h"

/* ---- All entries ---- */

enum tw_status tw_cache_clear(struct tw_cache *cache)
{
	if (!cache)
		return TW_INVALID;
	if (shared_is_closed(&cache->shared))
		return TW_CLOSED;
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_clear(&cache->shards[i], TW_CAUSE_EXPLICIT);
	return TW_OK;
}

/* A visit list has pinned entries of one shard. */
struct visit_list {
	size_t count;
	size_t capacity;
	struct tw_cache_entry **entries;
};

/* Makes room for a step more. Returns false if out of memory. */
static bool visit_list_reserve(struct visit_list *list)
{
	struct tw_cache_entry **larger;
	size_t capacity = list->capacity + list->capacity / 2 + SHARD_STEP;

	if (list->capacity - list->count >= SHARD_STEP)
		return true;
	larger = realloc(list->entries, capacity * sizeof(struct tw_cache_entry *));
	if (!larger)
		return false;
	list->entries = larger;
	list->capacity = capacity;
	return true;
}

/* Pins what comes next, absences aside, and adds it. There is room for it. In another table the
 * walk begins again, and so does the list. */
static void visit_list_add(struct visit_list *list, struct shard *shard, struct shard_walk *walk)
{
	struct tw_cache_entry **entries = &list->entries[list->count];
	bool is_first = list->count == 0;
	uint64_t tables = walk->tables;
	size_t listed;

	shard_begin_again(shard);
	listed = shard_walk_on(shard, walk, entries, SHARD_STEP);
	for (size_t i = 0; i < listed; i++)
		if (!(entries[i]->kind & ENTRY_ABSENT)) {
			entry_pin(entries[i]);
			list->entries[list->count++] = entries[i];
		}
	(void)shard_end(shard);
	if (is_first || walk->tables == tables)
		return;
	while (list->count > 0)
		tw_cache_entry_release(list->entries[--list->count]);
	*walk = (struct shard_walk){.tables = walk->tables};
}

/* Lists all of a shard before the first visit: a visitor may be slow, and the table may change.
 * Returns false if out of memory. */
static bool visit_list_fill(struct visit_list *list, struct shard *shard)
{
	struct shard_walk walk = {0};

	while (!walk.is_over) {
		if (!visit_list_reserve(list))
			return false;
		visit_list_add(list, shard, &walk);
	}
	return true;
}

/* Visits the entries of the list, until a visit returns 0, and releases all. Returns what the last
 * visit has returned. */
static int visit_list_visit(struct visit_list *list, struct tw_cache *cache,
			    int (*visit)(void *context, const struct tw_cache_entry *entry),
			    void *context)
{
	struct callback callback __attribute__((cleanup(callback_end))) =
		callback_begin(&cache->shared);
	int goes_on = 1;

	for (size_t i = 0; i < list->count; i++) {
		const struct tw_cache_entry *entry = list->entries[i];

		/* It is judged at its visit: those before it may have taken long. */
		if (goes_on && !shared_is_past(&cache->shared, entry_deadline(entry),
					       shared_coarse_now(&cache->shared)))
			goes_on = visit(context, entry);
		tw_cache_entry_release(entry);
	}
	list->count = 0;
	callback.has_returned = true;
	return goes_on;
}

enum tw_status tw_cache_each(struct tw_cache *cache,
			     int (*visit)(void *context, const struct tw_cache_entry *entry),
			     void *context)
{
	struct visit_list list = {0, 0, NULL};
	enum tw_status status = TW_OK;
	int goes_on = 1;

	if (!cache || !visit)
		return TW_INVALID;
	if (shared_is_closed(&cache->shared))
		return TW_CLOSED;
	for (unsigned i = 0; i <= cache->shard_mask && goes_on && status == TW_OK; i++) {
		if (!visit_list_fill(&list, &cache->shards[i]))
			status = TW_NO_MEMORY;
		goes_on = visit_list_visit(&list, cache, visit, context);
	}
	free(list.entries);
	return status;
}

/* ---- Limits ---- */

void cache_evict(struct tw_cache *cache, uint64_t weight, const struct tw_cache_entry *spared)
{
	/* A shard gives up AT_ONCE entries in its turn, so all shrink alike. */
	enum { MORE = 32, AT_ONCE = 8 };
	struct evicted sum = {0, 0};
	/* A shard may have its share in the entry that is spared: then the others make room. */
	bool below_share = false;
	unsigned without = 0;

	while (shared_is_over_limit(&cache->shared) &&
	       (sum.entries < MORE || sum.weight < weight)) {
		/* relaxed: any shard will do. */
		unsigned next =
			atomic_fetch_add_explicit(&cache->evict_next, 1, memory_order_relaxed);
		struct shard *shard = &cache->shards[next & cache->shard_mask];
		struct evicted evicted;

		shard_begin_again(shard);
		evicted = shard_evict(shard, AT_ONCE, below_share, spared,
				      tw_now(cache->shared.wheel));
		(void)shard_end(shard);
		sum.entries += evicted.entries;
		sum.weight += evicted.weight;
		without = evicted.entries > 0 ? 0 : without + 1;
		if (without <= cache->shard_mask)
			continue;
		if (below_share)
			break;
		below_share = true;
		without = 0;
	}
}

void cache_set_limits(struct tw_cache *cache, uint64_t max_entries, uint64_t max_bytes)
{
	struct pool *pool = cache->shared.pool;

	/* One lock for all of them: of two calls at once one sets them last. A sum up to a limit
	 * does not overflow. */
	pthread_mutex_lock(&pool->lock);
	counter_set(&cache->shared.max_entries, max_entries < INT64_MAX ? max_entries : INT64_MAX);
	counter_set(&cache->shared.max_bytes, max_bytes < INT64_MAX ? max_bytes : INT64_MAX);
	pool->limit = max_bytes;
	pthread_mutex_unlock(&pool->lock);
}

enum tw_status tw_cache_set_limit(struct tw_cache *cache, uint64_t max_entries, uint64_t max_bytes)
{
	if (!cache)
		return TW_INVALID;
	if (shared_is_closed(&cache->shared))
		return TW_CLOSED;
	/* The policy knows no entries. */
	if (!cache->shards[0].policy.is_on)
		return TW_INVALID;
	cache_set_limits(cache, max_entries, max_bytes);
	cache_evict(cache, UINT64_MAX, NULL);
	return TW_OK;
}

/* ---- Statistics ---- */

/* Adds the shard's part, and the bytes of its spare cells to *spare. */
static void shard_sum(struct shard *shard, struct tw_cache_stats *stats, uint64_t *spare)
{
	const struct flights *flights = &shard->flights;

	turn_lock_take(&shard->lock);
	stats->loads_waiting += flights->queued;
	stats->loads_running += flights->count - flights->queued;
	stats->refused += shard->refused;
	/* All that came in is there still or was removed. */
	stats->inserts += shard->table->count;
	*spare += shard->spare.bytes;
	stats->memory += shard_table_bytes(shard) + ghost_bytes(&shard->policy.ghost);
	stats->memory_in_use += table_bytes(shard->table) + ghost_bytes(&shard->policy.ghost);
	for (int i = 0; i < TW_CACHE_CAUSES; i++) {
		stats->inserts += shard->removed[i];
		stats->removed[i] += shard->removed[i];
	}
	turn_lock_let_go(&shard->lock);
}

/* Adds the pool's memory, after that of the shards. */
static void cache_sum_memory(struct tw_cache *cache, struct tw_cache_stats *stats, uint64_t spare)
{
	struct pool *pool = cache->shared.pool;
	uint64_t mapped = counter_read(&pool->mapped);
	uint64_t used;

	pthread_mutex_lock(&pool->lock);
	used = pool->used + mapped;
	stats->memory += pool->memory + mapped;
	pthread_mutex_unlock(&pool->lock);
	stats->memory_in_use += used > spare ? used - spare : 0;
}

enum tw_status tw_cache_get_stats(struct tw_cache *cache, struct tw_cache_stats *stats)
{
	uint64_t sums[CALLER_COUNTS] = {0};
	uint64_t spare = 0;

	if (!cache || !stats)
		return TW_INVALID;
	*stats = (struct tw_cache_stats){0};
	stats->memory_in_use = callers_sum(&cache->shared.callers, sums);
	stats->memory = stats->memory_in_use;
	stats->hits = sums[COUNT_HITS];
	stats->misses = sums[COUNT_MISSES];
	stats->absent = sums[COUNT_ABSENT];
	stats->loads = sums[COUNT_LOADS];
	stats->refreshes = sums[COUNT_REFRESHES];
	stats->load_errors = sums[COUNT_LOAD_ERRORS];
	stats->load_waits = sums[COUNT_LOAD_WAITS];
	stats->wait_timeouts = sums[COUNT_WAIT_TIMEOUTS];
	stats->loads_ended = sums[COUNT_LOADS_ENDED];
	stats->load_time = (tw_duration)sums[COUNT_LOAD_TIME];
	stats->stale = sums[COUNT_STALE];
	for (unsigned i = 0; i <= cache->shard_mask; i++)
		shard_sum(&cache->shards[i], stats, &spare);
	cache_sum_memory(cache, stats, spare);
	stats->notified = counter_read(&cache->removals.reported);
	stats->queued_removals = removals_waiting(&cache->removals);
	stats->entries = counter_read(&cache->shared.entries);
	stats->bytes = counter_read(&cache->shared.bytes);
	return TW_OK;
}

/* ---- As text for Prometheus ---- */

#define CACHE_METRIC(kind, name, field, help) \
	METRIC(METRIC_##kind, tw_cache_stats, name, field, help)

static const struct metric cache_metrics[] = {
	CACHE_METRIC(COUNT, "hits", hits, "Lookups that found their key."),
	CACHE_METRIC(COUNT, "misses", misses, "Lookups whose key was missing or had expired."),
	CACHE_METRIC(COUNT, "absent", absent, "Lookups that found a stored absence."),
	CACHE_METRIC(COUNT, "loads", loads, "Keys for which a loader was called."),
	CACHE_METRIC(COUNT, "refreshes", refreshes, "Loads of keys that still had a value."),
	CACHE_METRIC(COUNT, "loads_ended", loads_ended, "Loads that have ended."),
	CACHE_METRIC(SUM, "load_seconds", load_time, "The time that these took."),
	CACHE_METRIC(COUNT, "load_errors", load_errors, "Loads that supplied no value."),
	CACHE_METRIC(COUNT, "load_waits", load_waits, "Takes that waited for another take's load."),
	CACHE_METRIC(COUNT, "wait_timeouts", wait_timeouts,
		     "Takes that timed out while a load was running."),
	CACHE_METRIC(COUNT, "stale", stale,
		     "Takes that returned an expired value after a failed load."),
	CACHE_METRIC(COUNT, "inserts", inserts, "Entries inserted."),
	CACHE_METRIC(COUNT, "notified", notified, "Removals reported to the listener."),
	CACHE_METRIC(COUNT, "refused", refused,
		     "Values that were not stored, as each alone weighed more than the limit."),
	CACHE_METRIC(STATE, "entries", entries, "Entries in the cache."),
	CACHE_METRIC(STATE, "bytes", bytes, "Sum of the entries' weights."),
	CACHE_METRIC(STATE, "queued_removals", queued_removals,
		     "Removals that wait for the listener."),
	CACHE_METRIC(STATE, "loads_waiting", loads_waiting,
		     "Loads that wait for the wheel's pool."),
	CACHE_METRIC(STATE, "loads_running", loads_running, "Loads that run or are kept."),
	CACHE_METRIC(STATE, "memory_bytes", memory, "Memory that the cache has from the system."),
	CACHE_METRIC(STATE, "memory_in_use_bytes", memory_in_use,
		     "Memory in use by entries and tables."),
};

static void print_removed(struct metrics *metrics, const struct tw_cache_stats *stats)
{
	static const char *const causes[TW_CACHE_CAUSES] = {
		[TW_CAUSE_EXPLICIT] = "explicit", [TW_CAUSE_REPLACED] = "replaced",
		[TW_CAUSE_SIZE] = "size",         [TW_CAUSE_EXPIRED] = "expired",
		[TW_CAUSE_SHUTDOWN] = "shutdown",
	};

	metrics_print_head(metrics, "removed_total", "counter", "Entries removed, by cause.");
	for (int i = 0; i < TW_CACHE_CAUSES; i++)
		metrics_print(metrics, "%s_removed_total{cause=\"%s\"} %" PRIu64 "\n",
			      metrics->prefix, causes[i], stats->removed[i]);
}

enum tw_status tw_cache_write_metrics(struct tw_cache *cache, tw_write_fn *write, void *context,
				      const char *prefix)
{
	struct metrics metrics = {
		.prefix = prefix ? prefix : "tw_cache", .write = write, .context = context};
	struct tw_cache_stats stats;

	if (!cache || !write || !metrics_prefix_is_valid(metrics.prefix))
		return TW_INVALID;
	(void)tw_cache_get_stats(cache, &stats);
	metrics_print_list(&metrics, cache_metrics,
			   sizeof(cache_metrics) / sizeof(cache_metrics[0]), &stats);
	print_removed(&metrics, &stats);
	metrics_give(&metrics);
	return TW_OK;
}
