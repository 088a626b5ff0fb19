/* SPDX-License-Identifier: MIT */
/*
 * The wheel is compared with brute force: an array of pending timers says which timer must come out
 * of wheel_expire, at which tick and, in an ordered wheel, in which order. The tests read the
 * wheel's lists only to count how many timers a call looks at.
 */
#include "support/test.h"

#include "base/clock.h"
#include "wheel/wheel.h"

enum {
	STEP = 64,
	TIMER_STRIDE = 128,
	MOST_LOOKS = 8 /* that an ordered wheel takes before it expires one timer, or none */
};

_Static_assert(TIMER_STRIDE >= sizeof(struct timer), "a timer must fit its stride");

struct kind {
	bool ordered;
};

static struct kind unordered = {false};
static struct kind ordered = {true};

/* This is the patience of all wheels here. */
enum { PATIENCE = 1500 };
/* A tick is one nanosecond, so that a deadline is its tick. */
static const struct ticks ticks = {.interval = 1};

static const size_t slot_counts[] = {1, 2, 3, 10, 64, 300, 512, 65537};
enum { SLOT_COUNTS = sizeof(slot_counts) / sizeof(slot_counts[0]) };

struct entry {
	bool pending;
	uint64_t due;      /* tick at which it must come out */
	uint64_t sequence; /* its last command's */
};

struct world {
	struct wheel *wheel;
	const struct kind *kind;
	size_t slots;
	struct random random;
	bool lags;    /* advances while busy: timers may be late */
	bool checks;  /* checks the invariants after each operation */
	bool scans;   /* scans all entries at each tick */
	bool hurries; /* some timers are for now, whatever their deadline */
	size_t size;
	size_t pending;
	uint64_t sequence;  /* the last command's */
	uint64_t last_tick; /* when a timer last expired, and that timer's deadline and sequence */
	tw_duration last_deadline;
	uint64_t last_sequence;
	uint64_t ordered_until; /* timers of the tick with later commands may be out of order */
	struct entry *entries;
	char *timers;
};

static struct world world_open(const struct kind *kind, size_t slots, size_t size,
			       struct random random)
{
	struct world world = {.kind = kind, .slots = slots, .random = random, .size = size};

	world.wheel = wheel_create(slots, &ticks, kind->ordered, PATIENCE);
	world.entries = calloc(size, sizeof(*world.entries));
	world.timers = calloc(size, TIMER_STRIDE);
	assert_non_null(world.wheel);
	assert_non_null(world.entries);
	assert_non_null(world.timers);
	return world;
}

static void world_close(struct world *world)
{
	wheel_destroy(world->wheel);
	free(world->entries);
	free(world->timers);
}

static struct timer *timer_at(struct world *world, size_t i)
{
	return (struct timer *)(void *)(world->timers + i * TIMER_STRIDE);
}

static struct entry *entry_of(struct world *world, const struct timer *timer)
{
	return &world->entries[(size_t)((const char *)timer - world->timers) / TIMER_STRIDE];
}

static void look_after(struct world *world)
{
	if (world->checks)
		assert_int_equal(wheel_check(world->wheel), world->pending);
}

/* TW_FOREVER, the tick before the last, counts as the last. */
static void command(struct world *world, size_t i, uint64_t expiry)
{
	struct entry *entry = &world->entries[i];
	uint64_t now = world->wheel->now;

	if (expiry == TW_FOREVER)
		expiry = TICK_NEVER;
	entry->due = expiry > now ? expiry : now;
	entry->sequence = ++world->sequence;
}

static tw_duration deadline_at(uint64_t expiry)
{
	return expiry < TICK_NEVER ? (tw_duration)expiry : TW_FOREVER;
}

static void take_from_model(struct world *world, struct entry *entry)
{
	assert_true(entry->pending);
	entry->pending = false;
	world->pending--;
}

static void remove_at(struct world *world, size_t i)
{
	take_from_model(world, &world->entries[i]);
	wheel_remove(timer_at(world, i));
	look_after(world);
}

