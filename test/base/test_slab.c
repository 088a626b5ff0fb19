/* SPDX-License-Identifier: MIT */
/*
 * Blocks are aligned, distinct and recycled: memory does not grow with the number of times that
 * blocks are taken and given back, by whichever threads. Under the address sanitizer the slab is
 * malloc, and only tests that do not depend on recycling run.
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
	assert_null(bin.magazines);
	assert_int_equal(bin.count, 0);
}

TEST(once, blocks_are_aligned_and_do_not_overlap)
{
	enum { BLOCKS = 40000 };
	void **blocks = calloc(BLOCKS, sizeof(*blocks));

	assert_non_null(blocks);
	for (size_t k = 0; k < BLOCK_SIZES; k++) {
		struct slab slab;

		slab_init(&slab, block_sizes[k]);
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

/* Returns how many different blocks come out of `cycles` cycles of `held` blocks each. */
static size_t count_different_blocks(struct slab *slab, size_t held, size_t cycles)
{
	void **blocks = calloc(held * cycles, sizeof(*blocks));
	size_t different = 1;

	assert_non_null(blocks);
	for (size_t i = 0; i < cycles; i++) {
		take_all(slab, blocks + i * held, held);
		give_all(slab, blocks + i * held, held);
	}
	qsort(blocks, held * cycles, sizeof(*blocks), compare_addresses);
	for (size_t i = 1; i < held * cycles; i++)
		different += blocks[i] != blocks[i - 1];
	free(blocks);
	return different;
}

/* One magazine may remain in the stripe. */
TEST(once, blocks_given_back_are_taken_again)
{
	static const size_t held[] = {1, 2, 63, 64, 65, 1000};

	if (SANITIZER_ADDRESS)
		TEST_SKIP("the address sanitizer changes what is allocated");
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		struct slab slab;

		slab_init(&slab, 128);
		assert_in_range(count_different_blocks(&slab, held[i], 200), held[i],
				2 * held[i] + 128);
		slab_destroy(&slab);
	}
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

	slab_init(&exchange.slab, WORDS * sizeof(uint64_t));
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

struct conveyor {
	struct slab slab;
	_Atomic(uint64_t *) belt[PLACES];
	uint64_t count;
	atomic_uint broken;
};

static void *give_from_belt(void *argument)
{
	struct conveyor *conveyor = argument;
	struct slab_bin bin = {0};

	for (uint64_t i = 0; i < conveyor->count; i++) {
		uint64_t *block;

		while (!(block = atomic_exchange(&conveyor->belt[i % PLACES], NULL)))
			give_way();
		if (block[0] != i * WORDS || !is_stamped(block))
			atomic_fetch_add(&conveyor->broken, 1);
		slab_give(&conveyor->slab, &bin, block);
	}
	slab_flush(&conveyor->slab, &bin);
	return NULL;
}

TEST(once, memory_does_not_grow_where_one_thread_takes_and_another_gives)
{
	struct conveyor conveyor = {.count = TEST_SHARE_OF(1000000)};
	pthread_t giver;

	slab_init(&conveyor.slab, WORDS * sizeof(uint64_t));
	assert_int_equal(pthread_create(&giver, NULL, give_from_belt, &conveyor), 0);
	for (uint64_t i = 0; i < conveyor.count; i++) {
		uint64_t *block = slab_take(&conveyor.slab);

		stamp(block, i * WORDS);
		while (atomic_load(&conveyor.belt[i % PLACES]))
			give_way();
		atomic_store(&conveyor.belt[i % PLACES], block);
	}
	pthread_join(giver, NULL);
	assert_int_equal(atomic_load(&conveyor.broken), 0);
	assert_stayed_small(&conveyor.slab);
	slab_destroy(&conveyor.slab);
}

enum { CHUNKS = 3, HANDLE_SIZE = 88, HANDLE_ROOM = 48 };

