/* SPDX-License-Identifier: MIT */
/*
 * Eight threads make all calls on the same keys, while the clock moves and entries expire. Each key
 * has one thread that writes it, with rising versions: every value read is whole, of its key, not
 * from the future, and never older than the reader's last. Pins change hands, and outlive the
 * cache; some loads fail, and counts are exact.
 */
#include "support/test.h"

#include "support/cache_calls.h"
#include "support/cache_recorder.h"
#include "support/cache_value.h"
#include "support/memory.h"

#include <semaphore.h>
#include <sys/mman.h>

enum {
	THREADS = 8,
	KEYS = 50 * THREADS,
	CALLS = TEST_SHARE_OF(200000), /* calls of each thread */
	MANY = 20,
	PINS = 64, /* at a time, which threads exchange */
};

struct storm {
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	const struct tw_cache_options *setting; /* the kind of cache */
	atomic_ulong issued[KEYS];              /* the newest version that may be there */
	_Atomic(const struct tw_cache_entry *) pins[PINS];
	atomic_int at_work;
	/* These must be 0 at the end. */
	atomic_int torn;
	atomic_int backward;
	atomic_int of_the_future;
	atomic_int wrong; /* statuses */
	/* These sums must agree with the cache's. */
	atomic_ulong lookups;
	atomic_ulong loads;
	atomic_ulong load_errors;
	atomic_ulong timeouts;
	atomic_ulong adopted;
	atomic_ulong freed;
	atomic_ulong removed;
};

struct worker {
	pthread_t thread;
	struct storm *storm;
	uint64_t number;
	struct random random;
	uint64_t seen[KEYS]; /* the newest version read */
};

static void judge_status(struct storm *storm, bool fits)
{
	if (!fits)
		atomic_fetch_add(&storm->wrong, 1);
}

/* Returns the version, 0 for a torn value. */
static uint64_t judge_value(struct storm *storm, uint64_t key, const void *value, size_t size)
{
	uint64_t version = 0;

	if (!checked_value_is_sound(value, size, key, &version)) {
		atomic_fetch_add(&storm->torn, 1);
		return 0;
	}
	if (version > atomic_load(&storm->issued[key]))
		atomic_fetch_add(&storm->of_the_future, 1);
	return version;
}

static void judge_read(struct worker *worker, uint64_t key, const void *value, size_t size)
{
	uint64_t version = judge_value(worker->storm, key, value, size);

	if (version == 0)
		return;
	if (version < worker->seen[key])
		atomic_fetch_add(&worker->storm->backward, 1);
	worker->seen[key] = version;
}

static void judge_entry(struct storm *storm, const struct tw_cache_entry *entry)
{
	uint64_t key;
	size_t size;
	const void *bytes = tw_cache_entry_key(entry, &size);

	if (size != sizeof(key)) {
		atomic_fetch_add(&storm->torn, 1);
		return;
	}
	memcpy(&key, bytes, sizeof(key));
	bytes = tw_cache_entry_value(entry, &size);
	judge_value(storm, key, bytes, size);
}

static void count_removal(void *context, const struct tw_cache_entry *entry,
			  enum tw_cache_cause cause)
{
	struct storm *storm = context;

	judge_status(storm, cause < TW_CACHE_CAUSES);
	judge_entry(storm, entry);
	atomic_fetch_add(&storm->removed, 1);
}

static uint64_t random_key(struct worker *worker)
{
	return random_below(&worker->random, KEYS);
}

static uint64_t random_own_key(struct worker *worker)
{
	return random_below(&worker->random, KEYS / THREADS) * THREADS + worker->number;
}

static tw_duration random_lifetime(struct worker *worker)
{
	return random_once_in(&worker->random, 3)
		       ? random_between(&worker->random, 1, 5 * INTERVAL)
		       : random_between(&worker->random, INTERVAL, 1000 * INTERVAL);
}

static size_t next_value(struct worker *worker, uint64_t key, unsigned char *value)
{
	uint64_t version = atomic_fetch_add(&worker->storm->issued[key], 1) + 1;

	return checked_value_write(value, key, version);
}

