/* SPDX-License-Identifier: MIT */
/*
 * The hash looks random: statistics have bounds so loose that a good hash fails them once in many
 * millions of runs, and a broken one always.
 */
#include "support/test.h"

#include "base/key.h"

enum { LONGEST = 100 };

static struct key_hash_seed random_seed(struct random *random)
{
	struct key_hash_seed seed;

	for (int i = 0; i < 4; i++)
		seed.words[i] = random_next(random);
	return seed;
}

static void fill_randomly(struct random *random, unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)random_next(random);
}

static void flip(unsigned char *bytes, size_t bit)
{
	bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static int compare_hashes(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a;
	uint32_t right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static size_t count_collisions(uint32_t *hashes, size_t count)
{
	size_t collisions = 0;

	qsort(hashes, count, sizeof(hashes[0]), compare_hashes);
	for (size_t i = 1; i < count; i++)
		collisions += hashes[i] == hashes[i - 1];
	return collisions;
}

/* Hashes a random key's first 1 … LONGEST bytes, and each of these with any one bit flipped. */
static size_t hash_variants(struct random *random, uint32_t *hashes)
{
	struct key_hash_seed seed = random_seed(random);
	unsigned char key[LONGEST];
	size_t count = 0;

	fill_randomly(random, key, sizeof(key));
	for (size_t size = 1; size <= LONGEST; size++) {
		hashes[count++] = key_hash(&seed, key, size);
		for (size_t bit = 0; bit < 8 * size; bit++) {
			flip(key, bit);
			hashes[count++] = key_hash(&seed, key, size);
			flip(key, bit);
		}
	}
	return count;
}

/* 40,500 keys a base have 0.19 expected collisions, 1.9 in all; over 15 happen once in 10^9
 * runs. */
TEST(once, keys_that_differ_in_one_bit_or_in_size_collide_no_more_than_chance)
{
	enum { BASES = 10, VARIANTS = LONGEST + 8 * LONGEST * (LONGEST + 1) / 2 };
	struct random random = random_from(seed_choose(), 1);
	uint32_t *hashes = calloc(VARIANTS, sizeof(*hashes));
	size_t collisions = 0;

	assert_non_null(hashes);
	for (int i = 0; i < BASES; i++) {
		assert_int_equal(hash_variants(&random, hashes), VARIANTS);
		collisions += count_collisions(hashes, VARIANTS);
	}
	assert_in_range(collisions, 0, 15);
	free(hashes);
}

/* 200,000 keys in one pool have 4.7 expected collisions; over 25 happen once in 10^9 runs. */
TEST(once, keys_with_a_counter_in_them_collide_no_more_than_chance)
{
	enum { KEYS = 200000 };
	struct random random = random_from(seed_choose(), 1);
	uint32_t *hashes = calloc(KEYS, sizeof(*hashes));

	assert_non_null(hashes);
	for (size_t at = 0; at <= 40; at += 8) {
		struct key_hash_seed seed = random_seed(&random);
		unsigned char key[48] = {0};

		for (uint32_t i = 0; i < KEYS; i++) {
			memcpy(key + at, &i, sizeof(i));
			hashes[i] = key_hash(&seed, key, sizeof(key));
		}
		assert_in_range(count_collisions(hashes, KEYS), 0, 25);
	}
	free(hashes);
}

TEST(once, keys_of_zeros_differ_by_their_size)
{
	struct random random = random_from(seed_choose(), 1);
	static const unsigned char zeros[LONGEST];
	size_t collisions = 0;

	for (int i = 0; i < 100; i++) {
		struct key_hash_seed seed = random_seed(&random);
		uint32_t hashes[LONGEST];

		for (size_t size = 1; size <= LONGEST; size++)
			hashes[size - 1] = key_hash(&seed, zeros, size);
		collisions += count_collisions(hashes, LONGEST);
	}
	assert_in_range(collisions, 0, 3);
}

TEST(once, hash_depends_on_the_bytes_and_not_on_where_they_lie)
{
	struct random random = random_from(seed_choose(), 1);
	struct key_hash_seed seed = random_seed(&random);
	unsigned char key[LONGEST];

	fill_randomly(&random, key, sizeof(key));
	for (size_t size = 1; size <= LONGEST; size++) {
		uint32_t hash = key_hash(&seed, key, size);

		for (size_t offset = 0; offset < 9; offset++) {
			/* The copy has no byte to spare, so that the address sanitizer sees a read
			 * before or behind it. */
			unsigned char *copy = malloc(offset + size);

			assert_non_null(copy);
			memcpy(copy + offset, key, size);
			assert_int_equal(key_hash(&seed, copy + offset, size), hash);
			free(copy);
		}
	}
}

/* By chance 1 in 2^32 of 2,560,000 pairs would collide. */
TEST(once, any_bit_of_the_seed_changes_the_hash_of_keys_of_any_size)
{
	struct random random = random_from(seed_choose(), 1);
	unsigned char key[LONGEST];
	size_t same = 0;

	for (int i = 0; i < TEST_SHARE_OF(100); i++) {
		fill_randomly(&random, key, sizeof(key));
		for (size_t size = 1; size <= LONGEST; size++) {
			struct key_hash_seed seed = random_seed(&random);
			uint32_t hash = key_hash(&seed, key, size);

			for (size_t bit = 0; bit < 256; bit++) {
				seed.words[bit / 64] ^= (uint64_t)1 << bit % 64;
				same += key_hash(&seed, key, size) == hash;
				seed.words[bit / 64] ^= (uint64_t)1 << bit % 64;
			}
		}
	}
	assert_in_range(same, 0, 5);
}

TEST(once, each_seed_is_drawn_afresh)
{
	struct key_hash_seed seeds[10];

	for (int i = 0; i < 10; i++) {
		key_hash_seed_init(&seeds[i]);
		for (int k = 0; k < 4; k++)
			assert_true(seeds[i].words[k] != 0);
		for (int other = 0; other < i; other++)
			for (int k = 0; k < 4; k++)
				assert_true(seeds[i].words[k] != seeds[other].words[k]);
	}
}

enum { BUCKET_BITS = 12, BUCKETS = 1 << BUCKET_BITS, KEYS = 16 * BUCKETS };

typedef size_t make_key(uint64_t number, unsigned char key[LONGEST]);

static size_t key_of_8_bytes(uint64_t number, unsigned char key[LONGEST])
{
	memcpy(key, &number, sizeof(number));
	return sizeof(number);
}

static size_t key_of_3_bytes(uint64_t number, unsigned char key[LONGEST])
{
	/* These are the low bytes, which on a big-endian machine are not the first ones in
	 * memory. */
	for (int i = 0; i < 3; i++)
		key[i] = (unsigned char)(number >> 8 * i);
	return 3;
}

static size_t key_in_steps_of_a_page(uint64_t number, unsigned char key[LONGEST])
{
	return key_of_8_bytes(number << 12, key);
}

static size_t key_in_decimal(uint64_t number, unsigned char key[LONGEST])
{
	return (size_t)snprintf((char *)key, LONGEST, "session:%" PRIu64, number);
}

static size_t key_of_a_path(uint64_t number, unsigned char key[LONGEST])
{
	return (size_t)snprintf((char *)key, LONGEST, "/tenants/%08" PRIu64 "/leases/of/this",
				number);
}

/* Chi-square, with as many degrees of freedom as buckets, is about normal: the bound is 10 standard
 * deviations above the mean. */
static void assert_even(const uint32_t *counts)
{
	double expected = (double)KEYS / BUCKETS;
	double square = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		square += (counts[i] - expected) * (counts[i] - expected) / expected;
	/* sqrt(2 * 4096) is 90.5 */
	if (square > BUCKETS + 10 * 90.5)
		fail_msg("chi-square is %.0f in %d buckets", square, BUCKETS);
}

static void fill_buckets(struct random *random, make_key *make)
{
	struct key_hash_seed seed = random_seed(random);
	uint32_t *low = calloc(BUCKETS, sizeof(*low));
	uint32_t *high = calloc(BUCKETS, sizeof(*high));
	unsigned char key[LONGEST];

	assert_non_null(low);
	assert_non_null(high);
	for (uint64_t number = 0; number < KEYS; number++) {
		uint32_t hash = key_hash(&seed, key, make(number, key));

		low[hash % BUCKETS]++;
		high[hash >> (32 - BUCKET_BITS)]++;
	}
	assert_even(low);
	assert_even(high);
	free(low);
	free(high);
}

TEST(once, keys_that_count_fill_buckets_evenly)
{
	static make_key *const makes[] = {key_of_8_bytes, key_of_3_bytes, key_in_steps_of_a_page,
					  key_in_decimal, key_of_a_path};
	struct random random = random_from(seed_choose(), 1);

	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++)
		for (int trial = 0; trial < 5; trial++)
			fill_buckets(&random, makes[i]);
}