/* Notes the first CHUNKS chunks and refuses more. */
static bool note_chunk(void *argument, struct chunk *chunk)
{
	struct chunk **chunks = argument;

	if (chunk->number >= CHUNKS)
		return false;
	chunks[chunk->number] = chunk;
	return true;
}

static struct slab_hooks noting = {.begin = note_chunk};

/* Opens a slab that notes its chunks and recycles its blocks under any sanitizer. */
static void open_hooked(struct slab *slab, struct chunk **chunks)
{
	memset(chunks, 0, CHUNKS * sizeof(struct chunk *));
	noting.argument = chunks;
	slab_init_hooked(slab, HANDLE_SIZE, HANDLE_ROOM, &noting);
}

/* Finds a block by its address, as a handle is found by its id. */
static void assert_lies_in_its_chunk(struct chunk **chunks, const char *block)
{
	const struct chunk *chunk = chunk_of(block);
	size_t offset = (size_t)(block - (const char *)chunk);

	assert_in_range(chunk->number, 0, CHUNKS - 1);
	assert_ptr_equal(chunks[chunk->number], chunk);
	assert_int_equal((offset - CHUNK_HEADER) % HANDLE_SIZE, 0);
	assert_true(offset >= CHUNK_HEADER && offset + HANDLE_SIZE <= CHUNK_SIZE);
}

enum { HANDLES_A_CHUNK = (CHUNK_SIZE - CHUNK_HEADER) / HANDLE_SIZE };

TEST(once, blocks_lie_in_numbered_chunks_until_the_hook_wants_no_more)
{
	enum { ALL = CHUNKS * HANDLES_A_CHUNK };
	struct chunk *chunks[CHUNKS];
	void **blocks = calloc(ALL, sizeof(*blocks));
	struct slab slab;

	assert_non_null(blocks);
	open_hooked(&slab, chunks);
	for (int turn = 0; turn < 3; turn++) {
		take_all(&slab, blocks, ALL);
		assert_null(slab_take(&slab));
		for (size_t i = 0; i < ALL; i++)
			assert_lies_in_its_chunk(chunks, blocks[i]);
		qsort(blocks, ALL, sizeof(*blocks), compare_addresses);
		for (size_t i = 1; i < ALL; i++)
			assert_true((char *)blocks[i] >= (char *)blocks[i - 1] + HANDLE_SIZE);
		give_all(&slab, blocks, ALL);
	}
	slab_destroy(&slab);
	free(blocks);
}

static void assert_all_different(void **blocks, size_t count)
{
	qsort(blocks, count, sizeof(*blocks), compare_addresses);
	for (size_t i = 1; i < count; i++)
		assert_ptr_not_equal(blocks[i], blocks[i - 1]);
}

/*
 * Takes and gives back `held` blocks, then takes as many as were ever cut: no more are cut. While
 * the lock is held elsewhere, the bin keeps the magazines that it fills.
 */
static void take_and_give_then_take_all(size_t held, bool is_locked)
{
	enum { MAGAZINE = 5, MOST = 200 };
	struct chunk *chunks[CHUNKS];
	void *blocks[MOST + MAGAZINE];
	struct slab_bin bin = {0};
	struct slab slab;
	size_t uncut = 0;

	open_hooked(&slab, chunks);
	for (int turn = 0; turn < 3; turn++) {
		take_all(&slab, blocks, held);
		uncut = slab.free_count;
		if (is_locked)
			pthread_mutex_lock(&slab.lock);
		for (size_t i = 0; i < held; i++)
			slab_give(&slab, &bin, blocks[i]);
		if (is_locked)
			pthread_mutex_unlock(&slab.lock);
		slab_flush(&slab, &bin);
		assert_null(bin.magazines);
		assert_int_equal(bin.count, 0);
	}
	held = (held + MAGAZINE - 1) / MAGAZINE * MAGAZINE;
	take_all(&slab, blocks, held);
	assert_all_different(blocks, held);
	assert_int_equal(slab.free_count, uncut);
	slab_destroy(&slab);
}

