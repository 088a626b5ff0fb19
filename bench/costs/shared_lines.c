/* SPDX-License-Identifier: MIT */
/*
 * How many cache lines do two threads or more write, and how often does such a line change hands,
 * for each call? On many cores this is a call's cost beside its instructions. Two cores can't
 * measure it, but any machine can count it.
 *
 * 16 threads (CALLERS) call the library, one at a time, and the next one is drawn for each call. A
 * row is 16,384 calls, usually one for each of as many keys, in random order. After 512 calls
 * another thread, the owner, polls the wheel. Each run has exactly the same counts: random numbers
 * and clocks are wrapped, the clock stands still, and the callers' stacks are at fixed addresses,
 * by which the slab chooses stripes.
 *
 * A row is printed as shared.NAME, the lines that two threads or more have stored to, and for each
 * call the stores to a line that another thread stored to last (transfers), including those of the
 * owner's turns. stores.c defines what is counted as a store. Not each such line is a fault: a
 * timer goes from its caller to the owner. Lines grow with the number of calls, so transfers are
 * what to compare.
 *
 * The program fails if a get without a limit or under S3-FIFO has a line of two threads or a
 * transfer; a pin writes to its entry. Under S3-FIFO the first three uses of an entry write to it:
 * they come before the rows.
 *
 *     shared_lines [CALLERS [NAME]]     also prints the places in the code of NAME's transfers
 */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <timingwheel/cache.h>

#include "costs.h"
#include "stores.h"

enum {
	CALLERS_MOST = 16,
	CALLS = 16384, /* also keys, timers, alarms */
	TURN = 512,    /* calls between two polls */
	HOT = 16,
	VALUE_SIZE = 64,
	STACK_SIZE = 8 << 20
};

/* ---- The callers, and whose turn it is ---- */

static unsigned callers = CALLERS_MOST;
static sem_t turns[CALLERS_MOST + 1]; /* the owner's is the last */
static pthread_t threads[CALLERS_MOST];
static void (*call)(unsigned i); /* NULL ends the callers */
static unsigned calls_made;
static unsigned order[CALLS];

/* Resumes thread `to`, and waits for the turn of thread `from`. */
static void pass_turn(unsigned from, unsigned to)
{
	if (from == to)
		return;
	sem_post(&turns[to]);
	while (sem_wait(&turns[from]) != 0)
		;
}

/* This is a caller's thread; `argument` is its number. */
static void *make_calls(void *argument)
{
	unsigned self = (unsigned)(uintptr_t)argument;

	while (sem_wait(&turns[self]) != 0)
		;
	while (call) {
		call(order[calls_made++]);
		pass_turn(self, calls_made % TURN == 0 ? CALLERS_MOST : draw(callers));
	}
	return NULL;
}

