/* SPDX-License-Identifier: MIT */
/*
 * A trimmed slab has returned every page without a block in use, and no other. Blocks in use stay
 * as they were, also while other threads take and give back blocks, and all blocks can be taken
 * again. All slabs here but one have hooks that accept every chunk, so that they are not malloc
 * under a sanitizer.
 */
#include "support/test.h"

#include "support/memory.h"

#include "base/slab.h"

enum { CHUNKS = 4, BLOCK = 88, ROOM = 48, A_CHUNK = (CHUNK_SIZE - CHUNK_HEADER) / BLOCK };
enum { BLOCKS = CHUNKS * A_CHUNK };

/* A world is a slab, the chunks it has had, and the blocks taken from it. */
struct world {
	struct slab slab;
	struct slab_hooks hooks;
	struct chunk *chunks[CHUNKS + 1];
	size_t chunk_count;
	size_t forgotten; /* pages it has reported */
	bool keeps;       /* keep the page that is reported */
	bool takes;       /* take a block at the first report */
	uint64_t *taken;
	uint64_t *blocks[BLOCKS];
	struct random random;
};

static bool world_begin_chunk(void *argument, struct chunk *chunk)
{
	struct world *world = argument;

	if (chunk->number > CHUNKS)
		return false;
	world->chunks[chunk->number] = chunk;
	world->chunk_count++;
	return true;
}

static bool world_forget(void *argument, struct chunk *chunk, const struct chunk_pages *pages)
{
	struct world *world = argument;

	world->forgotten += pages->end - pages->first;
	if (world->takes && !world->taken)
		world->taken = slab_take(&world->slab);
	return !world->keeps;
}

static struct world *world_create(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->hooks = (struct slab_hooks){world_begin_chunk, world_forget, world};
	world->random = random_from(seed_choose(), 1);
	slab_init_hooked(&world->slab, BLOCK, ROOM, &world->hooks);
	return world;
}

static void world_destroy(struct world *world)
{
	slab_destroy(&world->slab);
	free(world);
}

static void stamp(uint64_t *block, uint64_t number)
{
	for (size_t word = 0; word < BLOCK / sizeof(*block); word++)
		block[word] = number + word;
}

static bool is_stamped(const uint64_t *block, uint64_t number)
{
	for (size_t word = 0; word < BLOCK / sizeof(*block); word++)
		if (block[word] != number + word)
			return false;
	return true;
}

static void world_fill(struct world *world)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		world->blocks[i] = slab_take(&world->slab);
		assert_non_null(world->blocks[i]);
		stamp(world->blocks[i], i << 8);
	}
}

/* Gives back blocks in random order. Keeps one in `one_in`, or none if that is 0. */
static void world_give_all_but(struct world *world, uint64_t one_in)
{
	struct slab_bin bin = {0};
	size_t *order = calloc(BLOCKS, sizeof(*order));

	assert_non_null(order);
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t other = (size_t)random_below(&world->random, i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (!world->blocks[order[i]] ||
		    (one_in > 0 && random_once_in(&world->random, one_in)))
			continue;
		slab_give(&world->slab, &bin, world->blocks[order[i]]);
		world->blocks[order[i]] = NULL;
	}
	slab_flush(&world->slab, &bin);
	free(order);
}

static void trim(struct slab *slab)
{
	while (slab_trim(slab))
		continue;
}

static size_t world_resident_pages(const struct world *world)
{
	size_t pages = 0;

	for (size_t i = 0; i < world->chunk_count; i++)
		pages += resident_pages(world->chunks[i], CHUNK_SIZE);
	return pages;
}

/* Returns the number of pages with a block in use or a chunk's header. */
static size_t world_used_pages(const struct world *world)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	size_t used = world->chunk_count;

	for (size_t i = 0; i < world->chunk_count; i++) {
		bool is_used[CHUNK_PAGES_MOST] = {true};

		for (size_t j = 0; j < BLOCKS; j++) {
			const char *block = (const char *)world->blocks[j];
			size_t from = (size_t)(block - (const char *)world->chunks[i]);

			if (!block || chunk_of(block) != world->chunks[i])
				continue;
			for (size_t page = from / page_size; page <= (from + BLOCK - 1) / page_size;
			     page++) {
				used += !is_used[page];
				is_used[page] = true;
			}
		}
	}
	return used;
}