TEST(once, every_block_given_back_is_there_again_once)
{
	for (size_t held = 1; held <= 200; held++) {
		take_and_give_then_take_all(held, false);
		take_and_give_then_take_all(held, true);
	}
}

TEST(once, free_block_is_not_written_past_its_room)
{
	enum { HELD = 100 };
	struct chunk *chunks[CHUNKS];
	unsigned char *blocks[HELD];
	struct slab slab;

	open_hooked(&slab, chunks);
	take_all(&slab, (void **)blocks, HELD);
	for (size_t i = 0; i < HELD; i++)
		memset(blocks[i], (int)i, HANDLE_SIZE);
	give_all(&slab, (void **)blocks, HELD);
	for (size_t i = 0; i < HELD; i++)
		for (size_t byte = HANDLE_ROOM; byte < HANDLE_SIZE; byte++)
			assert_int_equal(blocks[i][byte], i);
	slab_destroy(&slab);
}

TEST(once, next_chunk_is_ready_before_it_is_needed)
{
	struct chunk *chunks[CHUNKS];
	struct chunk *spare;
	struct slab slab;

	open_hooked(&slab, chunks);
	for (size_t number = 0; number + 1 < CHUNKS; number++) {
		do
			assert_non_null(slab_take(&slab));
		while (!slab.spare);
		spare = slab.spare;
		assert_int_equal(slab.chunk_count, number + 1);
		assert_in_range(slab.free_count, HANDLES_A_CHUNK / 16, HANDLES_A_CHUNK / 4);
		while (slab.chunk_count == number + 1)
			assert_non_null(slab_take(&slab));
		assert_ptr_equal(chunks[number + 1], spare);
		assert_null(slab.spare);
	}
	slab_destroy(&slab);
}

/* This is more than the process maps for other reasons. */
enum { UNMAP_ROUNDS = 20 };
static const long mapped_excess = UNMAP_ROUNDS / 2 * (long)CHUNK_SIZE;

TEST(once, destroyed_slab_unmaps_its_chunks_and_the_one_made_ready)
{
	struct chunk *chunks[CHUNKS];
	struct slab slab;
	long before = mapped_memory();

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	for (int round = 0; round < UNMAP_ROUNDS; round++) {
		open_hooked(&slab, chunks);
		do
			assert_non_null(slab_take(&slab));
		while (!slab.spare);
		slab_destroy(&slab);
	}
	assert_in_range(mapped_memory(), 1, before + mapped_excess);
}

static bool refuse_chunk(void *argument, struct chunk *chunk)
{
	return false;
}

TEST(once, chunk_that_the_hook_refuses_is_unmapped)
{
	static const struct slab_hooks refusing = {.begin = refuse_chunk};
	struct slab slab;
	long before = mapped_memory();

	if (TEST_HAS_SANITIZER)
		TEST_SKIP("a sanitizer has memory of its own");
	slab_init_hooked(&slab, HANDLE_SIZE, HANDLE_ROOM, &refusing);
	for (int round = 0; round < UNMAP_ROUNDS; round++)
		assert_null(slab_take(&slab));
	assert_in_range(mapped_memory(), 1, before + mapped_excess);
	slab_destroy(&slab);
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
	slab_init(&slab, 128);
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

	slab_init(&slab, 128);
	if (!slab.recycles)
		TEST_SKIP("the address sanitizer finds what is freed");
	for (int i = 0; i < SLAB_STRIPES; i++)
		atomic_store(&slab.stripes[i].busy, true);
	assert_int_equal(pthread_create(&thread, NULL, take_one, &slab), 0);
	WAIT_UNTIL(atomic_load(&taker_id) && thread_is_asleep(atomic_load(&taker_id)));
	atomic_store(&slab.stripes[3].busy, false);
	pthread_join(thread, &block);
	assert_non_null(block);
	slab_give(&slab, &bin, block);
	slab_flush(&slab, &bin);
	slab_destroy(&slab);
}
