/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "cache_trial.h"

#include <stdlib.h>
#include <string.h>

#include "recorder.h"

enum { TICK = 1000, VALUE_MOST = 600, MANY = 6 };

/* ---- Keys and values ---- */

/* Some short, some long. Returns the size. */
static size_t key_write(uint32_t key, char text[64])
{
	size_t size = key % 3 == 0 ? 1 : key % 3 == 1 ? 9 : 60;

	memset(text, 'k', size);
	text[0] = (char)('a' + key);
	return size;
}

static void value_write(unsigned char value[VALUE_MOST], uint32_t number, size_t size)
{
	memset(value, (int)(number % 251), size);
	memcpy(value, &number, sizeof(number));
}

/* The bytes are that value. */
static void check_value(const void *bytes, size_t size, uint32_t number)
{
	unsigned char value[VALUE_MOST];

	assert_true(size >= sizeof(number) && size <= VALUE_MOST);
	value_write(value, number, size);
	assert_memory_equal(bytes, value, size);
}

static uint32_t number_of(const struct tw_cache_entry *entry)
{
	uint32_t number;
	size_t size;
	const void *value = tw_cache_entry_value(entry, &size);

	assert_true(size >= sizeof(number));
	memcpy(&number, value, sizeof(number));
	check_value(value, size, number);
	return number;
}

static uint64_t weigh(void *context, const void *key, size_t key_size, const void *value,
		      size_t value_size)
{
	(void)context;
	(void)key;
	(void)value;
	return key_size + value_size;
}

/* ---- The model ---- */

static tw_duration after(tw_duration now, tw_duration lifetime)
{
	return lifetime > TW_FOREVER - now ? TW_FOREVER : now + lifetime;
}

static bool is_there(const struct cache_trial *trial, uint32_t key)
{
	const struct cache_trial_entry *entry = &trial->entries[key];

	return entry->number && entry->deadline > trial->now;
}

static bool is_absent(const struct cache_trial *trial, uint32_t key)
{
	return trial->absent[key] > trial->now;
}

static void model_start_idle(struct cache_trial *trial, struct cache_trial_entry *entry)
{
	tw_duration idle_end = after(trial->now, trial->options.idle);

	entry->deadline = trial->options.idle && idle_end < entry->end ? idle_end : entry->end;
}

static void model_use(struct cache_trial *trial, uint32_t key)
{
	trial->uses += !trial->of_many;
	trial->entries[key].used = trial->uses;
}

/* The key's entry is taken out by a call, for that cause unless it has expired. */
static void model_remove(struct cache_trial *trial, uint32_t key, enum tw_cache_cause cause)
{
	struct cache_trial_entry *entry = &trial->entries[key];

	trial->absent[key] = 0;
	if (!entry->number)
		return;
	entry->cause = is_there(trial, key) ? cause : TW_CAUSE_EXPIRED;
	assert_true(trial->leaving_count < sizeof(trial->leaving) / sizeof(trial->leaving[0]));
	trial->leaving[trial->leaving_count++] = *entry;
	entry->number = 0;
}

static void model_put(struct cache_trial *trial, const struct cache_trial_entry *entry)
{
	model_remove(trial, entry->key, TW_CAUSE_REPLACED);
	trial->entries[entry->key] = *entry;
	model_start_idle(trial, &trial->entries[entry->key]);
	model_use(trial, entry->key);
	trial->newest = entry->number;
	trial->inserts++;
}

static void model_lookup(struct cache_trial *trial, uint32_t key)
{
	if (is_there(trial, key)) {
		trial->hits++;
		model_use(trial, key);
		model_start_idle(trial, &trial->entries[key]);
	} else {
		trial->absences += is_absent(trial, key);
		trial->misses += !is_absent(trial, key);
	}
}

/* ---- Removals ---- */

