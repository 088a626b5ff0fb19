/* SPDX-License-Identifier: MIT */
/*
 * Stops and resets race the firing on the real clock: exactly one of a stop and a run wins, and
 * what a stop or a reset promises holds from its return on. Runs count in atomics beside the timer;
 * the main thread sums them at the end.
 */
#include "support/test.h"

#include "support/recorder.h"

#define TICK TW_MILLISECOND

#if SANITIZER_THREAD
enum { SMALLER = 50 };
#elif SANITIZER_ADDRESS
enum { SMALLER = 10 };
#else
enum { SMALLER = 1 };
#endif

enum { RACERS = 2, TIMERS = 1000000 / SMALLER };

/* An entry is one timer and its outcome. */
struct entry {
	/* These are written before the entry is published. */
	struct tw_timer timer;
	tw_duration act_at; /* when the racers are to stop or reset it */
	/* Any thread writes these. */
	atomic_uint refused;
	atomic_uint runs;  /* begun */
	atomic_uint stops; /* calls that returned TW_OK or TW_REARMED */
	atomic_uint resets;
	atomic_uint releases;
	atomic_uint drains;
	atomic_uint owners;  /* how often the argument got an owner */
	unsigned tries;      /* runs, and calls of next; written by runs alone */
	atomic_uint inside;  /* runs in progress */
	atomic_bool promise; /* no run may begin from here on */
};

struct race {
	struct tw_wheel *wheel;
	struct entry *entries;
	size_t count;
	atomic_size_t published; /* entries that have been set */
	bool may_refuse;         /* the wheel refuses rather than waits */
	atomic_uint full;        /* calls that were refused */
	atomic_uint wrong;       /* wrong answers */
	atomic_uint broken;      /* runs that began in spite of a promise */
	atomic_uint overlaps;    /* concurrent runs of one timer */
	uint64_t stream;         /* random numbers' */
	bool polls;              /* the setter drives the wheel */
};

static struct race race; /* one at a time: a run knows its entry alone */

static void begin_run(struct entry *entry)
{
	if (atomic_load(&entry->promise))
		atomic_fetch_add(&race.broken, 1);
	if (atomic_fetch_add(&entry->inside, 1) != 0)
		atomic_fetch_add(&race.overlaps, 1);
	atomic_fetch_add(&entry->runs, 1);
}

static void end_run(struct entry *entry)
{
	atomic_fetch_sub(&entry->inside, 1);
}

static void run(void *argument)
{
	begin_run(argument);
	end_run(argument);
}

static void execute(void *context, const struct tw_task *task)
{
	atomic_fetch_add(&race.wrong, 1);
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct entry *entry = task->value;

	if (task->key != NULL || task->key_size != 0 || reason != TW_STOPPED)
		atomic_fetch_add(&race.wrong, 1);
	atomic_fetch_add(&entry->releases, 1);
}

static void drain(void *context, const struct tw_task *task)
{
	struct entry *entry = task->value;

	atomic_fetch_add(&entry->drains, 1);
}

static void race_open_with(const struct variant *variant, size_t count, uint64_t stream,
			   struct tw_options options)
{
	options.layout = variant->layout;
	options.drive = variant->drive;
	options.workers = variant->workers;
	options.release = release;
	race = (struct race){.count = count,
			     .stream = stream,
			     .polls = variant->drive == TW_DRIVE_CALLER,
			     .may_refuse = options.when_full == TW_WHEN_FULL_FAIL};
	race.entries = calloc(count, sizeof(race.entries[0]));
	assert_non_null(race.entries);
	assert_status(tw_create(&race.wheel, TICK, 512, execute, &options), TW_OK);
}

static void race_open(const struct variant *variant, size_t count, uint64_t stream)
{
	race_open_with(variant, count, stream, (struct tw_options){0});
}

static bool is_refusal(enum tw_status status)
{
	if (status != TW_FULL || !race.may_refuse)
		return false;
	atomic_fetch_add(&race.full, 1);
	return true;
}

static void race_close(void)
{
	tw_destroy(race.wheel);
	assert_int_equal(atomic_load(&race.wrong), 0);
	assert_int_equal(atomic_load(&race.broken), 0);
	assert_int_equal(atomic_load(&race.overlaps), 0);
	free(race.entries);
}

struct racer;
typedef void act_fn(struct racer *racer, struct entry *entry);

/* A racer is a thread that acts on each published entry when its time has come. */
struct racer {
	act_fn *act;
	struct random random;
	pthread_t thread;
};

static void wait_for_turn(size_t index)
{
	while (index >= atomic_load_explicit(&race.published, memory_order_acquire))
		give_way();
	while (tw_now(race.wheel) < race.entries[index].act_at)
		give_way();
}

