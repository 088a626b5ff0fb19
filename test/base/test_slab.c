/* SPDX-License-Identifier: MIT */
/*
 * Blocks are aligned, distinct and recycled: memory does not grow with the number of times that
 * blocks are taken and given back, by whichever threads. Of pages without a block in use some are
 * kept, an eighth and 64, and the others go back to the system; blocks in use stay as they are.
 *
 * Under the address sanitizer a slab without hooks is malloc, and only tests that do not depend on
 * recycling run.
 */
#include "support/test.h"

#include "support/memory.h"

#include "base/slab.h"

static const size_t block_sizes[] = {128, 192, 256, 448};
enum { BLOCK_SIZES = sizeof(block_sizes) / sizeof(block_sizes[0]) };

static int compare_addresses(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t) * (void *const *)a;
	uintptr_t right = (uintptr_t) * (void *const *)b;

	return (left > right) - (left < right);
}

static void take_all(struct slab *slab, void **blocks, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		blocks[i] = slab_take(slab);
		assert_non_null(blocks[i]);
	}
}

static void give_all(struct slab *slab, void **blocks, size_t count)
{
	struct slab_bin bin = {0};

	for (size_t i = 0; i < count; i++)
		slab_give(slab, &bin, blocks[i]);
	slab_flush(slab, &bin);
	assert_int_equal(bin.count, 0);
	assert_null(bin.more);
}

TEST(once, blocks_are_aligned_and_do_not_overlap)
{
	enum { BLOCKS = 40000 };
	void **blocks = calloc(BLOCKS, sizeof(*blocks));

	assert_non_null(blocks);
	for (size_t k = 0; k < BLOCK_SIZES; k++) {
		struct slab slab;

		slab_init(&slab, block_sizes[k], NULL);
		take_all(&slab, blocks, BLOCKS);
		for (size_t i = 0; i < BLOCKS; i++) {
			assert_int_equal((uintptr_t)blocks[i] % CACHE_LINE, 0);
			memset(blocks[i], (int)(i & 0xff), block_sizes[k]);
		}
		qsort(blocks, BLOCKS, sizeof(*blocks), compare_addresses);
		for (size_t i = 1; i < BLOCKS; i++)
			assert_true((char *)blocks[i] >= (char *)blocks[i - 1] + block_sizes[k]);
		give_all(&slab, blocks, BLOCKS);
		slab_destroy(&slab);
	}
	free(blocks);
}

/* There are more threads than stripes, so that some share one. */
enum { THREADS = SLAB_STRIPES + 8, PLACES = 64, WORDS = 16 };

struct exchange {
	struct slab slab;
	uint64_t seed;
	atomic_uint started;
	atomic_uint broken;
	_Atomic(uint64_t *) places[PLACES]; /* blocks that any thread may take over */
};

static void stamp(uint64_t *block, uint64_t number)
{
	for (uint64_t word = 0; word < WORDS; word++)
		block[word] = number + word;
}

static bool is_stamped(const uint64_t *block)
{
	for (uint64_t word = 1; word < WORDS; word++)
		if (block[word] != block[0] + word)
			return false;
	return true;
}

/*
 * A few hundred blocks are in use at a time, and a few thousand may lie in stripes and bins. More
 * than 100 MB of blocks were taken.
 */
static void assert_stayed_small(const struct slab *slab)
{
	assert_in_range(slab->chunk_count, 0, 1);
}

/* Takes blocks, stamps them and puts each in a random place; gives back the block that was
 * there. */
static void *take_exchange_and_give(void *argument)
{
	struct exchange *exchange = argument;
	uint64_t self = atomic_fetch_add(&exchange->started, 1);
	struct random random = random_from(exchange->seed, self);
	struct slab_bin bin = {0};

	for (uint64_t i = 0; i < TEST_SHARE_OF(100000); i++) {
		uint64_t *block = slab_take(&exchange->slab);

		stamp(block, self << 40 | i << 5);
		block = atomic_exchange(&exchange->places[random_below(&random, PLACES)], block);
		if (block && !is_stamped(block))
			atomic_fetch_add(&exchange->broken, 1);
		if (block)
			slab_give(&exchange->slab, &bin, block);
		if (random_once_in(&random, 1000))
			slab_flush(&exchange->slab, &bin);
	}
	slab_flush(&exchange->slab, &bin);
	return NULL;
}

TEST(once, no_block_is_in_two_hands_at_a_time)
{
	struct exchange exchange = {.seed = seed_choose()};
	pthread_t threads[THREADS];
	struct slab_bin bin = {0};

	slab_init(&exchange.slab, WORDS * sizeof(uint64_t), NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, take_exchange_and_give, &exchange), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&exchange.broken), 0);
	for (int i = 0; i < PLACES; i++) {
		uint64_t *block = atomic_load(&exchange.places[i]);

		assert_true(!block || is_stamped(block));
		if (block)
			slab_give(&exchange.slab, &bin, block);
	}
	slab_flush(&exchange.slab, &bin);
	assert_stayed_small(&exchange.slab);
	slab_destroy(&exchange.slab);
}