static void add(struct world *world, size_t i, uint64_t expiry)
{
	struct timer *timer = timer_at(world, i);

	timer->is_for_now = world->hurries && random_below(&world->random, 8) == 0;
	command(world, i, timer->is_for_now ? 0 : expiry);
	world->entries[i].pending = true;
	world->pending++;
	timer->deadline = deadline_at(expiry);
	wheel_add(world->wheel, timer);
	look_after(world);
}

static void move(struct world *world, size_t i, uint64_t expiry)
{
	struct timer *timer = timer_at(world, i);
	struct list link = timer->link;
	tw_duration before = timer->deadline;

	if (timer->is_for_now) {
		remove_at(world, i);
		add(world, i, expiry);
		return;
	}
	command(world, i, expiry);
	timer->deadline = deadline_at(expiry);
	wheel_moved(world->wheel, timer, before);
	if (!wheel_move_unlinks(world->wheel, before, timer->deadline))
		assert_memory_equal(&timer->link, &link, sizeof(link));
	look_after(world);
}

/* Timers expire in order, tick by tick; one that a command made due while others of the tick
 * expired may come after later ones. */
static void judge_order(struct world *world, const struct timer *timer, uint64_t sequence)
{
	bool is_in_order =
		timer->deadline > world->last_deadline ||
		(timer->deadline == world->last_deadline && sequence > world->last_sequence);

	if (world->wheel->now == world->last_tick && is_in_order)
		return;
	if (world->wheel->now == world->last_tick)
		assert_true(sequence > world->ordered_until);
	world->ordered_until = world->sequence;
}

/* Checks a timer that the wheel reports as expired. */
static void judge_expired(struct world *world, const struct timer *timer)
{
	struct entry *entry = entry_of(world, timer);
	uint64_t now = world->wheel->now;

	take_from_model(world, entry);
	if (entry->due > now || (entry->due < now && !world->lags))
		fail_msg("%zu slots: due at %llu, expired at %llu", world->slots,
			 (unsigned long long)entry->due, (unsigned long long)now);
	if (world->kind->ordered)
		judge_order(world, timer, entry->sequence);
	else if (entry->due < now)
		assert_true(world->wheel->expired_late);
	world->last_tick = now;
	world->last_deadline = timer->deadline;
	world->last_sequence = entry->sequence;
}

static size_t list_length(const struct list *list)
{
	size_t length = 0;

	for (const struct list *link = list->next; link != list; link = link->next)
		length++;
	return length;
}

static size_t length_up_to(const struct list *list, size_t most)
{
	size_t length = 0;

	for (const struct list *link = list->next; link != list && length < most; link = link->next)
		length++;
	return length;
}

/* These timers are still to be looked at by the wheel. */
struct in_hand {
	size_t coming;
	size_t all;
};

static struct in_hand count_in_hand(const struct wheel *wheel)
{
	struct in_hand in_hand = {.coming = list_length(&wheel->rest)};

	for (int i = 0; i < WHEEL_COMING; i++)
		in_hand.coming += list_length(&wheel->coming[i]);
	in_hand.all = in_hand.coming + list_length(&wheel->next) + list_length(&wheel->due);
	return in_hand;
}

/* The step has looked at a timer, and at no more than `most`. */
static void judge_progress(struct in_hand before, struct in_hand after, size_t most)
{
	assert_true(after.coming <= before.coming && after.all <= before.all);
	assert_true(before.coming - after.coming <= most);
	assert_true(before.all - after.all <= most);
	if (before.all > 0)
		assert_true(after.coming < before.coming || after.all < before.all);
}

/* Expires up to `most` due timers, or does one step towards that. */
static size_t expire(struct wheel *wheel, bool in_order, struct timer **expired, size_t most)
{
	size_t count = 0;

	if (!in_order)
		return wheel_expire(wheel, expired, most);
	while (count < most && (expired[count] = wheel_expire_next(wheel)))
		count++;
	return count;
}

static void step(struct world *world, size_t most)
{
	struct in_hand before = {0};
	struct timer *expired[STEP];
	size_t count;

	if (world->checks)
		before = count_in_hand(world->wheel);
	count = expire(world->wheel, world->kind->ordered, expired, most);
	assert_true(count <= most);
	if (world->checks)
		judge_progress(before, count_in_hand(world->wheel),
			       world->kind->ordered ? (MOST_LOOKS + 1) * most : most);
	for (size_t i = 0; i < count; i++)
		judge_expired(world, expired[i]);
	look_after(world);
}

