/* SPDX-License-Identifier: MIT */
/*
 * The index is compared with a model that knows which keys are in: each of these is found and no
 * other, whatever size the table has and whatever collides.
 */
#include "support/test.h"

#include "support/memory.h"

#include "base/key.h"
#include "wheel/timer_index.h"

enum { LONGEST = 300 };

struct model {
	struct timer_index index;
	struct timer_store store;
	struct timer_bin bin;
	struct random random;
	struct key_hash_seed seed;
	size_t size;
	size_t count;
	size_t (*make_key)(const struct model *, size_t number, unsigned char key[LONGEST]);
	uint32_t (*make_hash)(const struct model *, const void *key, size_t size);
	struct keyed_timer **timers; /* by number, or NULL if the key is not in */
};

/* Writes a key of 1 to LONGEST bytes, usually few. The number is in each key that has room for
 * it. */
static size_t key_of_any_size(const struct model *model, size_t number, unsigned char key[LONGEST])
{
	static const size_t sizes[] = {4,  5,  7,  8,  9,  12, 15,  16, 17,
				       20, 24, 25, 32, 33, 96, 160, 300};
	size_t size = sizes[number % (sizeof(sizes) / sizeof(sizes[0]))];
	uint32_t half = (uint32_t)number;

	memset(key, 'k', LONGEST);
	memcpy(key + (number % 3) * (size - sizeof(half)) / 2, &half, sizeof(half));
	return size;
}

/* Writes one byte repeated: each key is a prefix of all longer ones. */
static size_t key_of_equal_bytes(const struct model *model, size_t number,
				 unsigned char key[LONGEST])
{
	memset(key, 'k', LONGEST);
	return 1 + number % LONGEST;
}

static uint32_t real_hash(const struct model *model, const void *key, size_t size)
{
	return key_hash(&model->seed, key, size);
}

static uint32_t same_hash(const struct model *model, const void *key, size_t size)
{
	return 0xdeadbeef;
}

/* Makes hashes that differ only above the bits used by any table of this test. */
static uint32_t same_bucket(const struct model *model, const void *key, size_t size)
{
	return key_hash(&model->seed, key, size) << 24 | 0x1234;
}

/* Returns the last bucket of each power of two for three keys, and any for the others. */
static uint32_t last_bucket(const struct model *model, const void *key, size_t size)
{
	uint32_t hash = key_hash(&model->seed, key, size);

	return *(const unsigned char *)key < 3 ? hash | 0x00ffffff : hash;
}

static void model_open(struct model *model, size_t size)
{
	memset(model, 0, sizeof(*model));
	assert_true(timer_index_init(&model->index));
	timer_store_init(&model->store);
	model->random = random_from(seed_choose(), 1);
	for (int i = 0; i < 4; i++)
		model->seed.words[i] = random_next(&model->random);
	model->size = size;
	model->make_key = key_of_any_size;
	model->make_hash = real_hash;
	model->timers = calloc(size, sizeof(struct keyed_timer *));
	assert_non_null(model->timers);
}

static void model_close(struct model *model)
{
	for (size_t i = 0; i < model->size; i++)
		if (model->timers[i])
			timer_free(&model->store, &model->bin, model->timers[i]);
	timer_store_flush(&model->store, &model->bin);
	timer_store_destroy(&model->store);
	timer_index_destroy(&model->index);
	free(model->timers);
}

static void add(struct model *model, size_t number)
{
	unsigned char key[LONGEST];
	size_t size = model->make_key(model, number, key);
	struct keyed_timer *timer =
		timer_new(&model->store, key, size, model->make_hash(model, key, size));

	assert_non_null(timer);
	timer_index_add(&model->index, timer);
	model->timers[number] = timer;
	model->count++;
	assert_int_equal(model->index.count, model->count);
}

static void take_out(struct model *model, size_t number)
{
	timer_index_remove(&model->index, model->timers[number]);
	timer_free(&model->store, &model->bin, model->timers[number]);
	model->timers[number] = NULL;
	model->count--;
	assert_int_equal(model->index.count, model->count);
	assert_in_range(model->index.buckets, 64, 4 * model->count + 64);
}