/* One that a call has taken out. False: none has. */
static bool removal_expected(struct cache_trial *trial, uint32_t number, enum tw_cache_cause cause)
{
	for (size_t i = 0; i < trial->leaving_count; i++) {
		if (trial->leaving[i].number != number)
			continue;
		if (cause != TW_CAUSE_SIZE || !trial->of_many)
			assert_int_equal(cause, trial->leaving[i].cause);
		trial->leaving[i] = trial->leaving[--trial->leaving_count];
		return true;
	}
	return false;
}

static void on_remove(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	struct cache_trial *trial = context;
	uint32_t number = number_of(entry);
	struct cache_trial_entry *found = trial->entries;
	tw_duration late = trial->options.stale_if_error;

	trial->removed[cause]++;
	if (removal_expected(trial, number, cause))
		return;
	while (found < trial->entries + CACHE_TRIAL_KEYS && found->number != number)
		found++;
	assert_true(found < trial->entries + CACHE_TRIAL_KEYS);
	switch (cause) {
	case TW_CAUSE_SHUTDOWN:
		assert_true(trial->ending);
		break;
	case TW_CAUSE_EXPIRED:
		assert_true(tw_now(trial->wheel) >= found->deadline);
		/* Sooner where it had to make room. */
		if (tw_now(trial->wheel) < after(found->deadline, late))
			trial->evicted++;
		break;
	default:
		assert_int_equal(cause, TW_CAUSE_SIZE);
		assert_true(tw_now(trial->wheel) < found->deadline);
		trial->evicted++;
	}
	if (found->weight > trial->heaviest)
		trial->heaviest = found->weight;
	if (found->used > trial->oldest_left && number != trial->newest)
		trial->oldest_left = found->used;
	found->number = 0;
}

/* It had to be: with the last one that left there was too much. */
static void check_evictions(const struct cache_trial *trial, uint64_t count, uint64_t weight)
{
	const struct tw_cache_options *options = &trial->options;

	assert_true((options->max_entries && count + 1 > options->max_entries) ||
		    (options->max_bytes && weight + trial->heaviest > options->max_bytes));
	if (options->policy != TW_POLICY_LRU || trial->was_without_limit)
		return;
	for (uint32_t key = 0; key < CACHE_TRIAL_KEYS; key++)
		if (trial->entries[key].number)
			assert_true(trial->entries[key].used >= trial->oldest_left);
}

/* What the call has caused is there, and no more than the limits allow. */
static void settle_cache(struct cache_trial *trial)
{
	tw_duration tick = trial->now / TICK * TICK;
	uint64_t count = 0;
	uint64_t weight = 0;

	trial->was_without_limit |= !trial->options.max_entries && !trial->options.max_bytes;
	assert_status(tw_cache_flush(trial->cache), TW_OK);
	assert_int_equal(trial->leaving_count, 0);
	for (uint32_t key = 0; key < CACHE_TRIAL_KEYS; key++) {
		const struct cache_trial_entry *entry = &trial->entries[key];

		if (!entry->number)
			continue;
		assert_true(after(entry->deadline, trial->options.stale_if_error) > tick);
		count++;
		weight += entry->weight;
	}
	if (!trial->options.negative_expire)
		assert_int_equal(tw_cache_count(trial->cache), count);
	assert_true(!trial->options.max_entries || count <= trial->options.max_entries);
	assert_true(!trial->options.max_bytes || weight <= trial->options.max_bytes);
	if (trial->evicted && !trial->of_many)
		check_evictions(trial, count, weight);
	trial->newest = 0;
	trial->of_many = false;
	trial->evicted = 0;
	trial->heaviest = 0;
	trial->oldest_left = 0;
}

/* ---- Calls ---- */

static uint32_t random_key(struct cache_trial *trial)
{
	return (uint32_t)random_below(&trial->random, CACHE_TRIAL_KEYS);
}

static tw_duration random_lifetime(struct cache_trial *trial)
{
	switch (random_below(&trial->random, 4)) {
	case 0:
		return random_between(&trial->random, 1, 2 * TICK);
	case 1:
		return TICK * random_between(&trial->random, 1, 200);
	case 2:
		return random_between(&trial->random, 1, 50 * TICK);
	default:
		return random_once_in(&trial->random, 4)
			       ? TW_FOREVER - random_between(&trial->random, 0, 1)
			       : 10 * TICK;
	}
}