static uint64_t clamp_expiry(uint64_t expiry)
{
	return expiry < TICK_NEVER ? expiry : TICK_NEVER;
}

/* Draws now, soon, around a lap, around the bounds of levels, far or never. */
static uint64_t random_expiry(struct world *world)
{
	struct random *random = &world->random;
	uint64_t now = world->wheel->now;
	uint64_t lap = world->slots;

	switch (random_below(random, 8)) {
	case 0:
		return now - random_below(random, now + 1);
	case 1:
		return clamp_expiry(now + 1 + random_below(random, 3));
	case 2:
	case 3:
		return clamp_expiry(now + random_below(random, 2 * lap + 2));
	case 4:
		return clamp_expiry(now + random_below(random, 3 * lap * lap + 1));
	case 5:
		return clamp_expiry((now | 4) + ((uint64_t)1 << random_below(random, 40)) -
				    random_below(random, 4));
	case 6:
		return TICK_NEVER - random_below(random, 3);
	default:
		return clamp_expiry(now +
				    random_below(random, (uint64_t)2 << random_below(random, 30)));
	}
}

static void random_command(struct world *world)
{
	size_t i = (size_t)random_below(&world->random, world->size);

	if (!world->entries[i].pending)
		add(world, i, random_expiry(world));
	else if (random_once_in(&world->random, 3))
		remove_at(world, i);
	else
		move(world, i, random_expiry(world));
}

/* Expires all that is due, with commands between the steps. */
static void expire_all(struct world *world)
{
	while (wheel_is_busy(world->wheel)) {
		step(world, 1 + (size_t)random_below(&world->random, STEP));
		if (world->scans && random_once_in(&world->random, 4))
			random_command(world);
	}
}

static uint64_t earliest_due(const struct world *world)
{
	uint64_t earliest = TICK_NONE;

	for (size_t i = 0; i < world->size; i++)
		if (world->entries[i].pending && world->entries[i].due < earliest)
			earliest = world->entries[i].due;
	return earliest;
}

/* Returns the next tick, which must leave no timer behind. */
static uint64_t next_tick(struct world *world)
{
	uint64_t next = wheel_next_tick(world->wheel);

	assert_true(next > world->wheel->now);
	if (world->pending == 0)
		assert_true(next >= TICK_NEVER);
	if (world->scans && !wheel_is_busy(world->wheel))
		assert_true(next <= earliest_due(world) || world->pending == 0);
	return next;
}

static void advance_to(struct world *world, uint64_t target)
{
	uint64_t next;

	expire_all(world);
	while ((next = next_tick(world)) <= target) {
		wheel_advance(world->wheel, next);
		assert_int_equal(world->wheel->now, next);
		look_after(world);
		expire_all(world);
	}
	wheel_advance(world->wheel, target);
	look_after(world);
	assert_false(wheel_is_busy(world->wheel));
	if (world->scans)
		assert_true(earliest_due(world) > target);
}

/* Advances at each tick's time, whether or not the wheel has finished the previous tick. */
static void advance_while_busy(struct world *world, uint64_t target)
{
	uint64_t next;

	while ((next = next_tick(world)) <= target) {
		wheel_advance(world->wheel, next);
		for (uint64_t steps = random_below(&world->random, 3); steps > 0; steps--)
			step(world, 1 + (size_t)random_below(&world->random, 4));
	}
	wheel_advance(world->wheel, target);
	look_after(world);
}

static uint64_t random_target(struct world *world)
{
	uint64_t jump =
		random_below(&world->random, (uint64_t)2 << random_below(&world->random, 18));

	return world->wheel->now + jump;
}

static void live(struct world *world, int turns)
{
	for (int turn = 0; turn < turns; turn++) {
		for (uint64_t commands = random_below(&world->random, 10); commands > 0; commands--)
			random_command(world);
		advance_to(world, random_target(world));
	}
}