static struct keyed_timer *find(const struct model *model, size_t number)
{
	unsigned char key[LONGEST];
	size_t size = model->make_key(model, number, key);

	return timer_index_find(&model->index, key, size, model->make_hash(model, key, size));
}

static void assert_finds(const struct model *model, size_t number)
{
	if (find(model, number) != model->timers[number])
		fail_msg("key %zu of %zu is%s found in %u buckets", number, model->count,
			 model->timers[number] ? " not" : "", model->index.buckets);
}

static void assert_finds_all(const struct model *model)
{
	for (size_t number = 0; number < model->size; number++)
		assert_finds(model, number);
}

static void change(struct model *model, size_t number)
{
	if (model->timers[number])
		take_out(model, number);
	else
		add(model, number);
}

/* Guesses the keys from `first` on: each that is in is found, and no timer has another hash. */
static void assert_guesses(const struct model *model, size_t first, size_t count)
{
	uint32_t hashes[TIMER_INDEX_BATCH] = {0};
	struct timer_guesses guesses;

	for (size_t i = 0; i < count; i++) {
		unsigned char key[LONGEST];
		size_t size = model->make_key(model, first + i, key);

		hashes[i] = model->make_hash(model, key, size);
	}
	timer_index_prefetch(&model->index, hashes, count, &guesses);
	for (size_t i = 0; i < count; i++) {
		if (model->timers[first + i])
			assert_non_null(guesses.timers[i]);
		if (guesses.timers[i])
			assert_int_equal(guesses.timers[i]->hh.hashv, hashes[i]);
	}
}

TEST(once, prefetch_guesses_the_timers_and_changes_nothing)
{
	struct model model;

	model_open(&model, 64 * TIMER_INDEX_BATCH);
	for (size_t number = 0; number < model.size; number += 2)
		add(&model, number);
	for (size_t first = 0; first < model.size; first += TIMER_INDEX_BATCH)
		assert_guesses(&model, first, TIMER_INDEX_BATCH);
	assert_guesses(&model, 0, 1);
	assert_guesses(&model, 0, 0);
	assert_finds_all(&model);
	model_close(&model);
}

/* A guess stays usable after other timers have come and gone and their memory was used again. */
TEST(once, guess_confirmed_later_is_the_timer_of_its_key_and_no_other)
{
	enum { KEYS = 4 * TIMER_INDEX_BATCH };
	struct timer_guesses guesses[4];
	uint32_t hashes[KEYS];
	struct model model;
	size_t confirmed = 0;

	model_open(&model, KEYS);
	for (int turn = 0; turn < 200; turn++) {
		for (size_t number = 0; number < KEYS; number++) {
			unsigned char key[LONGEST];
			size_t size = model.make_key(&model, number, key);

			hashes[number] = model.make_hash(&model, key, size);
		}
		for (size_t batch = 0; batch < 4; batch++)
			timer_index_prefetch(&model.index, hashes + batch * TIMER_INDEX_BATCH,
					     TIMER_INDEX_BATCH, &guesses[batch]);
		for (int i = 0; i < turn; i++)
			change(&model, (size_t)random_below(&model.random, KEYS));
		for (size_t number = 0; number < KEYS; number++) {
			const struct timer_guesses *of = &guesses[number / TIMER_INDEX_BATCH];
			unsigned char key[LONGEST];
			size_t size = model.make_key(&model, number, key);

			struct keyed_timer *guess = of->timers[number % TIMER_INDEX_BATCH];

			if (guess && timer_index_confirms(&model.index, key, size, hashes[number],
							  guess, of->removals))
				assert_ptr_equal(guess, model.timers[number]);
			confirmed += guess && guess == model.timers[number];
		}
	}
	assert_true(confirmed > KEYS);
	model_close(&model);
}

static size_t key_of_8_bytes(const struct model *model, size_t number, unsigned char key[LONGEST])
{
	uint32_t half = (uint32_t)number;

	memset(key, number < 3 ? (int)number : 'k', 4);
	memcpy(key + 4, &half, sizeof(half));
	return 8;
}

