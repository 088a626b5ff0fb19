/* SPDX-License-Identifier: MIT */
/* These tests take the calls one by one, with arguments, keys and values of all kinds. */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_script.h"
#include "support/stats.h"

#include "cache/cache.h" /* for keys that collide */

CACHED(inline_and_threads, reserved_fields_of_statistics_become_0, TW_HOUR)
{
	struct tw_cache_stats stats;

	memset(&stats, 0xff, sizeof(stats));
	assert_status(tw_cache_get_stats(recorder->cache, &stats), TW_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(stats.reserved[i], 0);
}

/* Jitter of a very short lifetime rounds to nothing, of a very long one exceeds the clock. */
TEST(once, lifetimes_at_the_ends_of_the_clock_keep_to_it_with_jitter)
{
	enum { KEYS = 64 };
	const struct tw_cache_options options = {.jitter = 0.5, .name = "ends"};
	struct tw_cache *cache;

	assert_status(tw_cache_create(&cache, TW_HOUR, &options), TW_OK);
	for (int key = 0; key < KEYS; key++) {
		assert_status(
			tw_cache_set_with_expire(cache, &key, sizeof(key), "v", 1, TW_FOREVER),
			TW_OK);
		assert_true(deadline_of(cache, &key, sizeof(key)) == TW_FOREVER);
		assert_status(
			tw_cache_set_with_expire(cache, &key, sizeof(key), "v", 1, TW_FOREVER - 1),
			TW_OK);
		assert_true(deadline_of(cache, &key, sizeof(key)) > TW_FOREVER / 4);
		assert_status(tw_cache_set_with_expire(cache, &key, sizeof(key), "v", 1, 1), TW_OK);
		assert_true(deadline_of(cache, &key, sizeof(key)) == 0);
	}
	tw_cache_destroy(cache);
}

CACHE_SCRIPT(inline_and_threads, add_and_replace_look_whether_the_key_is_there, TW_HOUR,
	     "replace key no 1h = NOT_FOUND; get key = NOT_FOUND; add key added 10;"
	     "add key again 1h = EXISTS; get key = added; replace key replaced 20;"
	     "get key = replaced; pass 20; replace key no 1h = NOT_FOUND; add key new 1h;"
	     "get key = new")

CACHED(inline_and_threads, keys_and_values_are_copied, TW_HOUR)
{
	char key[] = "key";
	char value[] = "value";

	assert_status(tw_cache_set(recorder->cache, key, 3, value, 5), TW_OK);
	memset(key, 'x', 3);
	memset(value, 'x', 5);
	assert_holds(recorder, "key", "value");
	assert_holds_none(recorder, "xxx");
}

CACHED(inline_and_threads, keys_with_zero_bytes_are_whole_keys, TW_HOUR)
{
	/* All are prefixes of these bytes, and keys of the same size with one other byte. */
	unsigned char key[40] = {0};
	size_t number;

	for (size_t size = 1; size <= sizeof(key); size++)
		assert_status(tw_cache_set(recorder->cache, key, size, &size, sizeof(size)), TW_OK);
	for (size_t byte = 0; byte < sizeof(key); byte++) {
		key[byte] = 1;
		number = 100 + byte;
		assert_status(
			tw_cache_set(recorder->cache, key, sizeof(key), &number, sizeof(number)),
			TW_OK);
		key[byte] = 0;
	}
	assert_int_equal(cache_stats(recorder).entries, 2 * sizeof(key));
	for (size_t size = 1; size <= sizeof(key); size++) {
		assert_status(
			tw_cache_get(recorder->cache, key, size, &number, sizeof(number), NULL),
			TW_OK);
		assert_int_equal(number, size);
	}
	for (size_t byte = 0; byte < sizeof(key); byte++) {
		key[byte] = 1;
		assert_status(tw_cache_get(recorder->cache, key, sizeof(key), &number,
					   sizeof(number), NULL),
			      TW_OK);
		assert_int_equal(number, 100 + byte);
		key[byte] = 0;
	}
}

CACHED(inline_and_threads, keys_of_all_sizes_are_found, TW_HOUR)
{
	static char key[TW_KEY_SIZE_MAX];
	size_t found;

	memset(key, 'k', sizeof(key));
	for (size_t size = 1; size <= sizeof(key); size += size < 300 ? 1 : size / 3)
		assert_status(tw_cache_set(recorder->cache, key, size, &size, sizeof(size)), TW_OK);
	assert_status(tw_cache_set(recorder->cache, key, sizeof(key), "longest", 8), TW_OK);
	for (size_t size = 1; size < sizeof(key); size += size < 300 ? 1 : size / 3) {
		assert_status(tw_cache_get(recorder->cache, key, size, &found, sizeof(found), NULL),
			      TW_OK);
		assert_int_equal(found, size);
	}
	assert_status(tw_cache_get(recorder->cache, key, sizeof(key), &found, 8, NULL), TW_OK);
	assert_memory_equal(&found, "longest", 8);
}

/* Checks that the value's beginning was copied, and nothing beyond it was written. */
static void assert_copied(struct tw_cache *cache, const char *key, const unsigned char *value,
			  size_t size, size_t capacity)
{
	unsigned char *buffer = malloc(capacity + 1);
	size_t copied = size < capacity ? size : capacity;
	size_t reported = 99;

	assert_non_null(buffer);
	buffer[copied] = 0xee;
	assert_status(tw_cache_get(cache, key, strlen(key), buffer, capacity, &reported),
		      capacity < size ? TW_TRUNCATED : TW_OK);
	assert_int_equal(reported, size);
	assert_int_equal(memcmp(buffer, value, copied), 0);
	assert_int_equal(buffer[copied], 0xee);
	free(buffer);
}

static void assert_pinned(struct cache_recorder *recorder, const char *key, const void *value,
			  size_t size)
{
	const struct tw_cache_entry *entry = cache_pinned(recorder, key);
	size_t reported;
	const void *bytes = tw_cache_entry_value(entry, &reported);

	assert_non_null(bytes);
	assert_int_equal(reported, size);
	assert_int_equal(memcmp(bytes, value, size), 0);
	tw_cache_entry_release(entry);
}

static void check_value(struct cache_recorder *recorder, const char *key,
			const unsigned char *value, size_t size)
{
	struct tw_cache *cache = recorder->cache;

	assert_status(tw_cache_set(cache, key, strlen(key), size > 0 ? value : NULL, size), TW_OK);
	assert_copied(cache, key, value, size, size);
	assert_copied(cache, key, value, size, size + 1);
	assert_copied(cache, key, value, size, 0);
	if (size > 0)
		assert_copied(cache, key, value, size, size - 1);
	assert_copied(cache, key, value, size, size / 2);
	assert_pinned(recorder, key, value, size);
	assert_int_equal(cache_stats(recorder).bytes, cache_weight(strlen(key), size));
	assert_status(tw_cache_delete(cache, key, strlen(key)), TW_OK);
}

TEST(inline_and_threads, values_of_all_sizes_come_back_whole_or_cut_to_the_buffer)
{
	static const size_t sizes[] = {255,   1000,  4096,  16383,   16384,
				       16385, 65536, 70000, 1 << 20, 16 << 20};
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	unsigned char *value = malloc(16 << 20);
	struct random random = random_from(1, 1);

	assert_non_null(value);
	for (size_t i = 0; i < 16 << 20; i++)
		value[i] = (unsigned char)(random.state += 7 + i / 253);
	/* Lookups of short values by keys of 8 to 16 bytes have a path of their own. */
	for (size_t size = 0; size <= 100; size++) {
		check_value(recorder, "key", value, size);
		check_value(recorder, "a usual key", value, size);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_value(recorder, "key", value, sizes[i]);
		check_value(recorder, "a usual key", value, sizes[i]);
	}
	free(value);
	cache_recorder_close(recorder);
}

/* On each path the key is read before the size is written. */
TEST(inline_and_threads, key_and_size_may_be_in_one_place)
{
	struct cache_recorder *recorder = cache_recorder_open(*state, TW_HOUR);
	struct cache_recorder *other = cache_recorder_open(*state, TW_HOUR);
	size_t place = 7;
	char buffer[64];

	assert_status(tw_cache_set(recorder->cache, &place, sizeof(place), "value", 5), TW_OK);
	for (int i = 0; i < 4; i++) {
		place = 7;
		assert_status(tw_cache_get(recorder->cache, &place, sizeof(place), buffer,
					   sizeof(buffer), &place),
			      TW_OK);
		assert_int_equal(place, 5);
		if (i % 2 == 0)
			assert_holds_none(other, "key");
	}
	cache_recorder_close(other);
	cache_recorder_close(recorder);
}

enum { COLLIDING = 300 };

/* Finds numbers whose hashes agree in these bits. */
static void find_colliding(struct tw_cache *cache, uint64_t mask, uint64_t *keys, size_t count)
{
	uint64_t wanted = 0;
	size_t found = 0;

	for (uint64_t key = 0; found < count; key++) {
		uint64_t hash = key_hash_wide(&cache->shared.seed, &key, sizeof(key)) & mask;

		if (found == 0)
			wanted = hash;
		if (hash == wanted)
			keys[found++] = key;
	}
}

static void assert_collisions_are_distinguished(const struct variant *variant, uint64_t mask,
						size_t count)
{
	struct cache_recorder *recorder =
		cache_recorder_open_with(variant, TW_HOUR, (struct tw_cache_options){.shards = 1});
	uint64_t keys[COLLIDING];
	uint64_t value;

	find_colliding(recorder->cache, mask, keys, count);
	/* The second round replaces them. */
	for (size_t i = 0; i < 2 * count; i++) {
		size_t number = i % count;

		assert_status(tw_cache_set(recorder->cache, &keys[number], sizeof(keys[number]),
					   &number, sizeof(number)),
			      TW_OK);
	}
	for (size_t i = 0; i < count; i += 2)
		assert_status(tw_cache_delete(recorder->cache, &keys[i], sizeof(keys[i])), TW_OK);
	for (size_t i = 0; i < count; i++) {
		assert_status(tw_cache_get(recorder->cache, &keys[i], sizeof(keys[i]), &value,
					   sizeof(value), NULL),
			      i % 2 == 0 ? TW_NOT_FOUND : TW_OK);
		if (i % 2 != 0)
			assert_int_equal(value, i);
	}
	assert_int_equal(cache_stats(recorder).entries, count / 2);
	cache_recorder_close(recorder);
}

TEST(inline_and_threads, keys_made_to_collide_are_distinguished)
{
	/* These share one bucket of a table of 8192; then one tag and nearly one bucket. */
	assert_collisions_are_distinguished(*state, 0x1fff, COLLIDING);
	assert_collisions_are_distinguished(*state, UINT64_C(0xffff000000000003), 60);
}

/* Usual sizes take a shorter path. */
TEST(once, keys_of_usual_size_have_the_hash_of_any)
{
	const unsigned char *key = (const unsigned char *)"a key of thirty-two bytes, or so";
	struct key_hash_seed seed;

	key_hash_seed_init(&seed);
	for (size_t size = 1; size <= 32; size++)
		assert_true(key_hash_wide(&seed, key, size) == key_hash_any(&seed, key, size));
}

/* The last word is padded by zeros, and no byte behind the copy changes. */
TEST(once, words_of_any_size_are_copied)
{
	unsigned char from[130];
	unsigned char to[130];

	for (size_t size = 1; size <= sizeof(to) - 2; size++) {
		_Alignas(8) unsigned char words[144];

		for (size_t i = 0; i < sizeof(from); i++)
			from[i] = (unsigned char)(i * 7 + size);
		memset(words, 0xee, sizeof(words));
		memset(to, 0xee, sizeof(to));
		words_store(words, from + 1, size);
		words_load(to + 1, words, size);
		assert_memory_equal(to + 1, from + 1, size);
		assert_int_equal(to[0], 0xee);
		assert_int_equal(to[size + 1], 0xee);
		for (size_t i = size; i < (size + 7) / 8 * 8; i++)
			assert_int_equal(words[i], 0);
		assert_int_equal(words[(size + 7) / 8 * 8], 0xee);
	}
}

/* With the secret the first product can be made 0: then the hash does not depend on the key. */
CACHED(inline_and_threads, keys_of_one_hash_are_distinguished, TW_HOUR)
{
	struct tw_cache *cache = recorder->cache;
	uint64_t key[2] = {cache->shared.seed.words[2], 0};
	uint64_t hash = key_hash_wide(&cache->shared.seed, key, sizeof(key));
	uint64_t value;

	for (key[1] = 0; key[1] < COLLIDING; key[1]++) {
		assert_true(key_hash_wide(&cache->shared.seed, key, sizeof(key)) == hash);
		assert_status(tw_cache_set(cache, key, sizeof(key), &key[1], 8), TW_OK);
	}
	for (key[1] = 0; key[1] < COLLIDING; key[1] += 3)
		assert_status(tw_cache_delete(cache, key, sizeof(key)), TW_OK);
	for (key[1] = 0; key[1] < COLLIDING; key[1]++) {
		assert_status(tw_cache_get(cache, key, sizeof(key), &value, 8, NULL),
			      key[1] % 3 == 0 ? TW_NOT_FOUND : TW_OK);
		if (key[1] % 3 != 0)
			assert_true(value == key[1]);
	}
	assert_int_equal(cache_stats(recorder).entries, COLLIDING / 3 * 2);
}

CACHED(inline_and_threads, many_keys_are_got_at_once, TW_HOUR)
{
	enum { MANY = 100 };
	struct tw_cache_lookup items[MANY];
	char values[MANY][4];
	int keys[MANY];
	size_t found = 0;

	for (int i = 0; i < MANY; i++) {
		keys[i] = i;
		items[i] = (struct tw_cache_lookup){&keys[i], sizeof(int), values[i], 4, 77, TW_OK};
		if (i % 3 != 0)
			assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), "value",
						   (size_t)(i % 3) * 2),
				      TW_OK);
	}
	items[50].capacity = 1;
	items[98].key_size = 0;
	items[97].buffer = NULL;
	assert_status(tw_cache_get_many(recorder->cache, items, MANY, &found), TW_OK);
	for (int i = 0; i < MANY; i++) {
		enum tw_status expected = i == 98 || i == 97 ? TW_INVALID
					  : i % 3 == 0       ? TW_NOT_FOUND
					  : i == 50          ? TW_TRUNCATED
							     : TW_OK;

		assert_status(items[i].status, expected);
		if (expected == TW_INVALID)
			continue;
		assert_int_equal(items[i].value_size, i % 3 * 2);
		assert_memory_equal(values[i], "valu",
				    i % 3 * 2 < (int)items[i].capacity ? i % 3 * 2 : 1);
	}
	assert_int_equal(found, 64);
	assert_int_equal(cache_stats(recorder).hits, 64);
	assert_int_equal(cache_stats(recorder).misses, 34);
	assert_status(tw_cache_get_many(recorder->cache, NULL, 0, NULL), TW_OK);
}