static void call_get(struct worker *worker)
{
	struct storm *storm = worker->storm;
	uint64_t key = random_key(worker);
	unsigned char value[CHECKED_VALUE_MOST];
	size_t size;
	enum tw_status status =
		tw_cache_get(storm->cache, &key, sizeof(key), value, sizeof(value), &size);

	atomic_fetch_add(&storm->lookups, 1);
	judge_status(storm, status == TW_OK || (status == TW_NOT_FOUND && size == 0));
	if (status == TW_OK)
		judge_read(worker, key, value, size);
}

/* Releases a pin, maybe another thread's. */
static void unpin(struct storm *storm, const struct tw_cache_entry *entry)
{
	if (entry)
		judge_entry(storm, entry);
	tw_cache_entry_release(entry);
}

static void call_acquire(struct worker *worker)
{
	struct storm *storm = worker->storm;
	uint64_t key = random_key(worker);
	const struct tw_cache_entry *entry;
	enum tw_status status = tw_cache_acquire(storm->cache, &key, sizeof(key), 0, &entry);
	const void *value;
	size_t size;

	atomic_fetch_add(&storm->lookups, 1);
	judge_status(storm, status == (entry != NULL ? TW_OK : TW_NOT_FOUND));
	if (status == TW_OK) {
		value = tw_cache_entry_value(entry, &size);
		judge_read(worker, key, value, size);
	}
	unpin(storm, atomic_exchange(&storm->pins[random_below(&worker->random, PINS)], entry));
}

static void call_get_many(struct worker *worker)
{
	struct storm *storm = worker->storm;
	struct tw_cache_lookup items[MANY];
	uint64_t keys[MANY];
	unsigned char values[MANY][CHECKED_VALUE_LEAST];
	size_t found;
	size_t counted = 0;

	for (int i = 0; i < MANY; i++) {
		keys[i] = random_key(worker);
		items[i] = (struct tw_cache_lookup){
			&keys[i], sizeof(keys[i]), values[i], sizeof(values[i]), 0, TW_OK};
	}
	judge_status(storm, tw_cache_get_many(storm->cache, items, MANY, &found) == TW_OK);
	atomic_fetch_add(&storm->lookups, MANY);
	for (int i = 0; i < MANY; i++) {
		counted += items[i].status != TW_NOT_FOUND;
		if (items[i].status == TW_OK)
			judge_read(worker, keys[i], values[i], items[i].value_size);
	}
	judge_status(storm, found == counted);
}

static void call_set(struct worker *worker)
{
	struct storm *storm = worker->storm;
	uint64_t key = random_own_key(worker);
	unsigned char value[CHECKED_VALUE_MOST];
	size_t size = next_value(worker, key, value);
	tw_duration expire = random_lifetime(worker);
	enum tw_status status;

	switch (random_below(&worker->random, 4)) {
	case 0:
		status = put_added(storm->cache, &key, sizeof(key), value, size, expire);
		judge_status(storm, status == TW_OK || status == TW_EXISTS);
		break;
	case 1:
		status = put_replaced(storm->cache, &key, sizeof(key), value, size, expire);
		judge_status(storm, status == TW_OK || status == TW_NOT_FOUND);
		break;
	default:
		status = tw_cache_set_with_expire(storm->cache, &key, sizeof(key), value, size,
						  expire);
		judge_status(storm, status == TW_OK);
	}
}

static void free_adopted(void *value, size_t size, void *context)
{
	struct storm *storm = context;

	atomic_fetch_add(&storm->freed, 1);
	free(value);
}

static void call_adopt(struct worker *worker)
{
	struct storm *storm = worker->storm;
	uint64_t key = random_own_key(worker);
	unsigned char *value = malloc(CHECKED_VALUE_MOST);
	size_t size;
	enum tw_status status;

	if (value == NULL)
		abort();
	size = next_value(worker, key, value);
	status = put_adopted(storm->cache, &key, sizeof(key), value, size,
			     random_below(&worker->random, 200), free_adopted, storm,
			     random_lifetime(worker));
	judge_status(storm, status == TW_OK);
	if (status == TW_OK)
		atomic_fetch_add(&storm->adopted, 1);
	else
		free(value);
}