TEST(once, every_key_is_found_after_every_bucket_that_comes_or_goes)
{
	enum { KEYS = TEST_HAS_SANITIZER ? 600 : 1500 };
	struct model model;

	model_open(&model, KEYS);
	model.make_key = key_of_8_bytes;
	model.make_hash = last_bucket;
	for (size_t number = 0; number < KEYS; number++) {
		add(&model, number);
		if (model.count > 64)
			assert_finds_all(&model);
	}
	/* Keys 0 to 2 are removed last. */
	while (model.count > 0) {
		take_out(&model, model.count - 1);
		assert_finds_all(&model);
	}
	assert_int_equal(model.index.buckets, 64);
	model_close(&model);
}

static void a_few_random_keys_are_found(struct model *model)
{
	for (int i = 0; i < 4; i++)
		assert_finds(model, (size_t)random_below(&model->random, model->size));
}

/* Removes the most keys one by one; no removal merges more than four buckets. */
static void take_out_all_but(struct model *model, size_t left)
{
	while (model->count > left) {
		uint32_t before = model->index.buckets;

		take_out(model, model->count - 1);
		assert_in_range(before - model->index.buckets, 0, 4);
		assert_true(model->index.buckets == 64 ||
			    model->index.buckets <= 4 * (model->count + 1));
		a_few_random_keys_are_found(model);
	}
}

TEST(once, index_grows_and_shrinks_as_timers_come_and_go_and_loses_none)
{
	enum { KEYS = TEST_SHARE_OF(200000), LEFT = 100 };
	struct model model;

	model_open(&model, KEYS);
	assert_finds_all(&model);
	for (size_t number = 0; number < KEYS; number++) {
		add(&model, number);
		a_few_random_keys_are_found(&model);
	}
	/* There is a bucket for each timer, so chains stay short. */
	assert_true(model.index.buckets >= KEYS);
	take_out_all_but(&model, LEFT);
	assert_finds_all(&model);
	assert_in_range(model.index.buckets, LEFT, 4 * (LEFT + 1));
	assert_in_range(model.index.segment_count, 1, 2);
	take_out_all_but(&model, 0);
	model_close(&model);
}

TEST(once, index_gives_segments_back_as_it_shrinks)
{
	enum { KEYS = 600000 };
	struct model model;

	model_open(&model, KEYS);
	for (size_t number = 0; number < KEYS; number++)
		add(&model, number);
	assert_int_equal(model.index.segment_count, 3);
	while (model.count > 0)
		take_out(&model, model.count - 1);
	assert_int_equal(model.index.segment_count, 1);
	for (size_t number = 0; number < 1000; number++)
		add(&model, number);
	a_few_random_keys_are_found(&model);
	model_close(&model);
}

/* Hides the count from the index meanwhile, so that it does not grow, as without memory. */
static void add_without_growth(struct model *model, size_t from, size_t to)
{
	uint32_t buckets = model->index.buckets;

	for (size_t number = from; number < to; number++) {
		size_t count = model->count;

		model->index.count = 0;
		model->count = 0;
		add(model, number);
		model->count += count;
		model->index.count += count;
	}
	assert_int_equal(model->index.buckets, buckets);
}

TEST(once, index_that_could_not_grow_catches_up)
{
	enum { BEHIND = 1000, KEYS = 2 * BEHIND };
	struct model model;

	model_open(&model, KEYS);
	add_without_growth(&model, 0, BEHIND);
	assert_finds_all(&model);
	for (size_t number = BEHIND; number < KEYS; number++) {
		uint32_t before = model.index.buckets;

		add(&model, number);
		assert_in_range(model.index.buckets - before, 1, 2);
	}
	assert_in_range(model.index.buckets, KEYS - 64, KEYS);
	assert_finds_all(&model);
	model_close(&model);
}

