/* SPDX-License-Identifier: MIT */
/* Values past their deadline are given only to takes whose load fails. */
#include "support/test.h"

#include "support/cache_script.h"

enum { LIFE = 10 * INTERVAL, STALE = 100 * INTERVAL };

#define STALE_SCRIPT(name, text, ...) \
	CACHE_SCRIPT(inline_and_threads, name, LIFE, text, .stale_if_error = STALE, __VA_ARGS__)

/* A failure with a status, and one without a value. No other call finds the old value. */
STALE_SCRIPT(failed_load_gives_the_old_value_and_says_so,
	     "source SYSTEM; set key old; pass 10; take key = STALE old; source -;"
	     "take key = STALE old; loads = 2; get key = NOT_FOUND; peek key = NOT_FOUND;"
	     "touch key 1h = NOT_FOUND; replace key v 1h = NOT_FOUND; each = none; stale = 2;"
	     "counts = misses 3 loads_begun 2 load_errors 2 inserts 1 entries 1;"
	     "source new; take key = new -> old:expired")

STALE_SCRIPT(old_value_leaves_in_its_time,
	     "source SYSTEM; set key old; set unread 'old too' 20; set 'for ever' kept never;"
	     "pass 110-1ns; take key = STALE old; settle ->; pass 1ns; take key = SYSTEM;"
	     "pass 2 -> old:expired; entries = 2; pass 10 -> 'old too:expired'; entries = 1;"
	     "get 'for ever' = kept")

STALE_SCRIPT(value_that_was_touched_is_stale_from_its_last_deadline_on,
	     "source SYSTEM; set key old; touch key 50; pass 150-1ns; take key = STALE old;"
	     "pass 1ns; pass 2; entries = 0")

/* The source reports that there is none: an absence expires on time, and is not given. */
STALE_SCRIPT(deleted_cleared_and_absent_values_are_not_given,
	     "source SYSTEM; letters abc; pass 10; delete a = NOT_FOUND; take a = SYSTEM;"
	     "take b = STALE b; source NOT_FOUND; take b = NOT_FOUND; source SYSTEM;"
	     "take b = NOT_FOUND; pass 5; take b = SYSTEM; pass 2; entries = 1; clear;"
	     "take c = SYSTEM; entries = 0",
	     .negative_expire = 5 * INTERVAL)

STALE_SCRIPT(source_that_lost_the_key_ends_the_old_value,
	     "source NOT_FOUND; set key old; pass 10; take key = NOT_FOUND -> old:expired;"
	     "source SYSTEM; take key = SYSTEM")

STALE_SCRIPT(what_was_set_during_the_load_is_not_given_as_old,
	     "source SYSTEM gated; set key old; pass 10; begin a take key; reached; set key new;"
	     "go; ended a = SYSTEM; get key = new")

/* The letter a was used, which does not count any more. An entry that takes can use is as good as
 * a live one. */
STALE_SCRIPT(old_values_make_room_whatever_their_uses_were,
	     "source SYSTEM; letters abc; set x x 1h; set y y 1h; get a = a; pass 10; set z z 1h;"
	     "entries = 6; take b = STALE b; set v v 1h; set w w 1h; entries = 6; take a = SYSTEM;"
	     "take c = SYSTEM; take b = STALE b; get x = x; get y = y; get z = z; settle;"
	     "removed expired = 2",
	     .max_entries = 6, .policy = TW_POLICY_LRU)

#define STAYS                                                                                \
	"source SYSTEM; set hot old; pass 10; take hot = STALE old; set a a 1h; set b b 1h;" \
	"take hot = STALE old; set c c 1h; take hot = STALE old; set d d 1h;"                \
	"take hot = STALE old; set e e 1h; take hot = STALE old"
STALE_SCRIPT(old_value_that_takes_return_stays_by_lru, STAYS, .max_entries = 3,
	     .policy = TW_POLICY_LRU)
STALE_SCRIPT(old_value_that_takes_return_stays_by_s3fifo, STAYS, .max_entries = 3)

/* The wheel looks at the value at the next tick. */
STALE_SCRIPT(use_of_a_value_counts_from_its_deadline_on,
	     "source SYSTEM; set old old 10.5; set x x 1h; set y y 1h; advance 10.5;"
	     "take old = STALE old; pass 1; set z z 1h; take old = STALE old",
	     .max_entries = 3)

/* Takes that wait for another's load get it, too. */
CACHE_SCRIPT(threads, takes_of_all_kinds_are_given_the_old_value, LIFE,
	     "source SYSTEM; letters abc; pass 10; take a = STALE a; take x = SYSTEM;"
	     "async b b; answered b = STALE b; source SYSTEM gated; begin c take c; reached;"
	     "begin 20 d take c; await load_waits 20; go; ended c = STALE c; ended d = STALE c;"
	     "stale = 23",
	     LOADS, .stale_if_error = STALE)

/* A hanging source is no failure; an old value is given even so. */
STALE_SCRIPT(take_that_times_out_is_given_the_old_value,
	     "source new gated; set key old; pass 10; begin a take key; reached;"
	     "begin b take none; reached; take key other wait 0 = STALE old;"
	     "take none other wait 0 = TIMED_OUT; take key other wait 1 = STALE old;"
	     "take none other wait 1 = TIMED_OUT; pass 100; take key other wait 0 = TIMED_OUT;"
	     "stale = 2; wait_timeouts = 3; go; go; ended a = new; ended b = new; loads other = 0")
