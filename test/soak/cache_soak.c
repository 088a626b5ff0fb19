/* SPDX-License-Identifier: MIT */
/*
 * A cache with a limit in bytes, used for long as servers use it: is its memory within the bound
 * that cache.h gives, whatever happens, and is all that it gives and tells true?
 *
 * Threads come and go, and set, get, pin, delete, touch and take values whose sizes change their
 * kind every few seconds. Beside them one thread disturbs: a thread that looks keys up loses the
 * processor inside of a call, the listener blocks, the limit falls for a while, all is cleared or
 * visited slowly. Ten times a second the process's resident memory is looked at; at the end all is
 * cleared and has to be back within ten seconds. Under a sanitizer, which has memory of its own,
 * only what the cache says is judged.
 *
 *     cache_soak --seconds=600 --seed=7
 *
 * The bound: 1.25 times the highest limit of the last ten seconds and 4 MiB; what pins hold, and
 * removals that the listener has not been told of; once more what was there, for a reader may have
 * lost the processor; and what the threads' stacks and values under way take.
 *
 * The seed decides what the threads do, though not when. The last line is "N passed, N failed": the
 * looks at the memory, and the checks at the end.
 */
#include "support/format.h"
#include "support/generator.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/process.h"
#include "support/stopwatch.h"

#include "base/sanitizer.h"

#include <timingwheel/cache.h>

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEBIBYTE INT64_C(1048576)
#define LIMIT (32 * MEBIBYTE)
#define LOW_LIMIT (8 * MEBIBYTE)
#define LOOK_TIME (100 * TW_MILLISECOND)
#define LINE_TIME (10 * TW_SECOND)
#define BACK_TIME (10 * TW_SECOND) /* so long memory may take to come back */

enum {
	THREADS = 6,
	KEYS = 200000,
	PINS = 64, /* released by any thread */
	VALUE_MOST = 200000,
	QUEUED_MOST = 2000,
	LOOKS_BACK = 110, /* a bit more than BACK_TIME */
	/* What a thread's stack and the heap for it take. */
	THREAD_BYTES = 128 << 10
};

/* What a value begins with; the rest is filled by it. */
struct value_head {
	uint64_t number;
	uint64_t sequence;
	uint64_t size;
};

/* Which sizes are set. */
enum sizes { ALL_SIZES, ONE_SIZE, TWO_SIZES, DRIFTING, SOME_HUGE, SIZES };

static struct soak {
	/* Constant once the threads run. */
	struct tw_wheel *wheel;
	struct tw_cache *cache;
	uint64_t seed;
	int64_t start;
	int64_t seconds;
	int64_t base; /* resident bytes without a cache */
	/* Any thread. */
	atomic_bool is_over;
	_Atomic int64_t limit;         /* the highest that holds or is about to */
	_Atomic uint32_t sizes;        /* enum sizes */
	_Atomic uint64_t size;         /* of ONE_SIZE, and where DRIFTING stands */
	_Atomic int64_t asleep_until;  /* the reader */
	_Atomic int64_t blocked_until; /* the listener */
	_Atomic uint64_t sequence;
	_Atomic uint64_t told;
	_Atomic uint64_t sets;
	_Atomic uint64_t wrong;
	_Atomic uint64_t expired;
	_Atomic(const struct tw_cache_entry *) pins[PINS];
	/* The main thread's. */
	int64_t limits[LOOKS_BACK]; /* at the last looks, in a ring */
	int64_t pinned[LOOKS_BACK];
	uint64_t in_sight; /* looks at more than there may be without a reader that sleeps */
	uint64_t looks;
	uint64_t passed;
	uint64_t failed;
} soak;

/* ---- Values ---- */

static void value_fill(unsigned char *value, uint64_t number, size_t size)
{
	/* relaxed: unique is enough */
	uint64_t sequence = atomic_fetch_add_explicit(&soak.sequence, 1, memory_order_relaxed);
	struct value_head head = {number, sequence, size};

	memcpy(value, &head, sizeof(head));
	memset(value + sizeof(head), (int)(scramble(number + sequence) & 0xff),
	       size - sizeof(head));
}