/* ---- Chunks and pages ---- */

enum {
	CHUNKS = 4,
	BLOCK = 88,
	PAGE_BLOCKS = CHUNK_PAGE / BLOCK,
	BLOCKS = CHUNKS * PAGE_BLOCKS * (CHUNK_PAGES - CHUNK_FIRST)
};

/* A world is a slab, the chunks it has had, and the blocks taken from it. */
struct world {
	struct slab slab;
	struct slab_hooks hooks;
	struct chunk *chunks[CHUNKS];
	size_t chunk_count;
	atomic_size_t forgotten; /* pages it has reported */
	bool keeps;              /* it refuses to forget */
	uint64_t *blocks[BLOCKS];
	struct random random;
};

/* Accepts CHUNKS chunks. */
static bool world_begin_chunk(void *argument, struct chunk *chunk)
{
	struct world *world = argument;

	if (chunk->number == CHUNKS)
		return false;
	assert_int_equal(chunk->number, world->chunk_count);
	world->chunks[world->chunk_count++] = chunk;
	return true;
}

/* The page has no block in use: each was zeroed when it was given back. */
static bool world_forget(void *argument, struct chunk *chunk, const void *block)
{
	struct world *world = argument;
	const uint64_t *words = block;

	assert_ptr_equal(chunk_of(block), chunk);
	for (size_t i = 1; i < BLOCK / sizeof(*words) * PAGE_BLOCKS; i++)
		assert_true(i % (BLOCK / sizeof(*words)) == 0 || words[i] == 0);
	atomic_fetch_add(&world->forgotten, 1);
	return !world->keeps;
}

static struct world *world_create(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->hooks = (struct slab_hooks){world_begin_chunk, world_forget, world};
	world->random = random_from(seed_choose(), 1);
	slab_init(&world->slab, BLOCK, &world->hooks);
	return world;
}

static void world_destroy(struct world *world)
{
	slab_destroy(&world->slab);
	free(world);
}

/* Takes a block for each place that has none. */
static void world_fill(struct world *world)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		if (world->blocks[i])
			continue;
		world->blocks[i] = slab_take(&world->slab);
		assert_non_null(world->blocks[i]);
		memset(world->blocks[i], (int)(i % 255) + 1, BLOCK);
	}
}

/* Gives back blocks in random order; one in `one_in` stays, or none if that is 0. */
static void world_give(struct world *world, uint64_t one_in)
{
	struct slab_bin bin = {0};

	for (size_t i = BLOCKS; i > 0; i--) {
		size_t other = (size_t)random_below(&world->random, i);
		uint64_t *block = world->blocks[other];

		world->blocks[other] = world->blocks[i - 1];
		world->blocks[i - 1] = block;
		if (!block || (one_in > 0 && random_once_in(&world->random, one_in)))
			continue;
		memset(block, 0, BLOCK);
		slab_give(&world->slab, &bin, block);
		world->blocks[i - 1] = NULL;
	}
	slab_flush(&world->slab, &bin);
}

/* A block has the byte that it was filled with. */
static void world_expect_blocks(const struct world *world)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		const unsigned char *bytes = (const unsigned char *)world->blocks[i];

		for (size_t j = 1; bytes && j < BLOCK; j++)
			assert_true(bytes[j] == bytes[0] && bytes[0] != 0);
	}
}

/* Returns the number of pages that have a block in use. */
static size_t world_used_pages(const struct world *world)
{
	static bool is_used[CHUNKS][CHUNK_PAGES];
	size_t used = 0;

	memset(is_used, 0, sizeof(is_used));
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t page = ((uintptr_t)world->blocks[i] & (CHUNK_SIZE - 1)) / CHUNK_PAGE;

		if (!world->blocks[i])
			continue;
		used += !is_used[chunk_of(world->blocks[i])->number][page];
		is_used[chunk_of(world->blocks[i])->number][page] = true;
	}
	return used;
}

/* The held pages are those with blocks in use, those that may stay, and the headers; no other page
 * is resident. */
static void world_expect_pages(const struct world *world)
{
	size_t headers = world->chunk_count * CHUNK_FIRST;
	size_t held = slab_use(&world->slab).held / CHUNK_PAGE - headers;
	size_t used = world_used_pages(world);
	size_t resident = 0;

	for (size_t i = 0; i < world->chunk_count; i++)
		resident += resident_pages(world->chunks[i], CHUNK_SIZE);
	/* Blocks in the stripes lie on a few pages more. */
	assert_in_range(held, used, (used + 4 + 64) * 8 / 7 + 1);
	if (sysconf(_SC_PAGESIZE) == (long)CHUNK_PAGE)
		assert_in_range(resident, used, held + headers);
}

