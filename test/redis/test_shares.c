/* SPDX-License-Identifier: MIT */
/* Room is shared by weights, whatever each user has wanted and found before. */
#include "support/test.h"

#include "redis/worker/shares.h"
#include "support/seed.h"

enum { MOST_SHARES = 8, ROUNDS = 3000 };

struct table {
	struct share each[MOST_SHARES];
	struct shares shares;
	uint64_t taken[MOST_SHARES];
};

static void table_init(struct table *table, const unsigned *weights, size_t count)
{
	*table = (struct table){0};
	table->shares.each = table->each;
	table->shares.count = count;
	for (size_t i = 0; i < count; i++)
		table->each[i].weight = weights[i];
}

static void take(struct table *table, size_t index, size_t count)
{
	share_take(&table->each[index], count);
	table->taken[index] += count;
}

/* Shares room among users that want `most` each, and take all they get. */
static void round_of(struct table *table, size_t room, const size_t *most)
{
	for (size_t i = 0; i < table->shares.count; i++)
		table->each[i].most = most[i];
	shares_give(&table->shares, room);
	for (size_t i = 0; i < table->shares.count; i++)
		take(table, i, table->each[i].given);
}

static void single_places_go_round_by_weights(void **state)
{
	struct table table;

	table_init(&table, (unsigned[]){3, 1}, 2);
	for (int i = 0; i < 400; i++)
		round_of(&table, 1, (size_t[]){SIZE_MAX, SIZE_MAX});
	assert_int_equal(table.taken[0], 300);
	assert_int_equal(table.taken[1], 100);
}

static void large_room_is_divided_at_once(void **state)
{
	struct table table;

	table_init(&table, (unsigned[]){5, 2, 1}, 3);
	round_of(&table, 8000, (size_t[]){SIZE_MAX, SIZE_MAX, SIZE_MAX});
	/* Room is given in steps of a 256th. */
	assert_in_range(table.taken[0], 5000 - 64, 5000 + 64);
	assert_in_range(table.taken[1], 2000 - 64, 2000 + 64);
	assert_in_range(table.taken[2], 1000 - 64, 1000 + 64);
}

static void what_one_does_not_want_is_for_the_others(void **state)
{
	struct table table;

	table_init(&table, (unsigned[]){10, 1, 1}, 3);
	round_of(&table, 100, (size_t[]){4, 0, SIZE_MAX});
	assert_int_equal(table.taken[0], 4);
	assert_int_equal(table.taken[1], 0);
	assert_int_equal(table.taken[2], 96);
}

static void nothing_is_saved_up_while_nothing_is_wanted(void **state)
{
	struct table table;

	table_init(&table, (unsigned[]){1, 1}, 2);
	for (int i = 0; i < 1000; i++)
		round_of(&table, 1, (size_t[]){SIZE_MAX, 0});
	for (int i = 0; i < 100; i++)
		round_of(&table, 1, (size_t[]){SIZE_MAX, SIZE_MAX});
	assert_int_equal(table.taken[0], 1050);
	assert_int_equal(table.taken[1], 50);
}

/* A worker does not know how many tasks it will find. */
static void what_was_given_and_not_taken_is_made_up_for(void **state)
{
	struct table table;

	table_init(&table, (unsigned[]){1, 1}, 2);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 2; k++)
			table.each[k].most = SIZE_MAX;
		shares_give(&table.shares, 10);
		take(&table, 0, 1);
		take(&table, 1, table.each[1].given);
	}
	/* It is ahead now, and has the room until the other has had as much. */
	while (table.taken[0] + 1 < table.taken[1])
		round_of(&table, 1, (size_t[]){SIZE_MAX, SIZE_MAX});
	round_of(&table, 100, (size_t[]){SIZE_MAX, SIZE_MAX});
	assert_in_range(table.taken[0] + 2 - table.taken[1], 0, 4);
}

static void room_is_given_as_far_as_it_is_wanted(void **state)
{
	struct random random = random_from(seed_choose(), 0);
	struct table table;
	unsigned weights[MOST_SHARES];

	for (size_t i = 0; i < MOST_SHARES; i++)
		weights[i] = (unsigned)random_between(&random, 1, SHARE_WEIGHT_MAX);
	table_init(&table, weights, MOST_SHARES);
	for (int round = 0; round < ROUNDS; round++) {
		size_t room = random_below(&random, random_once_in(&random, 10) ? 10000 : 20);
		size_t wanted = 0;
		size_t given = 0;

		for (size_t i = 0; i < MOST_SHARES; i++) {
			table.each[i].most =
				random_once_in(&random, 3) ? 0 : random_below(&random, 2000);
			wanted += table.each[i].most;
		}
		shares_give(&table.shares, room);
		for (size_t i = 0; i < MOST_SHARES; i++) {
			assert_true(table.each[i].given <= table.each[i].most);
			given += table.each[i].given;
			take(&table, i, random_below(&random, table.each[i].given + 1));
		}
		assert_int_equal(given, wanted < room ? wanted : room);
	}
}

/* These users want all room, whatever they find, while others come and go. */
static void those_that_always_want_have_the_same_by_weight(void **state)
{
	enum { STEADY = 4, WEIGHT = 10, ROOM = 20 };
	struct random random = random_from(seed_choose(), 1);
	struct table table;
	unsigned weights[MOST_SHARES];

	for (size_t i = 0; i < MOST_SHARES; i++)
		weights[i] = (unsigned)random_between(&random, 1, WEIGHT);
	table_init(&table, weights, MOST_SHARES);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < MOST_SHARES; i++)
			table.each[i].most =
				i < STEADY ? SIZE_MAX : random_below(&random, 2) * ROOM;
		shares_give(&table.shares, random_below(&random, ROOM + 1));
		for (size_t i = 0; i < MOST_SHARES; i++)
			take(&table, i, random_below(&random, table.each[i].given + 1));
	}
	/* One may be ahead by what it found in one round while another found nothing. */
	for (size_t i = 0; i < STEADY; i++)
		for (size_t k = 0; k < STEADY; k++)
			assert_true((double)table.taken[i] / weights[i] <=
				    (double)table.taken[k] / weights[k] + ROOM + 1);
	assert_true(table.taken[0] / weights[0] > 10 * ROOM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_places_go_round_by_weights),
		cmocka_unit_test(large_room_is_divided_at_once),
		cmocka_unit_test(what_one_does_not_want_is_for_the_others),
		cmocka_unit_test(nothing_is_saved_up_while_nothing_is_wanted),
		cmocka_unit_test(what_was_given_and_not_taken_is_made_up_for),
		cmocka_unit_test(room_is_given_as_far_as_it_is_wanted),
		cmocka_unit_test(those_that_always_want_have_the_same_by_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