/* A value with a number of its own; not put anywhere yet. */
static struct cache_trial_entry make_entry(struct cache_trial *trial, uint32_t key,
					   tw_duration lifetime, unsigned char value[VALUE_MOST])
{
	char text[64];
	struct cache_trial_entry entry = {
		.number = ++trial->numbers,
		.key = key,
		.size = (size_t)random_between(&trial->random, 4, VALUE_MOST),
		.end = after(trial->now, lifetime),
	};

	/* That far ahead is never. */
	if (lifetime > TW_FOREVER - 2)
		entry.end = TW_FOREVER;
	entry.weight = key_write(key, text) + entry.size;
	value_write(value, entry.number, entry.size);
	return entry;
}

static bool is_too_heavy(const struct cache_trial *trial, const struct cache_trial_entry *entry)
{
	return trial->options.max_bytes && entry->weight > trial->options.max_bytes;
}

enum way { WAY_SET, WAY_EXPIRE, WAY_ADD, WAY_REPLACE, WAY_ADOPT, WAYS };

static void free_adopted(void *value, size_t size, void *context)
{
	(void)size;
	(void)context;
	free(value);
}

static enum tw_status adopt(struct cache_trial *trial, const char *key, size_t key_size,
			    const struct cache_trial_entry *entry, const void *value,
			    tw_duration lifetime)
{
	void *copy = malloc(entry->size);
	enum tw_status status;

	assert_non_null(copy);
	memcpy(copy, value, entry->size);
	status = tw_cache_adopt(trial->cache, key, key_size, copy, entry->size, entry->weight,
				free_adopted, NULL, lifetime);
	if (status != TW_OK)
		free(copy);
	return status;
}

static void call_set(struct cache_trial *trial)
{
	enum way way = (enum way)random_below(&trial->random, WAYS);
	uint32_t key = random_key(trial);
	tw_duration lifetime = way == WAY_SET ? trial->expire : random_lifetime(trial);
	unsigned char value[VALUE_MOST];
	struct cache_trial_entry entry = make_entry(trial, key, lifetime, value);
	enum tw_status expected = TW_OK;
	enum tw_status status = TW_OK;
	char text[64];
	size_t size = key_write(key, text);

	if (way == WAY_SET)
		status = tw_cache_set(trial->cache, text, size, value, entry.size);
	else if (way == WAY_EXPIRE)
		status = tw_cache_set_with_expire(trial->cache, text, size, value, entry.size,
						  lifetime);
	else if (way == WAY_ADD)
		status = tw_cache_add(trial->cache, text, size, value, entry.size, lifetime);
	else if (way == WAY_REPLACE)
		status = tw_cache_replace(trial->cache, text, size, value, entry.size, lifetime);
	else
		status = adopt(trial, text, size, &entry, value, lifetime);
	if (is_too_heavy(trial, &entry))
		expected = TW_FULL;
	else if (way == WAY_ADD && is_there(trial, key))
		expected = TW_EXISTS;
	else if (way == WAY_REPLACE && !is_there(trial, key))
		expected = TW_NOT_FOUND;
	/* Of two reasons to refuse it, either may be told. */
	if (expected == TW_FULL && (way == WAY_ADD || way == WAY_REPLACE))
		assert_true(status != TW_OK);
	else
		assert_status(status, expected);
	if (status == TW_OK)
		model_put(trial, &entry);
}

/* Of these calls the order among their keys is not promised. */
static void begin_many(struct cache_trial *trial)
{
	trial->of_many = true;
	trial->uses++;
}