/* Opens a world for each count of slots; all are scanned after each change. */
static void for_each_world(const struct kind *kind, size_t size, void (*run)(struct world *))
{
	uint64_t seed = seed_choose();

	for (size_t i = 0; i < SLOT_COUNTS; i++) {
		struct world world =
			world_open(kind, slot_counts[i], size, random_from(seed, slot_counts[i]));

		world.scans = world.hurries = true;
		run(&world);
		world_close(&world);
	}
}

static void live_long(struct world *world)
{
	live(world, TEST_SHARE_OF(3000));
}

#define IN(kind)               \
	{                      \
#kind, &(kind) \
	}
static const struct test_kind kind_in_order = {.variants = TEST_VARIANTS(IN(ordered))};
static const struct test_kind kind_unordered = {.variants = TEST_VARIANTS(IN(unordered))};
static const struct test_kind kind_all = {.variants = TEST_VARIANTS(IN(ordered), IN(unordered))};

/* A wheel with one timer is often empty. */
TEST(all, random_timers_come_out_at_exactly_their_ticks)
{
	static const size_t sizes[] = {1, 3, 200};

	for (size_t i = 0; i < 3; i++)
		for_each_world(*state, sizes[i], live_long);
}

static void live_checked(struct world *world)
{
	world->checks = true;
	live(world, TEST_SHARE_OF(300));
}

TEST(all, every_operation_keeps_the_invariants_and_its_bounds)
{
	for_each_world(*state, 60, live_checked);
}

TEST(all, wheels_of_very_many_slots_are_as_exact)
{
	static const size_t many[] = {65536, 65537, 1000000};
	uint64_t seed = seed_choose();

	for (size_t i = 0; i < 3; i++) {
		struct world world = world_open(*state, many[i], 200, random_from(seed, many[i]));

		world.scans = true;
		live(&world, TEST_SHARE_OF(1000));
		world_close(&world);
	}
}

static void live_late(struct world *world)
{
	world->lags = true;
	for (int turn = 0; turn < TEST_SHARE_OF(2000); turn++) {
		for (uint64_t commands = random_below(&world->random, 10); commands > 0; commands--)
			random_command(world);
		advance_while_busy(world, random_target(world));
		if (random_once_in(&world->random, 10))
			advance_to(world, random_target(world));
	}
}

TEST(unordered, wheel_advanced_while_busy_is_late_never_early_and_loses_nothing)
{
	for_each_world(*state, 200, live_late);
}

/* Opens a world with timers of one tick, each moved to where it is in random order: no two of them
 * are in order. */
static struct world open_shuffled(const struct kind *kind, size_t size)
{
	struct world world = world_open(kind, 64, size, random_from(seed_choose(), 1));

	/* After a timer with a tick, each move would take its timer to the end. */
	for (size_t i = 0; i < size; i++)
		add(&world, i, 50);
	for (size_t i = 0; i < 2 * size; i++)
		move(&world, (size_t)random_below(&world.random, size), 50);
	wheel_advance(world.wheel, 50);
	return world;
}

/* The first timers afterwards were among the first before. */
static void step_with_few_looks(struct world *world)
{
	const struct list *rest = &world->wheel->rest;
	const struct list *first[MOST_LOOKS + 1];
	const struct list *link = rest->next;
	size_t passed = 0;

	for (size_t i = 0; i <= MOST_LOOKS; i++) {
		first[i] = link;
		if (link != rest)
			link = link->next;
	}
	step(world, 1);
	while (passed <= MOST_LOOKS && first[passed] != rest->next)
		passed++;
	assert_in_range(passed, 0, MOST_LOOKS);
}

/* judge_expired checks that they come out in order. */
TEST(in_order, crowd_out_of_order_is_looked_at_in_small_steps)
{
	enum { CROWD = TEST_SHARE_OF(100000) };
	struct world world = open_shuffled(*state, CROWD);
	size_t steps = 0;

	while (world.pending == CROWD) {
		step_with_few_looks(&world);
		steps++;
	}
	assert_in_range(steps, CROWD / MOST_LOOKS, CROWD / MOST_LOOKS + 2);
	expire_all(&world);
	assert_int_equal(world.pending, 0);
	world_close(&world);
}