static void judge(uint64_t number, const struct tw_cache_entry *entry, tw_duration asked)
{
	struct value_head head;
	size_t size;
	const unsigned char *value = tw_cache_entry_value(entry, &size);
	unsigned char filling;

	memcpy(&head, value, sizeof(head));
	filling = (unsigned char)(scramble(number + head.sequence) & 0xff);
	if (size < sizeof(head) || head.number != number || head.size != size)
		atomic_fetch_add(&soak.wrong, 1);
	else if (size > sizeof(head) &&
		 (value[sizeof(head)] != filling || value[size - 1] != filling ||
		  value[(sizeof(head) + size) / 2] != filling))
		atomic_fetch_add(&soak.wrong, 1);
	if (tw_cache_entry_deadline(entry) <= asked)
		atomic_fetch_add(&soak.expired, 1);
}

static size_t draw_size(struct generator *generator)
{
	size_t size = (size_t)atomic_load(&soak.size);
	int64_t most = 4096;

	switch ((enum sizes)atomic_load(&soak.sizes)) {
	case ONE_SIZE:
		return size;
	case TWO_SIZES:
		return generator_range(generator, 0, 2) ? 40 : 8000;
	case DRIFTING:
		return size + (size_t)generator_range(generator, 0, 64);
	case SOME_HUGE:
		most = generator_range(generator, 0, 200) == 0 ? VALUE_MOST : 1000;
		break;
	default:
		break;
	}
	return (size_t)generator_range(generator, sizeof(struct value_head), most);
}

/* ---- Threads that use the cache ---- */

struct user {
	pthread_t thread;
	bool is_started;
	atomic_bool has_ended;
	struct generator generator;
	unsigned char *value; /* VALUE_MOST bytes */
};

static tw_duration draw_lifetime(struct generator *generator)
{
	return generator_range(generator, 1, generator_range(generator, 0, 4) == 0 ? 100 : 20000) *
	       TW_MILLISECOND;
}

static void user_set(struct user *user, uint64_t number)
{
	size_t size = draw_size(&user->generator);
	enum tw_status status;

	value_fill(user->value, number, size);
	status = tw_cache_set_with_expire(soak.cache, &number, sizeof(number), user->value, size,
					  draw_lifetime(&user->generator));
	if (status == TW_OK)
		atomic_fetch_add(&soak.sets, 1);
	else if (status != TW_FULL)
		atomic_fetch_add(&soak.wrong, 1);
}

static enum tw_status load(void *argument, const void *key, size_t key_size,
			   struct tw_cache_loading *loading)
{
	struct user *user = argument;
	size_t size = draw_size(&user->generator);
	uint64_t number;

	memcpy(&number, key, key_size);
	value_fill(user->value, number, size);
	return tw_cache_load_copy(loading, user->value, size, draw_lifetime(&user->generator));
}

/* Keeps the pin until some thread comes upon its place. */
static void pin_for_long(struct user *user, const struct tw_cache_entry *entry)
{
	int place = (int)generator_range(&user->generator, 0, PINS);

	tw_cache_entry_release(atomic_exchange(&soak.pins[place], entry));
}

static void user_look(struct user *user, uint64_t number, bool takes)
{
	const struct tw_cache_entry *entry;
	tw_duration asked = tw_now(soak.wheel);
	enum tw_status status =
		takes ? tw_cache_take(soak.cache, &number, sizeof(number), load, user, TW_FOREVER,
				      &entry)
		      : tw_cache_acquire(soak.cache, &number, sizeof(number), &entry);

	if (status != TW_OK && (takes || status != TW_NOT_FOUND))
		atomic_fetch_add(&soak.wrong, 1);
	if (!entry)
		return;
	judge(number, entry, asked);
	if (generator_range(&user->generator, 0, 100) == 0)
		pin_for_long(user, entry);
	else
		tw_cache_entry_release(entry);
}