TEST(once, random_adds_and_removals_agree_with_the_model)
{
	struct model model;

	model_open(&model, 20000);
	for (int phase = 0; phase < 20; phase++) {
		/* The number of keys thus swings between few and all. */
		size_t reach = 1 + (size_t)random_below(&model.random, model.size);

		for (int i = 0; i < TEST_SHARE_OF(30000); i++) {
			size_t number = (size_t)random_below(&model.random, reach);

			if (!model.timers[number] == (phase % 2 == 0))
				change(&model, number);
			assert_finds(&model, number);
			a_few_random_keys_are_found(&model);
		}
		assert_finds_all(&model);
	}
	model_close(&model);
}

/* A count that goes up and down around a bound must not map and unmap memory each time. */
TEST(once, index_at_a_bound_does_not_grow_and_shrink_in_turn)
{
	enum { BOUND = 262144 }; /* buckets of a segment */
	struct model model;
	UT_hash_handle **segment;

	model_open(&model, BOUND + 100);
	for (size_t number = 0; number < BOUND + 4; number++)
		add(&model, number);
	assert_int_equal(model.index.segment_count, 2);
	segment = model.index.segments[1];
	for (int turn = 0; turn < 100; turn++) {
		for (size_t number = BOUND - 6; number < BOUND + 4; number++)
			take_out(&model, number);
		for (size_t number = BOUND - 6; number < BOUND + 4; number++)
			add(&model, number);
		assert_ptr_equal(model.index.segments[1], segment);
	}
	assert_finds_all(&model);
	model_close(&model);
}

enum { SEGMENT = 262144, SEGMENT_SIZE = SEGMENT * 8 };

/* Returns the bytes resident in all segments. */
static size_t resident(const struct timer_index *index)
{
	size_t pages = 0;

	for (size_t i = 0; i < index->segment_count; i++)
		pages += resident_pages(index->segments[i], SEGMENT_SIZE);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the bytes of the buckets in use, rounded up to whole 64 KiB. */
static size_t memory_in_use(const struct timer_index *index)
{
	const size_t unit = (size_t)64 << 10;

	return (index->buckets * sizeof(*index->segments[0]) + unit - 1) / unit * unit;
}

/* Expects the memory of the buckets in use, and of the last segment's rest where it is not the only
 * one. */
static void expect_memory_in_use(const struct timer_index *index)
{
	size_t most = index->segment_count == 1 ? memory_in_use(index)
						: index->segment_count * SEGMENT_SIZE;

	assert_int_equal(index->segment_count, (index->buckets + SEGMENT - 1) / SEGMENT);
	assert_in_range(resident(index), 0, most);
	assert_in_range(timer_index_memory(index), memory_in_use(index), most + 1024);
}

/* These are three segments, or two. */
enum { MANY = TEST_HAS_SANITIZER ? 300000 : 600000 };

/* Removes keys in an order of its own: 7919 is a prime that divides no size here, so each number
 * has a turn. */
static void take_out_any(struct model *model, size_t left)
{
	size_t number = (size_t)random_below(&model->random, model->size);

	for (; model->count > left; number = (number + 7919) % model->size)
		if (model->timers[number])
			take_out(model, number);
}

TEST(once, index_that_shrinks_has_memory_for_the_buckets_in_use_alone)
{
	static const size_t lefts[] = {MANY / 100, 300, 0};
	struct model model;

	model_open(&model, MANY);
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++) {
		for (size_t number = 0; number < MANY; number++)
			if (!model.timers[number])
				add(&model, number);
		expect_memory_in_use(&model.index);
		for (size_t left = MANY; left > lefts[i]; left -= (left - lefts[i] + 9) / 10) {
			take_out_any(&model, left);
			expect_memory_in_use(&model.index);
		}
		take_out_any(&model, lefts[i]);
		expect_memory_in_use(&model.index);
		assert_finds_all(&model);
	}
	model_close(&model);
}