TEST(once, blocks_lie_in_numbered_chunks_until_the_hook_wants_no_more)
{
	struct world *world = world_create();

	for (int round = 0; round < 3; round++) {
		world_fill(world);
		assert_null(slab_take(&world->slab));
		assert_int_equal(world->chunk_count, CHUNKS);
		assert_int_equal(slab_use(&world->slab).in_use, BLOCKS * BLOCK);
		for (size_t i = 0; i < BLOCKS; i++) {
			const struct chunk *chunk = chunk_of(world->blocks[i]);
			size_t number = chunk_number(world->blocks[i], BLOCK);

			assert_ptr_equal(chunk, world->chunks[chunk->number]);
			assert_ptr_equal(chunk_block(chunk, BLOCK, number), world->blocks[i]);
		}
		world_give(world, 0);
	}
	world_destroy(world);
}

TEST(once, pages_without_a_block_in_use_go_back_and_blocks_in_use_stay)
{
	static const uint64_t survivors[] = {2, 20, 100, 1000, 10000, 0};

	for (size_t i = 0; i < sizeof(survivors) / sizeof(survivors[0]); i++) {
		struct world *world = world_create();

		for (int round = 0; round < 3; round++) {
			world_fill(world);
			world_give(world, survivors[i]);
			world_expect_blocks(world);
			world_expect_pages(world);
		}
		/* Half of the blocks lie on all pages, a twentieth on nine in ten. */
		assert_true((world->forgotten > 0) == (survivors[i] == 0 || survivors[i] > 20));
		world_destroy(world);
	}
}

TEST(once, page_that_the_hook_refuses_to_forget_stays_as_it_is)
{
	struct world *world = world_create();
	uint64_t held;

	world_fill(world);
	held = slab_use(&world->slab).held;
	world->keeps = true;
	world_give(world, 0);
	assert_true(world->forgotten > 0);
	assert_int_equal(slab_use(&world->slab).held, held);
	world->keeps = false;
	world_fill(world);
	world_give(world, 0);
	world_expect_pages(world);
	world_destroy(world);
}

/* The system is asked for no page while no more than an eighth of the blocks come and go. */
TEST(once, load_that_comes_and_goes_keeps_an_eighth_of_the_pages)
{
	enum { PART = BLOCKS / 10 };
	struct world *world = world_create();
	size_t forgotten;

	world_fill(world);
	for (int round = 0; round < 10; round++) {
		struct slab_bin bin = {0};

		for (size_t i = 0; i < PART; i++) {
			memset(world->blocks[i], 0, BLOCK);
			slab_give(&world->slab, &bin, world->blocks[i]);
			world->blocks[i] = NULL;
		}
		slab_flush(&world->slab, &bin);
		forgotten = world->forgotten;
		world_fill(world);
	}
	assert_int_equal(forgotten, 0);
	world_destroy(world);
}

/* A bin that finds the lock taken keeps its blocks, and none is lost. */
TEST(once, giving_back_does_not_wait_for_the_lock)
{
	struct world *world = world_create();
	struct slab_bin bin = {0};

	world_fill(world);
	pthread_mutex_lock(&world->slab.lock);
	for (size_t i = 0; i < 10 * SLAB_BATCH; i++) {
		slab_give(&world->slab, &bin, world->blocks[i]);
		world->blocks[i] = NULL;
	}
	pthread_mutex_unlock(&world->slab.lock);
	assert_int_equal(slab_use(&world->slab).in_use, BLOCKS * BLOCK);
	slab_flush(&world->slab, &bin);
	assert_int_equal(slab_use(&world->slab).in_use, (BLOCKS - 10 * SLAB_BATCH) * BLOCK);
	world_fill(world);
	world_destroy(world);
}

TEST(once, chunk_has_the_blocks_in_use_and_no_others)
{
	struct world *world = world_create();
	size_t found = 0;

	world_fill(world);
	world_give(world, 50);
	for (size_t i = 0; i < CHUNKS; i++) {
		struct chunk_used used = {0};

		for (;; used.number += 64 - (size_t)__builtin_clzll(used.mask)) {
			used = slab_find_used(&world->slab, world->chunks[i], used.number);
			if (!used.mask)
				break;
			found += (size_t)__builtin_popcountll(used.mask);
		}
		assert_int_equal(used.number, CHUNK_NUMBERS);
	}
	/* Blocks in the stripe count as used. */
	assert_int_equal(found, slab_use(&world->slab).in_use / BLOCK);
	world_destroy(world);
}