struct visits {
	struct cache_recorder *recorder;
	int seen[300];
	int count;
	int most; /* the visits after which it ends */
};

static int visit(void *context, const struct tw_cache_entry *entry)
{
	struct visits *visits = context;
	int key;
	int value;

	memcpy(&key, tw_cache_entry_key(entry, NULL), sizeof(key));
	memcpy(&value, tw_cache_entry_value(entry, NULL), sizeof(value));
	if (key != value)
		abort();
	visits->seen[key]++;
	/* The visitor may call the cache, for this entry and others. */
	if (tw_cache_delete(visits->recorder->cache, &key, sizeof(key)) != TW_OK ||
	    tw_cache_set(visits->recorder->cache, "another", 7, &key, sizeof(key)) != TW_OK ||
	    tw_cache_delete(visits->recorder->cache, "another", 7) != TW_OK)
		abort();
	return ++visits->count < visits->most;
}

CACHED(inline_and_threads, each_visits_what_may_be_read_once, TW_HOUR)
{
	struct visits visits = {.recorder = recorder, .most = 1000};
	struct tw_cache_stats stats;

	for (int i = 0; i < 300; i++)
		assert_status(tw_cache_set_with_expire(recorder->cache, &i, sizeof(i), &i,
						       sizeof(i),
						       i < 100 ? INTERVAL * 6 / 5 : TW_HOUR),
			      TW_OK);
	/* The entry is past its deadline, and not removed yet. */
	cache_pass(recorder, INTERVAL * 3 / 2);
	assert_status(tw_cache_each(recorder->cache, visit, &visits), TW_OK);
	for (int i = 0; i < 300; i++)
		assert_int_equal(visits.seen[i], i >= 100);
	stats = cache_stats(recorder);
	assert_int_equal(stats.hits + stats.misses, 0);
}

