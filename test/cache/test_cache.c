/* SPDX-License-Identifier: MIT */
/*
 * These are go-zero's promises about its cache, with the figures of its own tests: set, delete,
 * take, limits.
 */
#include "support/test.h"

#include "support/cache_script.h"
#include "support/stats.h"

#define GO_ZERO(name, text, ...) CACHE_SCRIPT(inline, name, 2 * TW_SECOND, text, __VA_ARGS__)

GO_ZERO(values_set_are_got_until_they_expire,
	"set first 'first element'; set second 'second element' 3000; get first = first element;"
	"get second = second element; pass 2200; get first = NOT_FOUND;"
	"get second = second element")

GO_ZERO(deleted_value_is_gone,
	"set first 'first element'; set second 'second element'; delete first;"
	"delete first = NOT_FOUND; get first = NOT_FOUND; get second = second element")

GO_ZERO(hundred_takes_load_once,
	"source 'first element' gated; begin 100 a take first; reached; await load_waits 99; go;"
	"ended a = first element; loads = 1; get first = first element;"
	"counts = hits 1 misses 100 loads_begun 1 load_waits 99 inserts 1 entries 1")

GO_ZERO(take_of_a_value_that_is_there_does_not_load,
	"set first 'first element'; take first wait 0 = first element; loads = 0")

GO_ZERO(error_of_a_load_is_returned_and_not_kept,
	"source SYSTEM; take first wait 0 = SYSTEM; loads = 1; take first wait 0 = SYSTEM;"
	"loads = 2; get first = NOT_FOUND")

#define FULL "set first 1; set second 2; set third 3;"
GO_ZERO(limit_of_three_evicts_the_oldest,
	FULL "set fourth 4; get first = NOT_FOUND; get second = 2; get third = 3; get fourth = 4",
	.policy = TW_POLICY_LRU, .max_entries = 3)

GO_ZERO(limit_of_three_keeps_the_one_read,
	FULL "get first = 1; set fourth 4; get first = 1; get second = NOT_FOUND; set fifth 5;"
	     "get third = NOT_FOUND; get first = 1",
	.policy = TW_POLICY_LRU, .max_entries = 3)

CACHED(inline, value_set_makes_others_go_and_not_itself, TW_MINUTE, .max_entries = 10, .shards = 64)
{
	char key[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		cache_set(recorder, key, "value");
		assert_holds(recorder, key, "value");
	}
	assert_int_equal(entries_of(recorder->cache), 10);
}