static void *race_along(void *argument)
{
	struct racer *racer = argument;

	for (size_t i = 0; i < race.count; i++) {
		wait_for_turn(i);
		racer->act(racer, &race.entries[i]);
	}
	return NULL;
}

static void start_racers(struct racer racers[RACERS], act_fn *act)
{
	for (size_t i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.act = act};
		racers[i].random = random_from(seed_choose(), race.stream * 10 + 1 + i);
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race_along, &racers[i]),
				 0);
	}
}

static void join_racers(struct racer racers[RACERS])
{
	for (int i = 0; i < RACERS; i++)
		pthread_join(racers[i].thread, NULL);
}

typedef enum tw_status set_fn(struct entry *entry, struct random *random);

static void poll_now_and_then(size_t step)
{
	if (race.polls && step % 32 == 0 && tw_poll(race.wheel, NULL) != TW_OK)
		atomic_fetch_add(&race.wrong, 1);
}

/*
 * Sets all. The racers act on each 2 ms later, within a tick; delays around that let some of the
 * stops come early and some late.
 */
static void set_all(set_fn *set)
{
	struct random random = random_from(seed_choose(), race.stream * 10);

	for (size_t i = 0; i < race.count; i++) {
		struct entry *entry = &race.entries[i];
		enum tw_status status;

		entry->act_at = tw_now(race.wheel) + random_between(&random, TICK, 3 * TICK);
		status = set(entry, &random);
		if (status != TW_OK)
			atomic_fetch_add(&entry->refused, 1);
		if (status != TW_OK && status != TW_CLOSED && !is_refusal(status))
			atomic_fetch_add(&race.wrong, 1);
		/* release: publishes the entry; pairs with the acquire in wait_for_turn(). */
		atomic_store_explicit(&race.published, i + 1, memory_order_release);
		poll_now_and_then(i);
	}
}

static enum tw_status set_once(struct entry *entry, struct random *random)
{
	return tw_after_func(race.wheel, random_between(random, 0, 4 * TICK), run, entry,
			     &entry->timer);
}

static void note_stop(struct entry *entry, enum tw_status status)
{
	if (status == TW_OK) {
		atomic_store(&entry->promise, true);
		atomic_fetch_add(&entry->stops, 1);
	} else if (status == TW_REARMED) {
		atomic_fetch_add(&entry->stops, 1);
	} else if (status != TW_RUNNING && status != TW_NOT_FOUND) {
		atomic_fetch_add(&race.wrong, 1);
	}
}

/* Both racers stop each timer: one of the two and the run wins. */
static void stop_each(struct racer *racer, struct entry *entry)
{
	note_stop(entry, tw_timer_stop(race.wheel, entry->timer));
}

static size_t sum_of_ends(const struct entry *entry)
{
	return atomic_load(&entry->runs) + atomic_load(&entry->stops) +
	       atomic_load(&entry->releases) + atomic_load(&entry->drains) +
	       atomic_load(&entry->refused);
}

/* Checks that each timer came to one end; returns whether each of the two ends occurred. */
static bool judge_once(void)
{
	size_t runs = 0;
	size_t stops = 0;

	for (size_t i = 0; i < race.count; i++) {
		const struct entry *entry = &race.entries[i];

		if (sum_of_ends(entry) != 1)
			fail_msg("timer %zu ran %u times and was stopped %u times", i,
				 atomic_load(&entry->runs), atomic_load(&entry->stops));
		runs += atomic_load(&entry->runs);
		stops += atomic_load(&entry->stops);
	}
	print_message("%zu ran, %zu were stopped\n", runs, stops);
	assert_int_equal(runs + stops, race.count);
	return runs > 0 && stops > 0;
}

static void wait_until_all_have_ended(void)
{
	for (size_t i = 0; i < race.count; i++)
		WAIT_UNTIL((poll_now_and_then(0), sum_of_ends(&race.entries[i]) > 0));
	assert_status(tw_wait_idle(race.wheel), TW_OK);
	assert_status(tw_flush(race.wheel), TW_OK);
	assert_int_equal(tw_pending(race.wheel), 0);
}

/* All come to one end if a thread is without a processor for too long: then it tries again. */
static void run_stop_race(const struct variant *variant, size_t count)
{
	struct racer racers[RACERS];
	bool is_race = false;

	for (int round = 0; !is_race; round++) {
		assert_true(round < 50);
		race_open(variant, count, 1);
		start_racers(racers, stop_each);
		set_all(set_once);
		join_racers(racers);
		wait_until_all_have_ended();
		is_race = judge_once();
		race_close();
	}
}

TEST(threads, of_two_stops_and_the_run_exactly_one_wins)
{
	run_stop_race(*state, TIMERS);
}