static void user_act(struct user *user)
{
	struct generator *generator = &user->generator;
	uint64_t number = (uint64_t)generator_range(generator, 0, KEYS);
	int64_t die = generator_range(generator, 0, 100);
	size_t size;

	if (die < 40)
		user_set(user, number);
	else if (die < 75)
		(void)tw_cache_get(soak.cache, &number, sizeof(number), user->value, VALUE_MOST,
				   &size);
	else if (die < 90)
		user_look(user, number, false);
	else if (die < 93)
		user_look(user, number, true);
	else if (die < 97)
		(void)tw_cache_delete(soak.cache, &number, sizeof(number));
	else
		(void)tw_cache_touch(soak.cache, &number, sizeof(number), draw_lifetime(generator));
}

static void *user_run(void *argument)
{
	struct user *user = argument;
	int64_t end =
		stopwatch_now() + generator_range(&user->generator, 100, 3000) * TW_MILLISECOND;

	while (stopwatch_now() < end && !atomic_load(&soak.is_over))
		for (int i = 0; i < 100; i++)
			user_act(user);
	atomic_store(&user->has_ended, true);
	return NULL;
}

static void thread_start_or_fail(pthread_t *thread, void *(*run)(void *), void *argument)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 << 10);
	if (pthread_create(thread, &attributes, run, argument) != 0)
		process_fail("a thread could not be started");
	pthread_attr_destroy(&attributes);
}

/* Those that have ended make room for others. */
static void users_tend(struct user *users, bool may_start)
{
	for (int i = 0; i < THREADS; i++) {
		struct user *user = &users[i];

		if (user->is_started && (!may_start || atomic_load(&user->has_ended))) {
			pthread_join(user->thread, NULL);
			user->is_started = false;
		}
		if (user->is_started || !may_start)
			continue;
		atomic_store(&user->has_ended, false);
		user->is_started = true;
		thread_start_or_fail(&user->thread, user_run, user);
	}
}

/* ---- What disturbs them ---- */

static void sleep_until(_Atomic int64_t *until)
{
	const struct timespec pause = {0, 1000000};

	while (stopwatch_now() < atomic_load(until))
		nanosleep(&pause, NULL);
}

static void sleep_inside(int signal)
{
	(void)signal;
	sleep_until(&soak.asleep_until);
}

static void *reader_run(void *unused)
{
	static char value[VALUE_MOST];
	size_t size;

	for (uint64_t i = 0; !atomic_load(&soak.is_over); i++) {
		uint64_t number = scramble(i) % KEYS;

		(void)tw_cache_get(soak.cache, &number, sizeof(number), value, sizeof(value),
				   &size);
	}
	return unused;
}

static void on_remove(void *context, const struct tw_cache_entry *entry, enum tw_cache_cause cause)
{
	(void)context;
	(void)entry;
	(void)cause;
	atomic_fetch_add(&soak.told, 1);
	sleep_until(&soak.blocked_until);
}

static int visit_slowly(void *context, const struct tw_cache_entry *entry)
{
	int *left = context;
	uint64_t number;

	memcpy(&number, tw_cache_entry_key(entry, NULL), sizeof(number));
	judge(number, entry, 0);
	stopwatch_sleep(TW_MILLISECOND);
	return --*left > 0;
}

static void set_limit(int64_t limit)
{
	if (limit > atomic_load(&soak.limit))
		atomic_store(&soak.limit, limit);
	if (tw_cache_set_limit(soak.cache, 0, (uint64_t)limit) != TW_OK)
		atomic_fetch_add(&soak.wrong, 1);
	atomic_store(&soak.limit, limit);
}

static void disturb(struct generator *generator, pthread_t reader)
{
	int64_t soon = stopwatch_now() + generator_range(generator, 100, 1500) * TW_MILLISECOND;
	int visits = (int)generator_range(generator, 1, 1000);

	switch (generator_range(generator, 0, 12)) {
	case 0:
		(void)tw_cache_clear(soak.cache);
		break;
	case 1:
		(void)tw_cache_flush(soak.cache);
		break;
	case 2:
		(void)tw_cache_each(soak.cache, visit_slowly, &visits);
		break;
	case 3:
	case 4:
		atomic_store(&soak.blocked_until, soon);
		break;
	case 5:
	case 6:
	case 7:
		atomic_store(&soak.asleep_until, soon);
		pthread_kill(reader, SIGUSR1);
		break;
	case 8:
		set_limit(atomic_load(&soak.limit) == LIMIT ? LOW_LIMIT : LIMIT);
		break;
	default:
		atomic_store(&soak.sizes, (uint32_t)generator_range(generator, 0, SIZES));
		atomic_store(&soak.size, (uint64_t)generator_range(generator, 30, 3000));
	}
}