/* Lets time pass in each visit. */
static int visit_slowly(void *context, const struct tw_cache_entry *entry)
{
	struct visits *visits = context;

	if (tw_cache_entry_deadline(entry) <= tw_now(visits->recorder->wheel))
		abort();
	cache_pass(visits->recorder, INTERVAL);
	return ++visits->count < visits->most;
}

CACHED(inline_and_threads, each_visits_none_that_expires_before_its_turn, 10 * INTERVAL)
{
	struct visits visits = {.recorder = recorder, .most = 1000};

	for (int i = 0; i < 300; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), &i, sizeof(i)), TW_OK);
	assert_status(tw_cache_each(recorder->cache, visit_slowly, &visits), TW_OK);
	assert_int_equal(visits.count, 10);
}

/* Makes the calls that wait for callbacks. */
static int visit_and_destroy(void *context, const struct tw_cache_entry *entry)
{
	struct cache_recorder *recorder = context;

	assert_status(tw_cache_flush(recorder->cache), TW_INVALID);
	tw_cache_destroy(recorder->cache);
	return 1;
}

CACHED(inline_and_threads, visitor_ends_no_cache, TW_HOUR)
{
	cache_set(recorder, "key", "value");
	assert_status(tw_cache_each(recorder->cache, visit_and_destroy, recorder), TW_OK);
	assert_holds(recorder, "key", "value");
}