/* Moves a timer to now, later or where it is, or removes it or adds it back. */
static void command_on_crowd(struct world *world)
{
	struct random *random = &world->random;
	size_t i = (size_t)random_below(random, world->size);
	uint64_t now = world->wheel->now;
	uint64_t expiry = now + random_below(random, 3) * random_below(random, 100);

	if (!world->entries[i].pending)
		add(world, i, expiry);
	else if (random_once_in(random, 3))
		remove_at(world, i);
	else
		move(world, i, expiry);
}

TEST(in_order, commands_while_a_crowd_is_sorted_keep_the_order)
{
	for (int turn = 0; turn < TEST_SHARE_OF(100); turn++) {
		struct world world = open_shuffled(*state, 1 + (size_t)turn * 3);
		uint64_t rate = 1 + random_below(&world.random, 30);

		world.checks = true;
		for (int left = 2000; wheel_is_busy(world.wheel); left--) {
			step(&world, 1);
			if (left > 0 && random_once_in(&world.random, rate))
				command_on_crowd(&world);
		}
		world.checks = false;
		world.scans = true;
		advance_to(&world, 1000);
		world_close(&world);
	}
}

/* Timer i and no other is newly due: it comes before the leftover ones. */
static void assert_next_is(struct world *world, size_t i)
{
	struct timer *expired[STEP] = {NULL};

	assert_int_equal(wheel_expire(world->wheel, expired, STEP), 1);
	assert_ptr_equal(expired[0], timer_at(world, i));
	assert_false(world->wheel->expired_late);
	judge_expired(world, expired[0]);
}

/* Opens a world with timer 0 amid a crowd, all due at `tick`; timer 1 is due at the next. */
static struct world open_crowd_at(const struct kind *kind, uint64_t tick)
{
	struct world world = world_open(kind, 16, 1000, random_from(1, 1));

	world.lags = true;
	for (size_t i = 2; i < 500; i++)
		add(&world, i, tick);
	add(&world, 0, tick);
	for (size_t i = 500; i < 1000; i++)
		add(&world, i, tick);
	add(&world, 1, tick + 1);
	return world;
}

static struct world open_crowd(const struct kind *kind)
{
	return open_crowd_at(kind, 5);
}

/* Timer 0 comes out first, at `tick`, although the crowd is still there. */
static void assert_overtakes(struct world *world, uint64_t tick)
{
	uint64_t next;

	while ((next = next_tick(world)) < tick) {
		wheel_advance(world->wheel, next);
		step(world, STEP);
	}
	assert_int_equal(next, tick);
	wheel_advance(world->wheel, tick);
	assert_next_is(world, 0);
	assert_in_range(world->pending, 1, SIZE_MAX);
	expire_all(world);
	assert_int_equal(world->pending, 0);
	world_close(world);
}

static void let_crowd_outlast_its_tick(struct world *world)
{
	wheel_advance(world->wheel, 5);
	step(world, STEP);
	wheel_advance(world->wheel, 6);
	assert_next_is(world, 1);
}

TEST(unordered, timer_moved_to_later_while_it_is_due_leaves_the_crowd)
{
	struct world world = open_crowd(*state);

	wheel_advance(world.wheel, 5);
	step(&world, STEP);
	move(&world, 0, 7);
	wheel_advance(world.wheel, 6);
	assert_next_is(&world, 1);
	assert_overtakes(&world, 7);
}

TEST(unordered, timer_moved_to_soon_after_a_crowd_is_not_held_up_by_it)
{
	for (uint64_t later = 7; later < 5 + PATIENCE; later += 104) {
		struct world world = open_crowd(*state);

		advance_to(&world, 2);
		move(&world, 0, later);
		move(&world, 0, later);
		let_crowd_outlast_its_tick(&world);
		assert_overtakes(&world, later);
	}
}

/* This goes up to the last slot of the finest of levels of 16 slots; those behind it come up
 * early. */
TEST(unordered, timer_moved_a_little_later_overtakes_a_crowd_in_any_slot)
{
	for (uint64_t tick = 1; tick < 32; tick++) {
		struct world world = open_crowd_at(*state, tick);

		move(&world, 0, tick + 2);
		assert_overtakes(&world, tick + 2);
	}
}