static void world_expect_stamps(const struct world *world)
{
	for (size_t i = 0; i < BLOCKS; i++)
		assert_true(!world->blocks[i] || is_stamped(world->blocks[i], i << 8));
}

TEST(once, pages_that_no_block_in_use_lies_on_are_given_back)
{
	static const uint64_t survivors[] = {0, 2, 20, 100, 1000, 10000};

	for (size_t i = 0; i < sizeof(survivors) / sizeof(survivors[0]); i++) {
		struct world *world = world_create();
		uint64_t held;

		world_fill(world);
		world_give_all_but(world, survivors[i]);
		trim(&world->slab);
		world_expect_stamps(world);
		held = slab_use(&world->slab).held / (uint64_t)sysconf(_SC_PAGESIZE);
		assert_int_equal(held, world_used_pages(world));
		assert_int_equal(world_resident_pages(world), held);
		world_destroy(world);
	}
}

TEST(once, slab_without_hooks_unmaps_the_chunks_that_nothing_is_left_of)
{
	enum { TAKEN = 50000 };
	struct slab_bin bin = {0};
	struct slab slab;
	void **blocks;
	long before;

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	blocks = calloc(TAKEN, sizeof(*blocks));
	assert_non_null(blocks);
	slab_init(&slab, 256);
	before = mapped_memory();
	for (size_t i = 0; i < TAKEN; i++)
		blocks[i] = slab_take(&slab);
	assert_true(mapped_memory() >= before + TAKEN * 256L);
	for (size_t i = 0; i < TAKEN; i++)
		slab_give(&slab, &bin, blocks[i]);
	slab_flush(&slab, &bin);
	trim(&slab);
	assert_int_equal(slab_use(&slab).held, 0);
	assert_int_equal(slab.chunk_count, 0);
	assert_in_range(mapped_memory(), 0, before + (long)CHUNK_SIZE);
	blocks[0] = slab_take(&slab);
	assert_non_null(blocks[0]);
	slab_destroy(&slab);
	free(blocks);
}