static void *disturber_run(void *argument)
{
	pthread_t reader = *(pthread_t *)argument;
	struct generator generator = {soak.seed};

	while (!atomic_load(&soak.is_over)) {
		stopwatch_sleep(generator_range(&generator, 50, 1500) * TW_MILLISECOND);
		atomic_fetch_add(&soak.size, 7); /* what drifts */
		disturb(&generator, reader);
	}
	return NULL;
}

/* ---- Looking ---- */

static int64_t most_of(const int64_t *ring)
{
	int64_t most = 0;

	for (int i = 0; i < LOOKS_BACK; i++)
		most = ring[i] > most ? ring[i] : most;
	return most;
}

static void check(bool is_right, const char *what, int64_t found, int64_t should)
{
	soak.passed += is_right;
	soak.failed += !is_right;
	if (!is_right)
		printf("FAILED: SEED=%" PRIu64 ", after %.1f s: %s: %" PRId64 ", and should be at "
		       "most %" PRId64 "\n",
		       soak.seed, seconds_of(stopwatch_now() - soak.start), what, found, should);
}

struct look {
	int64_t resident;
	int64_t may;
	struct tw_cache_stats stats;
};

/* What may be there is judged by the last ten seconds: memory has so long to come back. */
static struct look look(void)
{
	struct look now;
	unsigned place = (unsigned)(soak.looks++ % LOOKS_BACK);
	int64_t most;

	tw_cache_get_stats(soak.cache, &now.stats);
	soak.pinned[place] = (int64_t)now.stats.memory_pinned;
	soak.limits[place] = atomic_load(&soak.limit);
	now.resident = process_resident_exact() - soak.base;
	tw_cache_get_stats(soak.cache, &now.stats);
	if ((int64_t)now.stats.memory_pinned > soak.pinned[place])
		soak.pinned[place] = (int64_t)now.stats.memory_pinned;
	most = most_of(soak.limits) * 5 / 4;
	now.may = 2 * most + 4 * MEBIBYTE + most_of(soak.pinned) +
		  THREADS * (VALUE_MOST + THREAD_BYTES);
	soak.in_sight += now.resident > now.may - most;
	return now;
}

static void look_and_judge(bool shows)
{
	struct look now = look();

	if (!SANITIZER_ADDRESS && !SANITIZER_THREAD)
		check(now.resident <= now.may, "resident bytes", now.resident, now.may);
	shows |= now.resident > now.may;
	if (shows)
		printf("%6.1f s: %9s of %9s, %9s of the cache, %9s retired, %9s pinned; %9s "
		       "entries, %s sets, %s refused\n",
		       seconds_of(stopwatch_now() - soak.start),
		       format_bytes(now.resident).characters, format_bytes(now.may).characters,
		       format_bytes((int64_t)now.stats.memory).characters,
		       format_bytes((int64_t)now.stats.memory_retired).characters,
		       format_bytes((int64_t)now.stats.memory_pinned).characters,
		       format_count((int64_t)now.stats.entries).characters,
		       format_count((int64_t)atomic_load(&soak.sets)).characters,
		       format_count((int64_t)now.stats.refused).characters);
	fflush(stdout);
}

static void watch(struct user *users)
{
	int64_t shown = soak.start;

	while (stopwatch_now() - soak.start < soak.seconds) {
		bool shows = stopwatch_now() - shown >= LINE_TIME;

		users_tend(users, true);
		look_and_judge(shows);
		if (shows)
			shown += LINE_TIME;
		stopwatch_sleep(LOOK_TIME);
	}
}