static void call_set_many(struct cache_trial *trial)
{
	size_t count = random_below(&trial->random, MANY) + 1;
	struct cache_trial_entry entries[MANY];
	struct tw_cache_item items[MANY];
	unsigned char values[MANY][VALUE_MOST];
	char keys[MANY][64];
	size_t set;
	size_t expected = 0;

	begin_many(trial);
	for (size_t i = 0; i < count; i++) {
		uint32_t key = random_key(trial);
		tw_duration lifetime = random_lifetime(trial);

		entries[i] = make_entry(trial, key, lifetime, values[i]);
		items[i] = (struct tw_cache_item){.key = keys[i],
						  .key_size = key_write(key, keys[i]),
						  .value = values[i],
						  .value_size = entries[i].size,
						  .expire = lifetime};
	}
	assert_status(tw_cache_set_many(trial->cache, items, count, &set), TW_OK);
	for (size_t i = 0; i < count; i++) {
		bool fine = !is_too_heavy(trial, &entries[i]);

		assert_status(items[i].status, fine ? TW_OK : TW_FULL);
		expected += fine;
		if (fine)
			model_put(trial, &entries[i]);
	}
	assert_int_equal(set, expected);
}

static void call_get(struct cache_trial *trial)
{
	uint32_t key = random_key(trial);
	size_t room = random_once_in(&trial->random, 4)
			      ? (size_t)random_below(&trial->random, VALUE_MOST)
			      : VALUE_MOST;
	const struct cache_trial_entry *entry = &trial->entries[key];
	bool there = is_there(trial, key);
	unsigned char expected[VALUE_MOST];
	unsigned char buffer[VALUE_MOST];
	size_t size = 1;
	char text[64];
	size_t key_size = key_write(key, text);
	enum tw_status status = tw_cache_get(trial->cache, text, key_size, buffer, room, &size);

	model_lookup(trial, key);
	if (!there) {
		assert_status(status, TW_NOT_FOUND);
		assert_int_equal(size, 0);
		return;
	}
	assert_status(status, entry->size > room ? TW_TRUNCATED : TW_OK);
	assert_int_equal(size, entry->size);
	value_write(expected, entry->number, entry->size);
	assert_memory_equal(buffer, expected, size < room ? size : room);
}

static void call_get_many(struct cache_trial *trial)
{
	size_t count = random_below(&trial->random, MANY) + 1;
	struct tw_cache_lookup items[MANY];
	unsigned char buffers[MANY][VALUE_MOST];
	uint32_t keys[MANY];
	char texts[MANY][64];
	size_t found;
	size_t expected = 0;

	begin_many(trial);
	for (size_t i = 0; i < count; i++) {
		keys[i] = random_key(trial);
		items[i] = (struct tw_cache_lookup){.key = texts[i],
						    .key_size = key_write(keys[i], texts[i]),
						    .buffer = buffers[i],
						    .capacity = VALUE_MOST};
	}
	assert_status(tw_cache_get_many(trial->cache, items, count, &found), TW_OK);
	for (size_t i = 0; i < count; i++) {
		bool there = is_there(trial, keys[i]);

		assert_status(items[i].status, there ? TW_OK : TW_NOT_FOUND);
		if (there)
			check_value(buffers[i], items[i].value_size,
				    trial->entries[keys[i]].number);
		expected += there;
		model_lookup(trial, keys[i]);
	}
	assert_int_equal(found, expected);
}

static void unpin(struct cache_trial *trial, size_t place)
{
	if (!trial->pins[place].entry)
		return;
	assert_int_equal(number_of(trial->pins[place].entry), trial->pins[place].number);
	tw_cache_entry_release(trial->pins[place].entry);
	trial->pins[place].entry = NULL;
}

/* The entry, of which a pin is ours, is the key's. */
static void keep_pin(struct cache_trial *trial, uint32_t number, const struct tw_cache_entry *entry)
{
	size_t place = random_below(&trial->random, CACHE_TRIAL_PINS);

	assert_int_equal(number_of(entry), number);
	unpin(trial, place);
	trial->pins[place].entry = entry;
	trial->pins[place].number = number;
}

enum look { LOOK_ACQUIRE, LOOK_PEEK, LOOK_POP, LOOKS };