/* Adds all, removes and adds in random order, removes all. */
static void churn(struct model *model)
{
	for (size_t number = 0; number < model->size; number++) {
		add(model, number);
		assert_finds_all(model);
	}
	for (int i = 0; i < 300; i++) {
		change(model, (size_t)random_below(&model->random, model->size));
		assert_finds_all(model);
	}
	for (size_t number = 0; number < model->size; number++) {
		if (model->timers[number])
			take_out(model, number);
		assert_finds_all(model);
	}
}

static void churn_with(uint32_t (*make_hash)(const struct model *, const void *key, size_t size))
{
	struct model model;

	model_open(&model, TEST_HAS_SANITIZER ? 100 : 200);
	model.make_hash = make_hash;
	churn(&model);
	model_close(&model);
}

TEST(once, keys_of_the_same_hash_are_distinguished)
{
	churn_with(same_hash);
}

TEST(once, keys_of_the_same_bucket_are_distinguished)
{
	churn_with(same_bucket);
}

TEST(once, keys_that_begin_alike_are_distinguished_by_their_size)
{
	struct model model;

	model_open(&model, LONGEST);
	model.make_key = key_of_equal_bytes;
	model.make_hash = same_hash;
	for (size_t number = 0; number < LONGEST; number++) {
		add(&model, number);
		assert_finds_all(&model);
	}
	for (size_t number = 0; number < LONGEST; number += 2)
		take_out(&model, number);
	assert_finds_all(&model);
	model_close(&model);
}

/* Short keys are compared word by word: each byte must count. */
TEST(once, keys_that_differ_in_any_one_bit_are_distinguished)
{
	struct model model;
	unsigned char key[LONGEST];

	model_open(&model, LONGEST);
	model.make_key = key_of_equal_bytes;
	model.make_hash = same_hash;
	for (size_t number = 0; number < LONGEST; number++) {
		size_t size = model.make_key(&model, number, key);

		add(&model, number);
		for (size_t bit = 0; bit < 8 * size; bit++) {
			key[bit / 8] ^= (unsigned char)(1u << bit % 8);
			assert_null(timer_index_find(&model.index, key, size, 0xdeadbeef));
			key[bit / 8] ^= (unsigned char)(1u << bit % 8);
		}
		assert_finds(&model, number);
		take_out(&model, number);
	}
	model_close(&model);
}

/* Up to KEYS keys find their timers although a crowd shares one bucket with them. */
TEST(once, crowd_of_one_hash_does_not_hide_other_keys)
{
	struct model model;

	model_open(&model, 4000);
	model.make_hash = same_hash;
	for (size_t number = 0; number < 300; number++)
		add(&model, number);
	model.make_hash = real_hash;
	for (size_t number = 300; number < 4000; number++)
		add(&model, number);
	for (size_t number = 300; number < 4000; number++)
		assert_finds(&model, number);
	model.make_hash = same_hash;
	for (size_t number = 0; number < 300; number++)
		assert_finds(&model, number);
	model_close(&model);
}

TEST(once, destroy_unmaps_every_segment)
{
	enum { ROUNDS = 20 };
	const long segment_size = 2 << 20;
	long before = mapped_memory();

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	for (int round = 0; round < ROUNDS; round++) {
		struct timer_index index;

		assert_true(timer_index_init(&index));
		timer_index_destroy(&index);
	}
	assert_in_range(mapped_memory(), 1, before + ROUNDS / 2 * segment_size);
}

TEST(once, timer_with_a_key_of_any_size_fits_its_block)
{
	struct timer_store store;
	struct timer_bin bin = {0};
	char key[1200] = {0};

	timer_store_init(&store);
	for (size_t size = 1; size <= sizeof(key); size++) {
		struct keyed_timer *timer = timer_new(&store, key, size, 0);
		const char *end;

		assert_non_null(timer);
		end = (const char *)timer->hh.key + size;
		if (timer->timer.class < TIMER_SIZE_CLASSES)
			assert_in_range(end - (const char *)timer, 1,
					store.slabs[timer->timer.class].block_size);
		else
			assert_in_range(size, 512, sizeof(key));
		timer_free(&store, &bin, timer);
	}
	timer_store_flush(&store, &bin);
	timer_store_destroy(&store);
}