/* Nobody uses the cache any more. */
static void check_that_all_comes_back(void)
{
	int64_t end = stopwatch_now() + BACK_TIME;
	int64_t should = 4 * MEBIBYTE + THREADS * THREAD_BYTES;
	int64_t resident;

	for (int i = 0; i < PINS; i++)
		tw_cache_entry_release(atomic_exchange(&soak.pins[i], NULL));
	(void)tw_cache_clear(soak.cache);
	do {
		stopwatch_sleep(LOOK_TIME);
		process_trim_heap();
		resident = process_resident_exact() - soak.base;
	} while (resident > should && stopwatch_now() < end);
	if (!SANITIZER_ADDRESS && !SANITIZER_THREAD)
		check(resident <= should, "resident bytes after a clear", resident, should);
}

static void check_what_was_told(const struct tw_cache_stats *stats)
{
	int64_t told = (int64_t)atomic_load(&soak.told);
	int64_t inserts = (int64_t)stats->inserts;

	check(atomic_load(&soak.sets) > 0, "runs without a set", 1, 0);
	check(told == inserts, "removals told, of so many entries", told, inserts);
	check(atomic_load(&soak.wrong) == 0, "wrong values and answers",
	      (int64_t)atomic_load(&soak.wrong), 0);
	check(atomic_load(&soak.expired) == 0, "values past their deadline",
	      (int64_t)atomic_load(&soak.expired), 0);
}

/* ---- The run ---- */

static void open_cache(void)
{
	struct tw_cache_options options = {
		.wheel = soak.wheel,
		.max_bytes = (uint64_t)LIMIT,
		.policy = soak.seed % 2 ? TW_POLICY_S3FIFO : TW_POLICY_LRU,
		.on_remove = on_remove,
		.max_queued_removals = QUEUED_MOST,
	};

	if (tw_cache_create(&soak.cache, TW_MINUTE, &options) != TW_OK)
		process_fail("no cache");
}

static void execute_nothing(void *context, const struct tw_task *task)
{
	(void)context;
	(void)task;
}

static void run(struct user *users)
{
	struct sigaction action = {.sa_handler = sleep_inside};
	struct tw_cache_stats stats;
	pthread_t reader;
	pthread_t disturber;

	sigaction(SIGUSR1, &action, NULL);
	thread_start_or_fail(&reader, reader_run, NULL);
	thread_start_or_fail(&disturber, disturber_run, &reader);
	watch(users);
	atomic_store(&soak.is_over, true);
	users_tend(users, false);
	pthread_join(disturber, NULL);
	pthread_join(reader, NULL);
	check_that_all_comes_back();
	tw_cache_get_stats(soak.cache, &stats);
	tw_cache_destroy(soak.cache);
	check_what_was_told(&stats);
	printf("%" PRIu64 " of %" PRIu64 " looks found more than without readers that sleep\n",
	       soak.in_sight, soak.looks);
	tw_destroy(soak.wheel);
}

int main(int argc, char **argv)
{
	static struct user users[THREADS];
	int64_t seed = 1;
	const struct program_option options[] = {
		{"seconds", OPTION_SECONDS, &soak.seconds, 1, 100 * TW_HOUR, .help = "to run"},
		{"seed", OPTION_COUNT, &seed, 0, INT64_MAX, .help = "of all that is drawn"},
		{0},
	};

	soak.seconds = 20 * TW_SECOND;
	process_use_one_heap();
	options_parse(argc, argv, "Does a cache's memory stay within its bound?", options);
	machine_print();
	printf("SEED=%" PRId64 "\n", seed);
	soak.seed = (uint64_t)seed;
	atomic_store(&soak.limit, LIMIT);
	for (int i = 0; i < THREADS; i++) {
		users[i].generator.state = scramble(soak.seed * THREADS + (uint64_t)i);
		users[i].value = process_allocate(VALUE_MOST);
	}
	if (tw_create(&soak.wheel, TW_MILLISECOND, 512, execute_nothing, NULL) != TW_OK)
		process_fail("no wheel");
	process_trim_heap();
	soak.base = process_resident_exact();
	open_cache();
	soak.start = stopwatch_now();
	run(users);
	for (int i = 0; i < THREADS; i++)
		free(users[i].value);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", soak.passed, soak.failed);
	return soak.failed > 0;
}