static void call_delete(struct worker *worker)
{
	uint64_t key = random_key(worker);
	enum tw_status status = tw_cache_delete(worker->storm->cache, &key, sizeof(key));

	judge_status(worker->storm, status == TW_OK || status == TW_NOT_FOUND);
}

static void call_touch(struct worker *worker)
{
	uint64_t key = random_key(worker);
	enum tw_status status =
		touch_key(worker->storm->cache, &key, sizeof(key), random_lifetime(worker));

	judge_status(worker->storm, status == TW_OK || status == TW_NOT_FOUND);
}

/* Loads the newest version, and none of each seventh key. Some loads fail. */
static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct storm *storm = argument;
	unsigned char value[CHECKED_VALUE_MOST];
	uint64_t turn = atomic_fetch_add(&storm->loads, 1);
	uint64_t number;
	uint64_t version;

	memcpy(&number, key, key_size);
	version = atomic_load(&storm->issued[number]);
	if (number % 7 != 0 && version != 0 && turn % 5 != 0)
		return give_copied(loading, value, checked_value_write(value, number, version),
				   20 * INTERVAL);
	atomic_fetch_add(&storm->load_errors, 1);
	return number % 7 == 0 ? TW_NOT_FOUND : TW_SYSTEM;
}

static void call_take(struct worker *worker)
{
	struct storm *storm = worker->storm;
	uint64_t key = random_key(worker);
	tw_duration wait = random_once_in(&worker->random, 2) ? 0 : TW_FOREVER;
	const struct tw_cache_entry *entry;
	enum tw_status status =
		tw_cache_take(storm->cache, &key, sizeof(key), load, storm, wait, &entry);

	atomic_fetch_add(&storm->lookups, 1);
	atomic_fetch_add(&storm->timeouts, status == TW_TIMED_OUT);
	judge_status(storm, status == TW_OK || status == TW_NOT_FOUND || status == TW_SYSTEM ||
				    (status == TW_TIMED_OUT && wait == 0));
	/* The value may be old, as a newer one was set during its load. */
	if (status == TW_OK)
		judge_entry(storm, entry);
	tw_cache_entry_release(entry);
}

static int visit(void *context, const struct tw_cache_entry *entry)
{
	judge_entry(context, entry);
	return 1;
}

static void call_seldom(struct worker *worker)
{
	struct storm *storm = worker->storm;
	const struct tw_cache_options *setting = storm->setting;
	uint64_t share = random_between(&worker->random, 1, 3);
	struct tw_cache_stats stats;

	switch (random_below(&worker->random, 12)) {
	case 0:
		judge_status(storm, tw_cache_clear(storm->cache) == TW_OK);
		break;
	case 1:
	case 2:
	case 3:
		judge_status(storm, tw_cache_each(storm->cache, visit, storm) == TW_OK);
		break;
	case 4:
	case 5:
		judge_status(storm, tw_cache_flush(storm->cache) == TW_OK);
		break;
	case 6:
		judge_status(storm,
			     tw_cache_set_limit(storm->cache, setting->max_entries / share,
						setting->max_bytes / share) ==
				     (setting->max_entries + setting->max_bytes > 0 ? TW_OK
										    : TW_INVALID));
		break;
	default:
		judge_status(storm, tw_cache_get_stats(storm->cache, &stats) == TW_OK);
	}
}

static void make_call(struct worker *worker)
{
	static const struct {
		uint64_t below; /* the upper bound of 1000 */
		void (*call)(struct worker *);
	} calls[] = {{250, call_get},   {400, call_acquire}, {450, call_get_many},
		     {650, call_set},   {750, call_adopt},   {800, call_delete},
		     {870, call_touch}, {995, call_take},    {1000, call_seldom}};
	uint64_t die = random_below(&worker->random, 1000);
	size_t i = 0;

	while (die >= calls[i].below)
		i++;
	calls[i].call(worker);
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;

	for (int i = 0; i < CALLS; i++)
		make_call(worker);
	atomic_fetch_sub(&worker->storm->at_work, 1);
	return NULL;
}

static void open_cache(struct storm *storm, struct tw_wheel *wheel)
{
	struct tw_cache_options options = *storm->setting;

	options.context = storm;
	options.wheel = wheel;
	options.on_remove = count_removal;
	storm->wheel = wheel;
	assert_status(tw_cache_create(&storm->cache, 100 * INTERVAL, &options), TW_OK);
}