/* ---- Beside other threads ---- */

struct taker {
	struct world *world;
	uint64_t seed;
	atomic_bool *is_over;
	unsigned broken;
};

/* Takes and gives back, few and many blocks in turn, so that pages go back. */
static void *take_and_give(void *argument)
{
	enum { MOST = BLOCKS / 4 };
	struct taker *taker = argument;
	struct slab *slab = &taker->world->slab;
	struct random random = random_from(taker->seed, 1);
	uint64_t **blocks = calloc(MOST, sizeof(*blocks));
	struct slab_bin bin = {0};

	while (!atomic_load(taker->is_over)) {
		size_t count = (size_t)random_below(&random, MOST);
		size_t taken = 0;

		for (; taken < count && (blocks[taken] = slab_take(slab)); taken++)
			memset(blocks[taken], (int)(taker->seed & 0x7f) + 1, BLOCK);
		for (size_t i = 0; i < taken; i++) {
			taker->broken += blocks[i][1] != blocks[i][10] || blocks[i][1] == 0;
			memset(blocks[i], 0, BLOCK);
			slab_give(slab, &bin, blocks[i]);
		}
		slab_flush(slab, &bin);
	}
	free(blocks);
	return NULL;
}

TEST(once, pages_go_back_beside_threads_that_take_and_give)
{
	enum { TAKERS = 3 };
	struct world *world = world_create();
	struct taker takers[TAKERS];
	pthread_t threads[TAKERS];
	atomic_bool is_over = false;

	for (uint64_t i = 0; i < TAKERS; i++) {
		takers[i] = (struct taker){world, seed_choose() + i, &is_over, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
	}
	WAIT_UNTIL(atomic_load(&world->forgotten) > TEST_SHARE_OF(20000));
	atomic_store(&is_over, true);
	for (int i = 0; i < TAKERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(takers[i].broken, 0);
	}
	assert_in_range(slab_use(&world->slab).in_use, 0, TAKERS * 2 * PAGE_BLOCKS * BLOCK);
	world_expect_pages(world);
	world_destroy(world);
}

/* This is more than the process maps for other reasons. */
enum { UNMAP_ROUNDS = 20 };
static const long mapped_excess = UNMAP_ROUNDS / 2 * (long)CHUNK_SIZE;

static bool refuse_chunk(void *argument, struct chunk *chunk)
{
	return false;
}

TEST(once, chunk_that_the_hook_refuses_and_those_of_a_destroyed_slab_are_unmapped)
{
	static const struct slab_hooks refusing = {.begin = refuse_chunk};
	struct slab slab;
	long before = mapped_memory();

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	for (int round = 0; round < UNMAP_ROUNDS; round++) {
		slab_init(&slab, BLOCK, round % 2 == 0 ? &refusing : NULL);
		assert_true((slab_take(&slab) == NULL) == (round % 2 == 0));
		slab_destroy(&slab);
	}
	assert_in_range(mapped_memory(), 1, before + mapped_excess);
}

/* The address sanitizer defines this; without it the address is NULL. */
int __asan_address_is_poisoned(const volatile void *address) __attribute__((weak));

TEST(once, address_sanitizer_sees_a_block_used_after_it_was_given_back)
{
	struct slab slab;
	struct slab_bin bin = {0};
	void *block;

	if (!__asan_address_is_poisoned)
		TEST_SKIP("for the address sanitizer");
	slab_init(&slab, 128, NULL);
	block = slab_take(&slab);
	assert_non_null(block);
	assert_false(__asan_address_is_poisoned(block));
	slab_give(&slab, &bin, block);
	slab_flush(&slab, &bin);
	assert_true(__asan_address_is_poisoned(block));
	slab_destroy(&slab);
}

static atomic_int taker_id;

static void *take_one(void *slab)
{
	atomic_store(&taker_id, gettid());
	return slab_take(slab);
}

TEST(once, thread_that_finds_all_stripes_in_use_sleeps_until_one_is_free)
{
	struct slab slab;
	struct slab_bin bin = {0};
	pthread_t thread;
	void *block;

	slab_init(&slab, 128, NULL);
	if (!slab.recycles)
		TEST_SKIP("the address sanitizer finds what is freed");
	for (int i = 0; i < SLAB_STRIPES; i++)
		assert_true(own_lock_try(&slab.stripes[i].lock));
	assert_int_equal(pthread_create(&thread, NULL, take_one, &slab), 0);
	WAIT_UNTIL(atomic_load(&taker_id) && thread_is_asleep(atomic_load(&taker_id)));
	own_lock_let_go(&slab.stripes[3].lock);
	pthread_join(thread, &block);
	assert_non_null(block);
	slab_give(&slab, &bin, block);
	slab_flush(&slab, &bin);
	slab_destroy(&slab);
}