/* Several small moves are not a large one: the timer is looked at in time after each. */
TEST(unordered, timer_moved_by_little_again_and_again_is_not_held_up)
{
	struct world world = open_crowd(*state);
	uint64_t last = 5;

	while (last < 400)
		move(&world, 0, last += 7);
	let_crowd_outlast_its_tick(&world);
	assert_overtakes(&world, last);
}

/* In levels of 16 slots, a crowd comes down from the slot of ticks 32 to 47 from tick 16 on. */
TEST(unordered, timer_moved_to_later_while_it_is_to_be_refiled_leaves_the_crowd)
{
	struct world world = world_open(*state, 16, 1000, random_from(1, 1));

	world.lags = true;
	for (size_t i = 1; i < 1000; i++)
		add(&world, i, 40);
	add(&world, 0, 40);
	assert_int_equal(wheel_next_tick(world.wheel), 16);
	wheel_advance(world.wheel, 16);
	wheel_advance(world.wheel, 41);
	move(&world, 0, 43);
	assert_int_equal(wheel_next_tick(world.wheel), 43);
	wheel_advance(world.wheel, 43);
	step(&world, 1);
	assert_false(world.entries[0].pending);
	expire_all(&world);
	world_close(&world);
}

/* Returns the levels of a wheel with `slots` slots: a timer is looked at at most once in each. */
static size_t looks_at_most(size_t slots)
{
	size_t bits = 1;

	while (bits < 16 && (size_t)1 << bits < slots)
		bits++;
	return (63 + bits - 1) / bits;
}

TEST(all, far_timer_wakes_the_wheel_at_most_once_a_level)
{
	uint64_t seed = seed_choose();

	for (size_t i = 0; i < SLOT_COUNTS; i++) {
		struct world world =
			world_open(*state, slot_counts[i], 1, random_from(seed, slot_counts[i]));

		for (int turn = 0; turn < 500; turn++) {
			uint64_t far = (uint64_t)2 << random_below(&world.random, 50);
			size_t looks = 0;

			add(&world, 0, world.wheel->now + 1 + random_below(&world.random, far));
			for (; world.pending > 0; looks++) {
				wheel_advance(world.wheel, next_tick(&world));
				expire_all(&world);
			}
			assert_in_range(looks, 1, looks_at_most(slot_counts[i]));
		}
		world_close(&world);
	}
}

static struct list *link_at(struct list *list, size_t place)
{
	struct list *link = list->next;

	for (; place > 0; place--)
		link = link->next;
	return link;
}

/* Says whether `wanted` is one of the first `places`. */
static bool is_near_front(struct list *list, const struct list *wanted, size_t places)
{
	for (struct list *link = list->next; places > 0 && link != list; link = link->next) {
		if (link == wanted)
			return true;
		places--;
	}
	return false;
}

/* Does one step, which must leave alone all timers in hand but STEP. */
static void bounded_step(struct world *world)
{
	struct list *list = &world->wheel->due;
	struct list *left = NULL;

	if (list_is_empty(list)) {
		list = world->wheel->coming;
		while (list < world->wheel->coming + WHEEL_COMING - 1 && list_is_empty(list))
			list++;
	}
	if (length_up_to(list, 2 * STEP + 1) > 2 * STEP)
		left = link_at(list, STEP);
	step(world, STEP);
	if (left)
		assert_true(is_near_front(list, left, STEP + 1));
}

static void expire_crowd(struct world *world)
{
	while (world->pending > 0) {
		wheel_advance(world->wheel, next_tick(world));
		while (wheel_is_busy(world->wheel))
			bounded_step(world);
	}
}

/* They come down from the topmost level together. */
TEST(unordered, a_million_timers_in_one_slot_are_looked_at_64_at_a_time)
{
	size_t crowd = TEST_SHARE_OF(1000000);
	struct world world = world_open(*state, 512, crowd, random_from(seed_choose(), 1));
	uint64_t far = (uint64_t)5 << 54;

	for (size_t i = 0; i < crowd; i++)
		add(&world, i, far + random_below(&world.random, 1000));
	expire_crowd(&world);
	world_close(&world);
}