static void run_workers(struct storm *storm)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	uint64_t seed = seed_choose();

	assert_non_null(workers);
	atomic_store(&storm->at_work, THREADS);
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i].storm = storm;
		workers[i].number = i;
		workers[i].random = random_from(seed, i);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]),
				 0);
	}
	while (atomic_load(&storm->at_work) > 0) {
		assert_status(tw_advance(storm->wheel, INTERVAL / 2), TW_OK);
		give_way();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
}

static void assert_counts(struct storm *storm)
{
	struct tw_cache_stats stats;
	uint64_t removed = 0;

	assert_status(tw_cache_get_stats(storm->cache, &stats), TW_OK);
	for (int cause = 0; cause < TW_CACHE_CAUSES; cause++)
		removed += stats.removed[cause];
	assert_int_equal(stats.inserts, removed + stats.entries);
	assert_int_equal(stats.hits + stats.misses + stats.absent, atomic_load(&storm->lookups));
	assert_int_equal(stats.loads, atomic_load(&storm->loads));
	assert_int_equal(stats.load_errors, atomic_load(&storm->load_errors));
	assert_int_equal(stats.wait_timeouts, atomic_load(&storm->timeouts));
	assert_int_equal(stats.notified, atomic_load(&storm->removed));
	if (storm->setting->negative_expire == 0)
		assert_int_equal(stats.notified, removed);
	else
		assert_true(stats.notified < removed);
	if (storm->setting->max_entries > 0) {
		assert_true(stats.entries <= storm->setting->max_entries);
		assert_true(stats.removed[TW_CAUSE_SIZE] > 0);
	}
	if (storm->setting->max_bytes > 0)
		assert_true(stats.bytes <= storm->setting->max_bytes);
	assert_true(stats.removed[TW_CAUSE_EXPIRED] > 0);
	assert_true(stats.removed[TW_CAUSE_EXPLICIT] > 0);
	assert_true(stats.removed[TW_CAUSE_REPLACED] > 0);
}

static void live_through(struct tw_cache_options setting)
{
	struct cache_recorder *recorder = cache_recorder_create(&levels_threads);
	struct storm storm = {.setting = &setting};
	struct tw_cache_stats stats;

	open_cache(&storm, recorder->wheel);
	run_workers(&storm);
	assert_status(tw_cache_flush(storm.cache), TW_OK);
	assert_counts(&storm);
	assert_status(tw_cache_clear(storm.cache), TW_OK);
	assert_status(tw_cache_flush(storm.cache), TW_OK);
	assert_status(tw_cache_get_stats(storm.cache, &stats), TW_OK);
	assert_int_equal(stats.entries, 0);
	assert_int_equal(stats.bytes, 0);
	tw_cache_destroy(storm.cache);
	/* Pins outlive the cache. */
	for (int i = 0; i < PINS; i++)
		unpin(&storm, atomic_load(&storm.pins[i]));
	assert_int_equal(atomic_load(&storm.freed), atomic_load(&storm.adopted));
	assert_int_equal(atomic_load(&storm.torn), 0);
	assert_int_equal(atomic_load(&storm.backward), 0);
	assert_int_equal(atomic_load(&storm.of_the_future), 0);
	assert_int_equal(atomic_load(&storm.wrong), 0);
	cache_recorder_close(recorder);
}

TEST(once, mixed_calls_of_eight_threads_keep_every_value_whole)
{
	live_through((struct tw_cache_options){.negative_expire = 10 * INTERVAL});
}

TEST(once, mixed_calls_within_a_limit_under_lru)
{
	live_through((struct tw_cache_options){.max_entries = KEYS / 4});
}

TEST(once, mixed_calls_within_limits_under_s3fifo)
{
	live_through((struct tw_cache_options){.policy = TW_POLICY_S3FIFO,
					       .max_entries = KEYS / 2,
					       .max_bytes = KEYS / 4 * (uint64_t)100,
					       .negative_expire = 10 * INTERVAL,
					       .shards = 8});
}

