/* SPDX-License-Identifier: MIT */
/* Structs are copied between a program and the library where one side has more fields. */
#include "base/sized.h"
#include "support/test.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct old {
	int a;
	int b;
};

struct grown {
	int a;
	int b;
	int c;
};

static void same_struct_is_copied(void **state)
{
	const struct old theirs = {1, 2};
	struct old own;

	(void)state;
	assert_true(sized_read(&own, sizeof(own), &theirs, sizeof(theirs)));
	assert_memory_equal(&own, &theirs, sizeof(own));
	memset(&own, 0, sizeof(own));
	sized_write(&own, sizeof(own), &theirs, sizeof(theirs));
	assert_memory_equal(&own, &theirs, sizeof(own));
}

static void older_program_sets_no_new_field(void **state)
{
	const struct old theirs = {1, 2};
	struct grown own = {9, 9, 9};

	(void)state;
	assert_true(sized_read(&own, sizeof(own), &theirs, sizeof(theirs)));
	assert_int_equal(own.b, 2);
	assert_int_equal(own.c, 0);
}

static void older_program_gets_what_it_has_room_for(void **state)
{
	const struct grown own = {1, 2, 3};
	int theirs[3] = {9, 9, 9};

	(void)state;
	sized_write(theirs, sizeof(struct old), &own, sizeof(own));
	assert_int_equal(theirs[1], 2);
	assert_int_equal(theirs[2], 9);
}

static void newer_program_asks_for_nothing_unknown(void **state)
{
	struct grown theirs = {1, 2, 0};
	struct old own;

	(void)state;
	assert_true(sized_read(&own, sizeof(own), &theirs, sizeof(theirs)));
	assert_int_equal(own.b, 2);
	theirs.c = 1 << 24;
	assert_false(sized_read(&own, sizeof(own), &theirs, sizeof(theirs)));
}

static void program_without_a_struct_sets_nothing(void **state)
{
	struct old own = {9, 9};

	(void)state;
	assert_true(sized_read(&own, sizeof(own), NULL, sizeof(own)));
	assert_int_equal(own.a, 0);
	assert_int_equal(own.b, 0);
}

static void newer_program_gets_zero(void **state)
{
	const struct old own = {1, 2};
	struct grown theirs = {9, 9, 9};

	(void)state;
	sized_write(&theirs, sizeof(theirs), &own, sizeof(own));
	assert_int_equal(theirs.b, 2);
	assert_int_equal(theirs.c, 0);
}

static void same_struct_is_not_copied(void **state)
{
	const struct old theirs = {1, 2};
	struct sized_array array;
	struct old own;

	(void)state;
	assert_ptr_equal(sized_view(&own, sizeof(own), &theirs, sizeof(theirs)), &theirs);
	assert_null(sized_view(&own, sizeof(own), NULL, sizeof(struct grown)));
	assert_int_equal(sized_array_read(&array, sizeof(own), &theirs, sizeof(theirs), 1), TW_OK);
	assert_ptr_equal(array.items, &theirs);
	assert_null(array.copy);
}

static void other_struct_is_seen_as_a_copy(void **state)
{
	struct grown theirs = {1, 2, 0};
	struct old own;

	(void)state;
	assert_ptr_equal(sized_view(&own, sizeof(own), &theirs, sizeof(theirs)), &own);
	assert_int_equal(own.b, 2);
	theirs.c = 3;
	assert_null(sized_view(&own, sizeof(own), &theirs, sizeof(theirs)));
}

static void array_goes_by_the_size_of_the_program(void **state)
{
	struct grown theirs[] = {{1, 2, 0}, {3, 4, 0}};
	struct sized_array array;
	const struct old *own;

	(void)state;
	assert_int_equal(sized_array_read(&array, sizeof(*own), theirs, sizeof(*theirs), 2), TW_OK);
	own = array.items;
	assert_int_equal(own[0].b, 2);
	assert_int_equal(own[1].a, 3);
	assert_int_equal(own[1].b, 4);
	free(array.copy);
	theirs[1].c = 5;
	assert_int_equal(sized_array_read(&array, sizeof(*own), theirs, sizeof(*theirs), 2),
			 TW_INVALID);
	free(array.copy);
	assert_int_equal(sized_array_read(&array, sizeof(*own), NULL, sizeof(*theirs), 0), TW_OK);
	assert_null(array.copy);
	assert_int_equal(
		sized_array_read(&array, sizeof(*own), theirs, sizeof(*theirs), SIZE_MAX / 2),
		TW_NO_MEMORY);
	assert_null(array.copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_struct_is_copied),
		cmocka_unit_test(older_program_sets_no_new_field),
		cmocka_unit_test(older_program_gets_what_it_has_room_for),
		cmocka_unit_test(newer_program_asks_for_nothing_unknown),
		cmocka_unit_test(program_without_a_struct_sets_nothing),
		cmocka_unit_test(newer_program_gets_zero),
		cmocka_unit_test(same_struct_is_not_copied),
		cmocka_unit_test(other_struct_is_seen_as_a_copy),
		cmocka_unit_test(array_goes_by_the_size_of_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