static void call_acquire(struct cache_trial *trial)
{
	enum look look = (enum look)random_below(&trial->random, LOOKS);
	uint32_t key = random_key(trial);
	bool there = is_there(trial, key);
	uint32_t number = trial->entries[key].number;
	const struct tw_cache_entry *entry = (const void *)trial;
	char text[64];
	size_t size = key_write(key, text);
	enum tw_status status;

	if (look == LOOK_ACQUIRE)
		status = tw_cache_acquire(trial->cache, text, size, &entry);
	else if (look == LOOK_PEEK)
		status = tw_cache_peek(trial->cache, text, size, &entry);
	else
		status = tw_cache_pop(trial->cache, text, size, &entry);
	if (look == LOOK_ACQUIRE)
		model_lookup(trial, key);
	assert_status(status, there ? TW_OK : TW_NOT_FOUND);
	if (there) {
		assert_true(tw_cache_entry_deadline(entry) == trial->entries[key].deadline);
		keep_pin(trial, number, entry);
	} else {
		assert_null(entry);
	}
	if (look == LOOK_POP)
		model_remove(trial, key, TW_CAUSE_EXPLICIT);
}

static void call_remaining(struct cache_trial *trial)
{
	uint32_t key = random_key(trial);
	bool there = is_there(trial, key);
	tw_duration deadline = trial->entries[key].deadline;
	tw_duration remaining = -1;
	char text[64];
	size_t size = key_write(key, text);

	assert_status(tw_cache_remaining(trial->cache, text, size, &remaining),
		      there ? TW_OK : TW_NOT_FOUND);
	if (!there)
		assert_int_equal(remaining, 0);
	else if (deadline == TW_FOREVER)
		assert_true(remaining == TW_FOREVER);
	else
		assert_true(remaining == deadline - trial->now);
}

static void call_delete(struct cache_trial *trial)
{
	uint32_t key = random_key(trial);
	bool there = is_there(trial, key);
	char text[64];
	size_t size = key_write(key, text);

	assert_status(tw_cache_delete(trial->cache, text, size), there ? TW_OK : TW_NOT_FOUND);
	model_remove(trial, key, TW_CAUSE_EXPLICIT);
}

static void call_delete_many(struct cache_trial *trial)
{
	size_t count = random_below(&trial->random, MANY) + 1;
	struct tw_cache_key items[MANY];
	uint32_t keys[MANY];
	char texts[MANY][64];
	size_t deleted;
	size_t expected = 0;

	for (size_t i = 0; i < count; i++) {
		keys[i] = random_key(trial);
		items[i] = (struct tw_cache_key){.key = texts[i],
						 .key_size = key_write(keys[i], texts[i])};
	}
	assert_status(tw_cache_delete_many(trial->cache, items, count, &deleted), TW_OK);
	for (size_t i = 0; i < count; i++) {
		bool there = is_there(trial, keys[i]);

		assert_status(items[i].status, there ? TW_OK : TW_NOT_FOUND);
		expected += there;
		model_remove(trial, keys[i], TW_CAUSE_EXPLICIT);
	}
	assert_int_equal(deleted, expected);
}

static void call_touch(struct cache_trial *trial)
{
	uint32_t key = random_key(trial);
	bool there = is_there(trial, key);
	tw_duration lifetime = random_lifetime(trial);
	char text[64];
	size_t size = key_write(key, text);

	assert_status(tw_cache_touch(trial->cache, text, size, lifetime),
		      there ? TW_OK : TW_NOT_FOUND);
	if (!there)
		return;
	trial->entries[key].end =
		lifetime > TW_FOREVER - 2 ? TW_FOREVER : after(trial->now, lifetime);
	model_start_idle(trial, &trial->entries[key]);
	model_use(trial, key);
}

struct computing {
	struct cache_trial *trial;
	enum tw_cache_verdict verdict;
	struct cache_trial_entry *entry;
	const void *value;
	tw_duration lifetime;
};

static enum tw_cache_verdict compute(void *context, const struct tw_cache_entry *entry,
				     struct tw_cache_computed *computed)
{
	struct computing *computing = context;
	uint32_t key = computing->entry->key;