TEST(once, mixed_calls_on_sliding_lifetimes_in_one_shard)
{
	live_through((struct tw_cache_options){.idle = 3 * INTERVAL, .shards = 1});
}

/* This lookup's buffer cannot be written to until its value has been replaced, so it stops inside
 * the copy. */
static struct stopped {
	struct tw_cache *cache;
	size_t value_size;
	unsigned sets; /* how many other keys are set meanwhile */
	long memory;   /* the most resident bytes meanwhile, or 0 */
	unsigned char *buffer;
	sem_t is_reached;
	sem_t is_replaced;
} stopped;

enum { LARGE_VALUE = 256 * 1024, SMALL_VALUE = 64, MIB = 1 << 20 };

static void wait_until_replaced(int signal)
{
	sem_post(&stopped.is_reached);
	while (sem_wait(&stopped.is_replaced) != 0)
		continue;
}

static void set_bytes(const void *key, size_t key_size, unsigned char byte)
{
	static unsigned char value[LARGE_VALUE];

	memset(value, byte, stopped.value_size);
	(void)tw_cache_set(stopped.cache, key, key_size, value, stopped.value_size);
}

static void *replace_stopped(void *argument)
{
	while (sem_wait(&stopped.is_reached) != 0)
		continue;
	for (int i = 0; i < 50; i++)
		set_bytes("a usual key", 11, 2);
	/* All released memory is needed again. */
	for (unsigned i = 0; i < stopped.sets; i++) {
		long now;

		set_bytes(&i, sizeof(i), 3);
		if (i % (stopped.sets / 50) == 0 && (now = resident_memory()) > stopped.memory)
			stopped.memory = now;
	}
	mprotect(stopped.buffer, stopped.value_size, PROT_READ | PROT_WRITE);
	sem_post(&stopped.is_replaced);
	return argument;
}

/* Stops a get, and returns its status. All bytes of a value are *byte. */
static enum tw_status get_stopped(struct tw_cache *cache, size_t value_size, unsigned sets,
				  unsigned char *byte)
{
	struct sigaction waits = {.sa_handler = wait_until_replaced};
	struct sigaction before;
	enum tw_status status;
	pthread_t thread;

	stopped = (struct stopped){.cache = cache, .value_size = value_size, .sets = sets};
	stopped.buffer = mmap(NULL, value_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(stopped.buffer != MAP_FAILED);
	sem_init(&stopped.is_reached, 0, 0);
	sem_init(&stopped.is_replaced, 0, 0);
	set_bytes("a usual key", 11, 1);
	assert_int_equal(pthread_create(&thread, NULL, replace_stopped, NULL), 0);
	assert_int_equal(sigaction(SIGSEGV, &waits, &before), 0);
	status = tw_cache_get(cache, "a usual key", 11, stopped.buffer, value_size, NULL);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	pthread_join(thread, NULL);
	*byte = stopped.buffer[0];
	for (size_t i = 0; i < value_size && status == TW_OK; i++)
		if (stopped.buffer[i] != *byte)
			fail_msg("byte %zu is of another value", i);
	munmap(stopped.buffer, value_size);
	sem_destroy(&stopped.is_reached);
	sem_destroy(&stopped.is_replaced);
	return status;
}

CACHED_QUIET(threads, large_value_is_whole_though_it_is_replaced_meanwhile, TW_HOUR, .shards = 1)
{
	unsigned char byte;

	assert_status(get_stopped(recorder->cache, LARGE_VALUE, 50, &byte), TW_OK);
	assert_int_equal(byte, 1);
}

/* A get of a small value pins nothing and looks again. Its key goes after four rounds of 80,000. */
CACHED_QUIET(threads, reader_that_stops_inside_a_get_keeps_no_memory, TW_HOUR, .max_bytes = 8 * MIB,
	     .policy = TW_POLICY_LRU)
{
	long most = resident_memory() + 10L * MIB + 4L * MIB;
	unsigned sets = TEST_HAS_SANITIZER ? 500000 : TEST_SHARE_OF(10000000);
	unsigned char byte;

	assert_status(get_stopped(recorder->cache, SMALL_VALUE, sets, &byte), TW_NOT_FOUND);
	if (!TEST_HAS_SANITIZER)
		assert_in_range(stopped.memory, 0, most);
}