TEST(once, pages_of_all_blocks_that_leave_a_chunk_together_count_as_held)
{
	enum { SIZE = 1024 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct slab_bin bin = {0};
	struct slab slab;
	void *block;

	slab_init_hooked(&slab, SIZE, SIZE, NULL);
	block = slab_take(&slab);
	assert_int_equal(slab_use(&slab).in_use, SLAB_MAGAZINE * SIZE);
	assert_int_equal(slab_use(&slab).held,
			 (CHUNK_HEADER + SLAB_MAGAZINE * SIZE + page - 1) / page * page);
	slab_give(&slab, &bin, block);
	slab_flush(&slab, &bin);
	slab_destroy(&slab);
}

static int compare_blocks(const void *a, const void *b)
{
	const uint64_t *left = *(uint64_t *const *)a;
	const uint64_t *right = *(uint64_t *const *)b;

	return (left > right) - (left < right);
}

TEST(once, all_blocks_can_be_taken_again_after_each_trim)
{
	struct world *world = world_create();

	for (int round = 0; round < 4; round++) {
		world_fill(world);
		assert_in_range(world->chunk_count, CHUNKS, CHUNKS + 1);
		world_give_all_but(world, 0);
		trim(&world->slab);
	}
	world_fill(world);
	qsort(world->blocks, BLOCKS, sizeof(world->blocks[0]), compare_blocks);
	for (size_t i = 1; i < BLOCKS; i++)
		assert_true((char *)world->blocks[i] >= (char *)world->blocks[i - 1] + BLOCK);
	assert_in_range(world->chunk_count, CHUNKS, CHUNKS + 1);
	world_destroy(world);
}

TEST(once, blocks_between_others_in_use_are_taken_again)
{
	struct world *world = world_create();

	world_fill(world);
	world_give_all_but(world, 2);
	trim(&world->slab);
	for (size_t i = 0; i < BLOCKS; i++) {
		if (world->blocks[i])
			continue;
		world->blocks[i] = slab_take(&world->slab);
		assert_non_null(world->blocks[i]);
		stamp(world->blocks[i], i << 8);
	}
	world_expect_stamps(world);
	assert_in_range(world->chunk_count, CHUNKS, CHUNKS + 1);
	world_destroy(world);
}

TEST(once, blocks_in_use_survive_many_trims_in_between)
{
	struct world *world = world_create();
	struct slab_bin bin = {0};

	world_fill(world);
	world_give_all_but(world, 50);
	for (int i = 0; i < TEST_SHARE_OF(300000); i++) {
		size_t place = (size_t)random_below(&world->random, BLOCKS / 8);
		uint64_t *block = world->blocks[place];

		if (block) {
			assert_true(is_stamped(block, place << 8));
			slab_give(&world->slab, &bin, block);
			world->blocks[place] = NULL;
		} else {
			world->blocks[place] = slab_take(&world->slab);
			assert_non_null(world->blocks[place]);
			stamp(world->blocks[place], place << 8);
		}
		if (random_once_in(&world->random, 100))
			(void)slab_trim(&world->slab);
		if (random_once_in(&world->random, 1000))
			slab_flush(&world->slab, &bin);
	}
	slab_flush(&world->slab, &bin);
	world_expect_stamps(world);
	/* The first trim may be one that had begun before. */
	trim(&world->slab);
	trim(&world->slab);
	world_expect_stamps(world);
	assert_int_equal(world_resident_pages(world), world_used_pages(world));
	world_destroy(world);
}

/* By then the pages lie before those where the other threads look for free blocks. */
TEST(once, blocks_of_pages_that_went_while_others_were_taken_can_be_taken)
{
	struct world *world = world_create();

	world_fill(world);
	world_give_all_but(world, 0);
	world->takes = true;
	trim(&world->slab);
	assert_non_null(world->taken);
	stamp(world->taken, UINT64_MAX / 2);
	for (size_t i = 1; i < BLOCKS; i++) {
		world->blocks[i] = slab_take(&world->slab);
		assert_non_null(world->blocks[i]);
		stamp(world->blocks[i], i << 8);
	}
	world_expect_stamps(world);
	assert_true(is_stamped(world->taken, UINT64_MAX / 2));
	world_destroy(world);
}

TEST(once, pages_of_a_few_that_were_left_are_surplus_when_these_go)
{
	struct world *world = world_create();

	world_fill(world);
	world_give_all_but(world, 100);
	trim(&world->slab);
	assert_int_equal(slab_surplus(&world->slab), 0);
	world_give_all_but(world, 0);
	assert_in_range(slab_surplus(&world->slab), 2 << 20, slab_use(&world->slab).held);
	trim(&world->slab);
	assert_int_equal(world_resident_pages(world), world->chunk_count);
	assert_int_equal(slab_surplus(&world->slab), 0);
	world_destroy(world);
}

TEST(once, a_step_collects_2048_blocks_or_gives_back_a_half_of_a_chunk)
{
	struct world *world = world_create();
	size_t steps = 0;

	world_fill(world);
	world_give_all_but(world, 0);
	while (slab_trim(&world->slab))
		steps++;
	assert_in_range(steps, BLOCKS / 2048 + 2 * CHUNKS, BLOCKS / 2048 + 2 * CHUNKS + 4);
	world_destroy(world);
}

TEST(once, spare_chunk_that_comes_first_is_counted_as_there)
{
	enum { TAKEN = 10000 };
	struct slab_bin bin = {0};
	struct chunk *spare;
	struct slab slab;
	void **blocks;
	size_t taken = 0;

	if (SANITIZER_ADDRESS)
		TEST_SKIP("the address sanitizer changes what is allocated");
	blocks = calloc(TAKEN, sizeof(*blocks));
	assert_non_null(blocks);
	slab_init(&slab, 256);
	while (!slab.spare && taken < TAKEN)
		blocks[taken++] = slab_take(&slab);
	assert_non_null(slab.spare);
	for (size_t i = 0; i < taken; i++)
		slab_give(&slab, &bin, blocks[i]);
	slab_flush(&slab, &bin);
	/* The thread that prepares the spare chunk may be delayed. */
	spare = slab.spare;
	slab.spare = NULL;
	trim(&slab);
	slab.spare = spare;
	assert_int_equal(slab.chunk_count, 0);
	assert_int_equal(slab_use(&slab).held, CHUNK_SIZE);
	blocks[0] = slab_take(&slab);
	assert_int_equal(slab.chunk_count, 1);
	assert_int_equal(slab_use(&slab).held, CHUNK_SIZE);
	slab_give(&slab, &bin, blocks[0]);
	slab_flush(&slab, &bin);
	trim(&slab);
	assert_int_equal(slab_use(&slab).held, 0);
	slab_destroy(&slab);
	free(blocks);
}

TEST(once, what_is_not_to_be_forgotten_stays)
{
	struct world *world = world_create();
	const unsigned char *seventh;
	size_t resident;

	world_fill(world);
	memset(world->blocks[7], 0x77, BLOCK);
	seventh = (const unsigned char *)world->blocks[7];
	resident = world_resident_pages(world);
	world->keeps = true;
	world_give_all_but(world, 0);
	trim(&world->slab);
	for (size_t byte = ROOM; byte < BLOCK; byte++)
		assert_int_equal(seventh[byte], 0x77);
	assert_true(world->forgotten >= (CHUNKS - 1) * (CHUNK_PAGES_MOST - 1));
	assert_in_range(world_resident_pages(world), resident - CHUNK_PAGES_MOST, resident);
	world_fill(world);
	world_destroy(world);
}

TEST(once, surplus_is_the_memory_given_back_and_not_trimmed)
{
	struct world *world = world_create();
	uint64_t taken = (uint64_t)BLOCKS * BLOCK;

	world_fill(world);
	assert_int_equal(slab_surplus(&world->slab), 0);
	assert_in_range(slab_use(&world->slab).in_use, taken, taken + ROOM * BLOCK);
	assert_in_range(slab_traffic(&world->slab), taken, taken + ROOM * BLOCK);
	world_give_all_but(world, 100);
	assert_in_range(slab_surplus(&world->slab), taken / 100 * 95, taken);
	trim(&world->slab);
	assert_int_equal(slab_surplus(&world->slab), 0);
	world_destroy(world);
}

/* ---- Concurrent threads ---- */

enum { THREADS = 4, HELD = 5000 };

struct taker {
	struct world *world;
	uint64_t number;
	atomic_bool *is_over;
	unsigned broken;
	uint64_t *blocks[HELD];
};

/* Takes and gives back, few and many blocks in turn, so that there is something to trim. */
static void *take_and_give(void *argument)
{
	struct taker *taker = argument;
	struct random random = random_from(seed_choose(), taker->number + 2);
	struct slab *slab = &taker->world->slab;
	struct slab_bin bin = {0};

	while (!atomic_load(taker->is_over)) {
		size_t most = random_below(&random, HELD);

		for (size_t i = 0; i < most; i++) {
			taker->blocks[i] = slab_take(slab);
			stamp(taker->blocks[i], taker->number << 40 | i << 8);
		}
		for (size_t i = 0; i < most; i++) {
			taker->broken +=
				!is_stamped(taker->blocks[i], taker->number << 40 | i << 8);
			slab_give(slab, &bin, taker->blocks[i]);
		}
		if (random_once_in(&random, 2))
			slab_flush(slab, &bin);
	}
	slab_flush(slab, &bin);
	return NULL;
}

static bool trim_has_forgotten(struct world *world, size_t pages)
{
	for (int i = 0; i < 100; i++)
		(void)slab_trim(&world->slab);
	return world->forgotten >= pages;
}

TEST(once, trims_go_on_beside_threads_that_take_and_give)
{
	struct world *world = world_create();
	struct taker *takers = calloc(THREADS, sizeof(*takers));
	atomic_bool is_over = false;
	pthread_t threads[THREADS];

	assert_non_null(takers);
	for (size_t i = 0; i < THREADS; i++) {
		takers[i].world = world;
		takers[i].number = i;
		takers[i].is_over = &is_over;
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
	}
	WAIT_UNTIL(trim_has_forgotten(world, TEST_SHARE_OF(5000)));
	atomic_store(&is_over, true);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(takers[i].broken, 0);
	}
	trim(&world->slab);
	trim(&world->slab);
	assert_int_equal(slab_use(&world->slab).in_use, 0);
	assert_int_equal(world_resident_pages(world), world->chunk_count);
	free(takers);
	world_destroy(world);
}