	assert_int_equal(entry != NULL, is_there(computing->trial, key));
	if (entry)
		assert_int_equal(number_of(entry), computing->trial->entries[key].number);
	computed->value = computing->value;
	computed->value_size = computing->entry->size;
	computed->expire = computing->lifetime;
	return computing->verdict;
}

static void call_compute(struct cache_trial *trial)
{
	unsigned char value[VALUE_MOST];
	uint32_t key = random_key(trial);
	struct computing computing = {
		.trial = trial,
		.verdict = (enum tw_cache_verdict)random_below(&trial->random, 3),
		.value = value,
		.lifetime = random_lifetime(trial),
	};
	struct cache_trial_entry entry = make_entry(trial, key, computing.lifetime, value);
	char text[64];
	size_t size = key_write(key, text);
	bool full = computing.verdict == TW_CACHE_REPLACE && is_too_heavy(trial, &entry);

	computing.entry = &entry;
	assert_status(tw_cache_compute(trial->cache, text, size, compute, &computing),
		      full ? TW_FULL : TW_OK);
	if (computing.verdict == TW_CACHE_REPLACE && !full)
		model_put(trial, &entry);
	else if (computing.verdict == TW_CACHE_DELETE)
		model_remove(trial, key, TW_CAUSE_EXPLICIT);
}

struct visit {
	struct cache_trial *trial;
	bool met[CACHE_TRIAL_KEYS];
	uint64_t left; /* to be visited */
};

static int visit_entry(void *context, const struct tw_cache_entry *entry)
{
	struct visit *visit = context;
	uint32_t number = number_of(entry);
	uint32_t key = 0;

	while (key < CACHE_TRIAL_KEYS && visit->trial->entries[key].number != number)
		key++;
	assert_true(key < CACHE_TRIAL_KEYS && is_there(visit->trial, key) && !visit->met[key]);
	visit->met[key] = true;
	return 1;
}

static void call_each(struct cache_trial *trial)
{
	struct visit visit = {.trial = trial};

	assert_status(tw_cache_each(trial->cache, visit_entry, &visit), TW_OK);
	for (uint32_t key = 0; key < CACHE_TRIAL_KEYS; key++)
		assert_int_equal(visit.met[key], is_there(trial, key));
}

static void call_clear(struct cache_trial *trial)
{
	assert_status(tw_cache_clear(trial->cache), TW_OK);
	for (uint32_t key = 0; key < CACHE_TRIAL_KEYS; key++)
		model_remove(trial, key, TW_CAUSE_EXPLICIT);
}

static void call_set_limit(struct cache_trial *trial)
{
	/* What is remembered of absent keys counts, too, and nothing tells when it leaves. */
	if (trial->options.negative_expire)
		return;
	trial->options.max_entries = random_below(&trial->random, CACHE_TRIAL_KEYS + 2);
	trial->options.max_bytes =
		random_once_in(&trial->random, 2) ? random_below(&trial->random, 4000) : 0;
	assert_status(tw_cache_set_limit(trial->cache, trial->options.max_entries,
					 trial->options.max_bytes),
		      TW_OK);
}

static void call_nonsense(struct cache_trial *trial)
{
	static const char key[TW_KEY_SIZE_MAX + 1];
	const struct tw_cache_entry *entry;
	struct tw_cache *cache = trial->cache;
	tw_duration lifetime = -random_between(&trial->random, 0, 2);

	assert_status(tw_cache_set(cache, key, 0, "v", 1), TW_INVALID);
	assert_status(tw_cache_set(cache, key, sizeof(key), "v", 1), TW_INVALID);
	assert_status(tw_cache_set(cache, "k", 1, NULL, 1), TW_INVALID);
	assert_status(tw_cache_set_with_expire(cache, "k", 1, "v", 1, lifetime), TW_INVALID);
	assert_status(tw_cache_add(cache, "k", 1, "v", 1, lifetime), TW_INVALID);
	assert_status(tw_cache_touch(cache, "k", 1, lifetime), TW_INVALID);
	assert_status(tw_cache_get(cache, key, 0, NULL, 0, NULL), TW_INVALID);
	assert_status(tw_cache_get(cache, "k", 1, NULL, 1, NULL), TW_INVALID);
	assert_status(tw_cache_delete(cache, NULL, 1), TW_INVALID);
	assert_status(tw_cache_acquire(cache, "k", 0, &entry), TW_INVALID);
	assert_status(tw_cache_take(cache, "k", 1, NULL, NULL, 0, &entry), TW_INVALID);
	assert_status(tw_cache_compute(cache, "k", 1, NULL, NULL), TW_INVALID);
}

