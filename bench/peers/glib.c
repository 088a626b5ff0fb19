/* SPDX-License-Identifier: MIT */
/*
 * This is GLib's GHashTable behind one GMutex. A limit makes it an LRU: a queue, to whose end a get
 * moves the entry. No entry expires.
 */
#include "peers/caches.h"

#include <glib.h>
#include <string.h>

struct entry {
	struct random_key key;
	struct cached value;
	GList link;
};

struct cache {
	GMutex lock; /* guards all below */
	GHashTable *table;
	GQueue queue; /* the next to leave comes first */
	uint64_t limit;
};

/* The keys are random: a word of them is a hash. */
static guint hash(gconstpointer key)
{
	return (guint)((const struct random_key *)key)->words[0];
}

static gboolean equal(gconstpointer left, gconstpointer right)
{
	return memcmp(left, right, sizeof(struct random_key)) == 0;
}

static void *open_cache(uint64_t limit)
{
	struct cache *cache = g_new0(struct cache, 1);

	g_mutex_init(&cache->lock);
	g_queue_init(&cache->queue);
	cache->table = g_hash_table_new_full(hash, equal, NULL, g_free);
	cache->limit = limit;
	return cache;
}

static struct entry *find(struct cache *cache, const struct random_key *key)
{
	struct entry *entry = g_hash_table_lookup(cache->table, key);

	if (entry && cache->limit) {
		g_queue_unlink(&cache->queue, &entry->link);
		g_queue_push_tail_link(&cache->queue, &entry->link);
	}
	return entry;
}

static void add(struct cache *cache, const struct random_key *key, const struct cached *value)
{
	struct entry *entry = g_new0(struct entry, 1);

	*entry = (struct entry){.key = *key, .value = *value, .link = {.data = entry}};
	g_hash_table_insert(cache->table, &entry->key, entry);
	if (!cache->limit)
		return;
	g_queue_push_tail_link(&cache->queue, &entry->link);
	if (g_hash_table_size(cache->table) > cache->limit)
		g_hash_table_remove(cache->table, g_queue_pop_head_link(&cache->queue)->data);
}

static void set(void *argument, const struct random_key *key, const struct cached *value)
{
	struct cache *cache = argument;
	struct entry *entry;

	g_mutex_lock(&cache->lock);
	entry = find(cache, key);
	if (entry)
		entry->value = *value;
	else
		add(cache, key, value);
	g_mutex_unlock(&cache->lock);
}

static bool get(void *argument, const struct random_key *key, struct cached *value)
{
	struct cache *cache = argument;
	struct entry *entry;

	g_mutex_lock(&cache->lock);
	entry = find(cache, key);
	if (entry)
		*value = entry->value;
	g_mutex_unlock(&cache->lock);
	return entry != NULL;
}

int main(int argc, char **argv)
{
	return caches_ask(
		&(struct caches_peer){
			.name = "GLib and a mutex", .open = open_cache, .set = set, .get = get},
		argv[argc - 1]);
}