/* Ticks take 10 ns from 1003 ns on: deadlines lie between them, before the first, and at the
 * end. */
TEST(all, timer_comes_out_at_the_first_tick_that_is_not_before_its_deadline)
{
	static const struct ticks coarse = {.interval = 10, .origin = 1003};
	static const struct {
		tw_duration deadline;
		uint64_t tick;
	} cases[] = {{-5, 0},   {1003, 0},   {1004, 1},   {1013, 1},   {1014, 2},
		     {1023, 2}, {2002, 100}, {2003, 100}, {2004, 101}, {501003, 50000}};
	const struct kind *kind = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wheel *wheel = wheel_create(10, &coarse, kind->ordered, 1000);
		struct timer moved = {.deadline = cases[i].deadline / 2 + 1};
		struct timer timer = {.deadline = cases[i].deadline};
		struct timer never = {.deadline = TW_FOREVER};
		tw_duration before = moved.deadline;
		struct timer *expired[4];
		size_t count = 0;

		assert_non_null(wheel);
		wheel_add(wheel, &timer);
		wheel_add(wheel, &never);
		wheel_add(wheel, &moved);
		moved.deadline = cases[i].deadline;
		wheel_moved(wheel, &moved, before);
		while (count < 2) {
			if (!wheel_is_busy(wheel))
				wheel_advance(wheel, wheel_next_tick(wheel));
			count += expire(wheel, kind->ordered, expired + count, 2);
			assert_true(count == 0 || wheel->now == cases[i].tick);
		}
		assert_true(wheel_next_tick(wheel) > 50000);
		wheel_destroy(wheel);
	}
}

TEST(all, forever_is_not_now_even_at_the_end_of_time)
{
	const struct kind *kind = *state;
	struct wheel *wheel = wheel_create(10, &ticks, kind->ordered, PATIENCE);
	struct timer timer = {.deadline = TW_FOREVER};

	assert_non_null(wheel);
	wheel_advance(wheel, TICK_NEVER - 1);
	wheel_add(wheel, &timer);
	assert_false(wheel_is_busy(wheel));
	assert_true(wheel_next_tick(wheel) >= TICK_NEVER);
	wheel_destroy(wheel);
}

/* Expires what is due, in order. Returns how many. */
static size_t expire_in_order(struct wheel *wheel)
{
	struct timer *last = NULL;
	struct timer *timer;
	size_t count = 0;

	while (wheel_is_busy(wheel)) {
		if (!(timer = wheel_expire_next(wheel)))
			continue;
		assert_true(!last || last->deadline <= timer->deadline);
		if (last && last->deadline == timer->deadline)
			assert_true(last->sequence < timer->sequence);
		last = timer;
		count++;
	}
	return count;
}

TEST(in_order, crowd_comes_out_by_its_deadlines_within_a_tick)
{
	enum { CROWD = 3000, TICK = 700 };
	static const struct ticks coarse = {.interval = TICK};
	struct timer *timers = calloc(CROWD, sizeof(*timers));
	struct wheel *wheel = wheel_create(16, &coarse, true, PATIENCE);
	struct random random = random_from(1, 1);

	(void)state;
	assert_non_null(timers);
	assert_non_null(wheel);
	wheel_advance(wheel, 10);
	/* One for now, some that are due for long, and the others in the next tick. */
	timers[0] = (struct timer){.deadline = TW_FOREVER, .is_for_now = true};
	for (size_t i = 1; i < CROWD; i++)
		timers[i].deadline = (tw_duration)random_below(&random, i % 2 ? 10 * TICK : TICK) +
				     (i % 2 ? 1 : 10 * TICK + 1);
	for (size_t i = 0; i < CROWD; i++)
		wheel_add(wheel, &timers[i]);
	assert_int_equal(expire_in_order(wheel), CROWD / 2 + 1);
	for (size_t i = 1; i < CROWD; i += 2)
		wheel_add(wheel, &timers[i]);
	assert_int_equal(expire_in_order(wheel), CROWD / 2);
	wheel_advance(wheel, 11);
	assert_int_equal(expire_in_order(wheel), CROWD / 2 - 1);
	wheel_destroy(wheel);
	free(timers);
}