/* ---- Takes ---- */

static enum tw_status load(void *context, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct cache_trial *trial = context;
	unsigned char value[VALUE_MOST];
	struct cache_trial_entry own;

	if (trial->load_sets) {
		own = make_entry(trial, trial->load_key, trial->expire, value);
		if (!is_too_heavy(trial, &own)) {
			assert_status(tw_cache_set(trial->cache, key, key_size, value, own.size),
				      TW_OK);
			model_put(trial, &own);
		} else {
			trial->load_sets = false;
		}
	}
	trial->loaded = make_entry(trial, trial->load_key, trial->expire, value);
	if (trial->load_answer == TW_OK)
		assert_status(tw_cache_load_copy(loading, value, trial->loaded.size, 0), TW_OK);
	return trial->load_answer;
}

static void call_take(struct cache_trial *trial)
{
	static const enum tw_status answers[] = {TW_OK, TW_OK, TW_NOT_FOUND, TW_SYSTEM};
	uint32_t key = random_key(trial);
	bool there = is_there(trial, key);
	bool absent = !there && is_absent(trial, key);
	bool stale =
		trial->entries[key].number && !there &&
		after(trial->entries[key].deadline, trial->options.stale_if_error) > trial->now;
	uint32_t number = trial->entries[key].number;
	const struct tw_cache_entry *entry = NULL;
	char text[64];
	size_t size = key_write(key, text);
	enum tw_status status;

	trial->load_key = key;
	trial->load_answer = answers[random_below(&trial->random, 4)];
	trial->load_sets = random_once_in(&trial->random, 8);
	trial->loaded.number = 0;
	status = tw_cache_take(trial->cache, text, size, load, trial, 0, &entry);
	if (there || absent) {
		assert_int_equal(trial->loaded.number, 0);
		assert_status(status, there ? TW_OK : TW_NOT_FOUND);
		model_lookup(trial, key);
		if (there)
			keep_pin(trial, number, entry);
		return;
	}
	trial->misses++;
	assert_int_not_equal(trial->loaded.number, 0);
	if (trial->load_answer == TW_OK) {
		assert_status(status, TW_OK);
		keep_pin(trial, trial->loaded.number, entry);
		if (!trial->load_sets && !is_too_heavy(trial, &trial->loaded))
			model_put(trial, &trial->loaded);
		return;
	}
	/* The value that was set meanwhile is not looked at. */
	if (trial->load_answer != TW_NOT_FOUND && stale && !trial->load_sets) {
		assert_status(status, TW_STALE);
		keep_pin(trial, number, entry);
		return;
	}
	if (!trial->load_sets) {
		assert_status(status, trial->load_answer);
		assert_null(entry);
	}
	tw_cache_entry_release(entry);
	if (trial->load_answer != TW_NOT_FOUND || trial->load_sets)
		return;
	model_remove(trial, key, TW_CAUSE_EXPLICIT);
	if (trial->options.negative_expire) {
		trial->absent[key] = after(trial->now, trial->options.negative_expire);
		trial->inserts++;
	}
}

/* ---- The trial ---- */

static struct tw_cache_options random_options(struct cache_trial *trial)
{
	struct random *random = &trial->random;
	struct tw_cache_options options = {
		.context = trial,
		.jitter = -1,
		.policy = random_below(random, 2) ? TW_POLICY_S3FIFO : TW_POLICY_LRU,
		.weigh = weigh,
		.on_remove = on_remove,
		.shards = 1,
	};
	uint64_t extras = random_below(random, 64);