CACHED(inline_and_threads, each_ends_when_the_visitor_says_so, TW_HOUR)
{
	struct visits visits = {.recorder = recorder, .most = 7};

	for (int i = 0; i < 300; i++)
		assert_status(tw_cache_set(recorder->cache, &i, sizeof(i), &i, sizeof(i)), TW_OK);
	assert_status(tw_cache_each(recorder->cache, visit, &visits), TW_OK);
	assert_int_equal(visits.count, 7);
	assert_int_equal(cache_stats(recorder).entries, 293);
}

CACHED(inline_and_threads, counts_are_exact, 10 * INTERVAL)
{
	const struct tw_cache_entry *entry;
	struct tw_cache_stats stats;

	cache_set(recorder, "a", "1234");
	cache_set(recorder, "bb", "12");
	cache_set(recorder, "bb", "123");
	for (int i = 0; i < 5; i++)
		assert_status(cache_get(recorder, "a"), TW_OK);
	for (int i = 0; i < 3; i++)
		assert_holds_none(recorder, "none");
	entry = cache_pinned(recorder, "bb");
	tw_cache_entry_release(entry);
	assert_status(touch_key(recorder->cache, "a", 1, 20 * INTERVAL), TW_OK);
	stats = cache_stats(recorder);
	assert_cache_counts(recorder->cache, .hits = 6, .misses = 3, .inserts = 3, .entries = 2);
	assert_int_equal(stats.bytes, 2 * cache_weight(2, 4));
	cache_pass(recorder, INTERVAL * 21 / 2);
	assert_status(cache_get(recorder, "bb"), TW_NOT_FOUND);
	assert_int_equal(cache_stats(recorder).misses, 4);
	cache_pass(recorder, 2 * INTERVAL);
	stats = cache_stats(recorder);
	assert_int_equal(stats.entries, 1);
	assert_int_equal(stats.bytes, cache_weight(1, 4));
}

/* Some of each size are adjacent, and none overwrites another. */
CACHED_QUIET(inline, values_of_all_sizes_lie_side_by_side, TW_HOUR, .shards = 1)
{
	enum { LARGEST = 1300, OF_A_SIZE = 4 };
	struct tw_cache *cache = recorder->cache;
	static unsigned char value[LARGEST];
	static unsigned char found[LARGEST];

	for (int pass = 0; pass < 2; pass++)
		for (unsigned key = 0; key < OF_A_SIZE * LARGEST; key++) {
			size_t size = key / OF_A_SIZE + 1;

			memset(value, (int)key, size);
			if (pass == 0) {
				assert_status(tw_cache_set(cache, &key, sizeof(key), value, size),
					      TW_OK);
				continue;
			}
			assert_status(tw_cache_get(cache, &key, sizeof(key), found, size, NULL),
				      TW_OK);
			assert_memory_equal(found, value, size);
		}
	assert_status(tw_cache_clear(cache), TW_OK);
}