TEST(everywhere, of_two_stops_and_the_run_exactly_one_wins_with_fewer)
{
	run_stop_race(*state, TIMERS / 10);
}

static tw_duration next_soon(void *argument, tw_duration previous)
{
	return previous + TICK;
}

static enum tw_status set_any(struct entry *entry, struct random *random)
{
	tw_duration delay = random_between(random, -TICK, 3 * TICK);

	switch (random_below(random, 4)) {
	case 0:
		return tw_every(race.wheel, delay, random_between(random, TICK / 2, 2 * TICK),
				(enum tw_missed)random_below(random, 3), run, entry, &entry->timer);
	case 1:
		return tw_schedule_func(race.wheel, next_soon, run, entry, &entry->timer);
	default:
		return tw_after_func(race.wheel, delay, run, entry, &entry->timer);
	}
}

/* Both racers reset and stop at random. */
static void act_at_random(struct racer *racer, struct entry *entry)
{
	struct random *random = &racer->random;

	for (uint64_t times = random_below(random, 4); times > 0; times--) {
		tw_duration delay = random_between(random, -TICK, 2 * TICK);
		enum tw_status status = tw_timer_reset(race.wheel, entry->timer, delay);

		if (status == TW_OK)
			atomic_fetch_add(&entry->resets, 1);
		else if (status != TW_NOT_FOUND && !is_refusal(status))
			atomic_fetch_add(&race.wrong, 1);
	}
	if (random_once_in(random, 2))
		note_stop(entry, tw_timer_stop(race.wheel, entry->timer));
}

/* Stops each for good, waits, and checks that no run follows. */
static void *end_all(void *argument)
{
	for (size_t i = 0; i < race.count; i++) {
		struct entry *entry = &race.entries[i];
		enum tw_status status;

		wait_for_turn(i);
		status = tw_timer_stop_wait(race.wheel, entry->timer);
		atomic_store(&entry->promise, true);
		if (atomic_load(&entry->inside) != 0 ||
		    tw_timer_stop(race.wheel, entry->timer) != TW_NOT_FOUND)
			atomic_fetch_add(&race.wrong, 1);
		if (status == TW_OK)
			atomic_fetch_add(&entry->stops, 1);
	}
	return NULL;
}

/* Each was stopped at most once; a refused one never was a timer, and its argument stayed here. */
static void judge_ends(void)
{
	size_t refused = 0;

	for (size_t i = 0; i < race.count; i++) {
		struct entry *entry = &race.entries[i];

		assert_in_range(atomic_load(&entry->stops), 0, 1);
		if (!atomic_load(&entry->refused))
			continue;
		refused++;
		assert_int_equal(entry->timer.id, 0);
		assert_int_equal(sum_of_ends(entry), 1);
		assert_int_equal(atomic_load(&entry->resets), 0);
	}
	print_message("%zu of %zu were refused\n", refused, race.count);
}

/* The wheel's count of refusals is that of the callers. */
static void judge_refusals(void)
{
	struct tw_stats stats;

	tw_get_stats(race.wheel, &stats);
	assert_int_equal(stats.refused, atomic_load(&race.full));
}

/* After a flush the queue is empty, so only the limit on timers refuses. */
static enum tw_status set_within_limit(void)
{
	enum tw_status status = tw_after_func(race.wheel, TW_HOUR, run, &race.entries[0], NULL);

	if (status != TW_FULL)
		return status;
	assert_status(tw_flush(race.wheel), TW_OK);
	return tw_after_func(race.wheel, TW_HOUR, run, &race.entries[0], NULL);
}

/* All places within the limit are free again. */
static void judge_places(size_t places)
{
	assert_status(tw_wait_idle(race.wheel), TW_OK);
	assert_status(tw_flush(race.wheel), TW_OK);
	assert_int_equal(tw_pending(race.wheel), 0);
	judge_ends();
	judge_refusals();
	for (size_t i = 0; i < race.count; i++)
		atomic_store(&race.entries[i].promise, false);
	for (size_t i = 0; i < places; i++)
		assert_status(set_within_limit(), TW_OK);
	assert_status(set_within_limit(), TW_FULL);
}

/*
 * Each end comes while the racers act, or later. The queue may be full, too, where the owner has no
 * processor, and in every third round, in which the queue is small.
 */