	if (extras & 1)
		options.max_entries = random_below(random, CACHE_TRIAL_KEYS) + 1;
	if (extras & 2)
		options.max_bytes = random_below(random, 4000) + 1;
	if (extras & 4)
		options.idle = random_between(random, 1, 20 * TICK);
	if (extras & 8)
		options.stale_if_error = random_between(random, 1, 20 * TICK);
	/* Where that counts for a limit, or may be idle, it is not defined when it leaves. */
	if ((extras & 16) && !(extras & 7))
		options.negative_expire = random_between(random, 1, 20 * TICK);
	return options;
}

void cache_trial_begin(struct cache_trial *trial, struct random random)
{
	struct tw_options wheel = {
		.clock = TW_CLOCK_MANUAL, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};

	memset(trial, 0, sizeof(*trial));
	trial->random = random;
	trial->options = random_options(trial);
	trial->expire = random_lifetime(trial);
	assert_status(tw_create(&trial->wheel, TICK, 16, ignore_task, &wheel), TW_OK);
	trial->options.wheel = trial->wheel;
	assert_status(tw_cache_create(&trial->cache, trial->expire, &trial->options), TW_OK);
}

static void pass_time(struct cache_trial *trial)
{
	tw_duration by = random_once_in(&trial->random, 4)
				 ? random_between(&trial->random, 0, 60 * TICK)
				 : random_between(&trial->random, 0, 2 * TICK);

	assert_status(tw_advance(trial->wheel, by), TW_OK);
	trial->now += by;
}

void cache_trial_step(struct cache_trial *trial)
{
	static void (*const calls[])(struct cache_trial *) = {
		call_set,       call_set,         call_set,      call_set,       call_get,
		call_get,       call_get,         call_get,      call_take,      call_take,
		call_acquire,   call_delete,      call_touch,    call_touch,     call_compute,
		call_remaining, call_each,        call_clear,    call_set_limit, call_set_many,
		call_get_many,  call_delete_many, call_nonsense,
	};
	uint64_t roll = random_below(&trial->random, 32);

	if (roll < sizeof(calls) / sizeof(calls[0]))
		calls[roll](trial);
	else
		pass_time(trial);
	settle_cache(trial);
}

static void check_stats(struct cache_trial *trial)
{
	struct tw_cache_stats stats;
	uint64_t removed = 0;

	assert_status(tw_cache_get_stats(trial->cache, &stats), TW_OK);
	assert_int_equal(stats.hits, trial->hits);
	assert_int_equal(stats.misses, trial->misses);
	assert_int_equal(stats.absent, trial->absences);
	assert_int_equal(stats.inserts, trial->inserts);
	for (int cause = 0; cause < TW_CACHE_CAUSES; cause++) {
		if (!trial->options.negative_expire)
			assert_int_equal(stats.removed[cause], trial->removed[cause]);
		removed += stats.removed[cause];
	}
	assert_int_equal(removed + stats.entries, stats.inserts);
}

void cache_trial_end(struct cache_trial *trial)
{
	check_stats(trial);
	assert_status(tw_cache_stop(trial->cache), TW_OK);
	assert_status(tw_cache_set(trial->cache, "k", 1, "v", 1), TW_CLOSED);
	assert_status(tw_cache_get(trial->cache, "k", 1, NULL, 0, NULL), TW_CLOSED);
	assert_status(tw_cache_delete(trial->cache, "k", 1), TW_CLOSED);
	assert_status(tw_cache_clear(trial->cache), TW_CLOSED);
	trial->ending = true;
	tw_cache_destroy(trial->cache);
	for (uint32_t key = 0; key < CACHE_TRIAL_KEYS; key++)
		assert_int_equal(trial->entries[key].number, 0);
	for (size_t place = 0; place < CACHE_TRIAL_PINS; place++)
		unpin(trial, place);
	tw_destroy(trial->wheel);
}