static void start_callers(void)
{
	cpu_set_t core;
	/* This is the C library's default: stacks are a guard page apart. */
	const size_t distance = STACK_SIZE + 4096;
	char *stacks =
		mmap((void *)0x200000000000, CALLERS_MOST * distance, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	expect(stacks != MAP_FAILED, "mmap");
	/* On one core a turn passes to another thread some 10 times as fast. */
	CPU_ZERO(&core);
	CPU_SET(sched_getcpu(), &core);
	sched_setaffinity(0, sizeof(core), &core);
	for (unsigned i = 0; i <= CALLERS_MOST; i++)
		sem_init(&turns[i], 0, 0);
	for (unsigned i = 0; i < callers; i++) {
		pthread_attr_t attributes;

		pthread_attr_init(&attributes);
		pthread_attr_setstack(&attributes, stacks + i * distance, STACK_SIZE);
		expect(pthread_create(&threads[i], &attributes, make_calls, (void *)(uintptr_t)i) ==
			       0,
		       "pthread_create");
		pthread_attr_destroy(&attributes);
	}
}

static void end_callers(void)
{
	call = NULL;
	for (unsigned i = 0; i < callers; i++) {
		sem_post(&turns[i]);
		pthread_join(threads[i], NULL);
	}
}

/* Lets the callers call `what` once for each of 0 to CALLS - 1, in random order. */
static void run(void (*what)(unsigned i))
{
	for (unsigned i = 0; i < CALLS; i++) {
		unsigned other = draw(i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	call = what;
	calls_made = 0;
	while (calls_made < CALLS) {
		pass_turn(CALLERS_MOST, draw(callers));
		MUST(tw_poll(wheel, NULL));
	}
}

/* ---- Rows ---- */

static const char *program;
static const char *row_to_explain = "";
static bool has_failed;

/* Runs `what` and prints the row `name`. */
static struct stores run_row(const char *name, void (*what)(unsigned i))
{
	struct stores stores;

	stores_begin();
	run(what);
	stores = stores_counted();
	printf("shared.%-23s %8u %10.4f\n", name, stores.lines, (double)stores.transfers / CALLS);
	if (strcmp(name, row_to_explain) == 0)
		stores_print_places(program);
	return stores;
}

/* Runs a row in which no thread may write to another's line. */
static void run_row_unshared(const char *name, void (*what)(unsigned i))
{
	struct stores stores = run_row(name, what);

	if (stores.lines == 0 && stores.transfers == 0)
		return;
	has_failed = true;
	fprintf(stderr, "shared_lines: %s writes to lines that another thread writes:\n", name);
	if (strcmp(name, row_to_explain) != 0)
		stores_print_places(program);
}

static unsigned first_key; /* the key of call 0 */

/* ---- The cache ---- */

static struct tw_cache *cache;
static const char value[VALUE_SIZE];

static void cache_set(unsigned i)
{
	MUST(tw_cache_set(cache, keys[first_key + i], KEY_SIZE, value, VALUE_SIZE));
}

static enum tw_status get(unsigned i)
{
	char buffer[VALUE_SIZE];
	size_t size;

	return tw_cache_get(cache, keys[first_key + i], KEY_SIZE, buffer, sizeof(buffer), &size);
}

static void cache_get(unsigned i)
{
	MUST(get(i));
}

static void cache_get_hot(unsigned i)
{
	MUST(get(i % HOT));
}

static void cache_get_miss(unsigned i)
{
	expect(get(i + CALLS) == TW_NOT_FOUND, "it is not there");
}

static void cache_acquire(unsigned i)
{
	const struct tw_cache_entry *entry;

	MUST(tw_cache_acquire(cache, keys[first_key + i], KEY_SIZE, 0, &entry));
	tw_cache_entry_release(entry);
}

static enum tw_status load_nothing(void *argument, const void *key, size_t key_size,
				   struct tw_cache_loading *loading)
{
	(void)argument;
	(void)key;
	(void)key_size;
	(void)loading;
	return TW_NOT_FOUND;
}

static void cache_take(unsigned i)
{
	const struct tw_cache_entry *entry;

	MUST(tw_cache_take(cache, keys[first_key + i], KEY_SIZE, load_nothing, NULL, TW_SECOND,
			   &entry));
	tw_cache_entry_release(entry);
}

static void cache_delete(unsigned i)
{
	MUST(tw_cache_delete(cache, keys[first_key + i], KEY_SIZE));
}

static void open_cache(enum tw_cache_policy policy, uint64_t max_entries)
{
	struct tw_cache_options options = {
		.wheel = wheel, .policy = policy, .max_entries = max_entries};

	MUST(tw_cache_create(&cache, TW_MINUTE, &options));
	first_key = 0;
	run(cache_set);
}

static void rows_without_limit(void)
{
	open_cache(TW_POLICY_LRU, 0);
	run(cache_get); /* each thread has its counts after that */
	run_row_unshared("cache.get_hit", cache_get);
	run_row_unshared("cache.get_hot16", cache_get_hot);
	run_row_unshared("cache.get_miss", cache_get_miss);
	run_row("cache.acquire_release", cache_acquire);
	run_row("cache.take_hit", cache_take);
	run_row("cache.set_same", cache_set);
	first_key = CALLS;
	run_row("cache.set_new", cache_set);
	run_row("cache.delete", cache_delete);
	tw_cache_destroy(cache);
}

/* A hit writes nothing after three uses of its entry. */
static void rows_policy(enum tw_cache_policy policy, const char *hit, const char *hot,
			const char *eviction)
{
	open_cache(policy, CALLS);
	for (int uses = 0; uses < 3; uses++)
		run(cache_get);
	run_row_unshared(hit, cache_get);
	run_row_unshared(hot, cache_get_hot);
	first_key += CALLS;
	run_row(eviction, cache_set);
	tw_cache_destroy(cache);
}

/* ---- The wheel ---- */

static tw_duration least_delay;

static void core_set(unsigned i)
{
	MUST(tw_set_timer(wheel, keys[first_key + i], KEY_SIZE, NULL, draw_delay(least_delay)));
}

static void core_move(unsigned i)
{
	MUST(tw_move_timer(wheel, keys[first_key + i], KEY_SIZE, draw_delay(least_delay)));
}

static void core_remove(unsigned i)
{
	MUST(tw_remove_timer(wheel, keys[first_key + i], KEY_SIZE));
}

static void rows_core(void)
{
	first_key = 0;
	least_delay = 40 * TW_SECOND;
	run(core_set);
	first_key = CALLS;
	run_row("core.set_new", core_set);
	run_row("core.set_existing", core_set);
	least_delay = 90 * TW_SECOND;
	run_row("core.move_later", core_move);
	least_delay = 30 * TW_SECOND;
	run_row("core.move_sooner", core_move);
	run_row("core.remove", core_remove);
}

/* Each handle has a line to itself: these lines are the program's, not the library's. */
static struct {
	_Alignas(64) struct tw_timer timer;
} handles[CALLS];

static void handle_set(unsigned i)
{
	MUST(tw_after_func(wheel, draw_delay(least_delay), count_run, NULL, &handles[i].timer));
}

static void handle_reset(unsigned i)
{
	MUST(tw_timer_reset(wheel, handles[i].timer, draw_delay(least_delay)));
}

static void handle_stop(unsigned i)
{
	MUST(tw_timer_stop(wheel, handles[i].timer));
}

static void rows_handles(void)
{
	least_delay = 40 * TW_SECOND;
	run_row("handles.set_new", handle_set);
	least_delay = 90 * TW_SECOND;
	run_row("handles.reset_later", handle_reset);
	least_delay = 30 * TW_SECOND;
	run_row("handles.reset_sooner", handle_reset);
	run_row("handles.stop", handle_stop);
}

static struct tw_alarm alarms[CALLS];

static void alarm_create(unsigned i)
{
	MUST(tw_alarm_init(wheel, &alarms[i], count_run, NULL));
}

static void alarm_set(unsigned i)
{
	MUST(tw_alarm_set(&alarms[i], draw_delay(least_delay)));
}

static void alarm_stop(unsigned i)
{
	MUST(tw_alarm_stop(&alarms[i]));
}

static void alarm_destroy(unsigned i)
{
	MUST(tw_alarm_destroy(&alarms[i]));
}

static void rows_alarms(void)
{
	run(alarm_create);
	least_delay = 40 * TW_SECOND;
	run_row("alarms.set", alarm_set);
	least_delay = 90 * TW_SECOND;
	run_row("alarms.later", alarm_set);
	least_delay = 30 * TW_SECOND;
	run_row("alarms.sooner", alarm_set);
	run_row("alarms.stop", alarm_stop);
	run(alarm_destroy);
}

/* Creates the wheel with this interval and clock. */
static void open_wheel(tw_duration interval, enum tw_clock clock)
{
	struct tw_options options = {
		.clock = clock, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};

	MUST(tw_create(&wheel, interval, 512, count_task, &options));
}

int main(int argc, char **argv)
{
	program = argv[0];
	if (argc > 1)
		callers = (unsigned)atoi(argv[1]);
	if (argc > 2)
		row_to_explain = argv[2];
	expect(callers > 0 && callers <= CALLERS_MOST, "1 to 16 callers");
	costs_init();
	/* One heap serves all threads; malloc's heaps for each would hide shared lines. */
	mallopt(M_ARENA_MAX, 1);
	start_callers();
	open_wheel(TW_SECOND, TW_CLOCK_MONOTONIC);
	rows_without_limit();
	rows_policy(TW_POLICY_LRU, "cache.get_hit_lru", "cache.get_hot16_lru", "cache.evict_lru");
	rows_policy(TW_POLICY_S3FIFO, "cache.get_hit_s3fifo", "cache.get_hot16_s3fifo",
		    "cache.evict_s3fifo");
	tw_destroy(wheel);
	open_wheel(TW_MILLISECOND, TW_CLOCK_MANUAL);
	rows_core();
	rows_handles();
	rows_alarms();
	end_callers();
	tw_destroy(wheel);
	return has_failed;
}