static void run_mixed_race(const struct variant *variant, size_t count, uint64_t round)
{
	const struct tw_options options = {.max_pending = count,
					   .when_full = TW_WHEN_FULL_FAIL,
					   .queue_capacity = round % 3 == 2 ? 64 : 0};
	struct racer racers[RACERS];
	pthread_t ender;

	race_open_with(variant, count, 100 + round, options);
	start_racers(racers, act_at_random);
	if (round % 2 == 0)
		assert_int_equal(pthread_create(&ender, NULL, end_all, NULL), 0);
	set_all(set_any);
	join_racers(racers);
	if (round % 2 != 0)
		assert_int_equal(pthread_create(&ender, NULL, end_all, NULL), 0);
	pthread_join(ender, NULL);
	judge_places(count);
	race_close();
}

TEST(with_owner, resets_stops_and_periods_race_and_keep_their_promises)
{
	for (uint64_t round = 0; round < 20; round++)
		run_mixed_race(*state, TIMERS / 200, round);
}

enum { MOST_TRIES = 12 };

/* The argument could be freed now: no run goes on or may begin. */
static void own(struct entry *entry)
{
	atomic_store(&entry->promise, true);
	if (atomic_load(&entry->inside) != 0)
		atomic_fetch_add(&race.wrong, 1);
	atomic_fetch_add(&entry->owners, 1);
}

/* The task fails some times and is tried again; the run that is not re-armed owns the argument. */
static void run_and_try_again(void *argument)
{
	struct entry *entry = argument;
	bool is_own;

	begin_run(entry);
	is_own = ++entry->tries >= MOST_TRIES ||
		 tw_timer_reset(race.wheel, entry->timer,
				(tw_duration)(entry->tries * 7 % 5) * TICK / 4) != TW_OK;
	end_run(entry);
	if (is_own)
		own(entry);
}

/* A periodic timer's run stops it in the end. */
static void run_until_enough(void *argument)
{
	struct entry *entry = argument;

	run(entry);
	if (++entry->tries == MOST_TRIES && tw_timer_stop(race.wheel, entry->timer) == TW_REARMED)
		own(entry);
}

/* Stops the schedule in the end, and owns the argument unless another stop or the wheel's does. */
static tw_duration next_until_enough(void *argument, tw_duration previous)
{
	struct entry *entry = argument;

	if (++entry->tries < MOST_TRIES)
		return previous + (tw_duration)(entry->tries % 3) * TICK / 2 + 1;
	if (tw_timer_stop(race.wheel, entry->timer) == TW_REARMED)
		own(entry);
	return previous + TICK;
}

static enum tw_status set_owned(struct entry *entry, struct random *random)
{
	tw_duration delay = random_between(random, 0, 2 * TICK);

	switch (random_below(random, 3)) {
	case 0:
		return tw_every(race.wheel, delay, TICK / 2 + 1,
				(enum tw_missed)random_below(random, 3), run_until_enough, entry,
				&entry->timer);
	case 1:
		return tw_schedule_func(race.wheel, next_until_enough, run, entry, &entry->timer);
	default:
		return tw_after_func(race.wheel, delay, run_and_try_again, entry, &entry->timer);
	}
}

/* Both racers stop each, in one of the two ways. */
static void stop_and_own(struct racer *racer, struct entry *entry)
{
	enum tw_status status;

	if (random_once_in(&racer->random, 2)) {
		status = tw_timer_stop_wait(race.wheel, entry->timer);
	} else {
		status = tw_timer_stop(race.wheel, entry->timer);
		if (status == TW_REARMED)
			(void)tw_timer_stop_wait(race.wheel, entry->timer);
	}
	if (status == TW_OK || status == TW_REARMED)
		own(entry);
}

/* The stop comes anywhere among a dozen runs, and sometimes after the wheel's own stop. */
static void run_owner_race(const struct variant *variant, uint64_t round)
{
	struct racer racers[RACERS];
	unsigned owners;

	race_open(variant, 1000, 9000 + round);
	start_racers(racers, stop_and_own);
	set_all(set_owned);
	if (round % 4 == 0)
		assert_status(tw_drain(race.wheel, drain, NULL), TW_OK);
	if (round % 2 == 0)
		assert_status(tw_stop(race.wheel), TW_OK);
	join_racers(racers);
	(void)tw_stop(race.wheel);
	assert_status(tw_wait_idle(race.wheel), TW_OK);
	for (size_t i = 0; i < race.count; i++) {
		const struct entry *entry = &race.entries[i];

		owners = atomic_load(&entry->owners) + atomic_load(&entry->releases) +
			 atomic_load(&entry->drains);
		if (owners != 1)
			fail_msg("argument %zu fell to %u: %u released, %u drained", i, owners,
				 atomic_load(&entry->releases), atomic_load(&entry->drains));
	}
	race_close();
}

TEST(with_owner, argument_falls_to_one_whenever_a_stop_meets_the_runs)
{
	for (uint64_t round = 0; round < TEST_SHARE_OF(40); round++)
		run_owner_race(*state, round);
}
