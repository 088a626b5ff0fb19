/* SPDX-License-Identifier: MIT */
/*
 * A script is a case in words: the calls for one cache on a manual clock, what its loader answers,
 * and what comes of them.
 *
 *     CACHE_SCRIPT(threads, takes_share_a_load, TW_HOUR,
 *                  "source v gated; begin a take k; reached; begin 20 b take k;"
 *                  "await load_waits 20; go; ended a = v; ended b = v; loads = 1", LOADS)
 *
 * A step is a call, `= answer` and `-> events`. The answer is a status, a value or a number; a step
 * without one must succeed, and `= any` may be any. Events are the values that have left since the
 * last comparison, in any order, each with its cause: v:explicit, v:replaced, v:size, v:expired or
 * v:shutdown. A step with events first settles the cache. Times are milliseconds, which are ticks:
 * 3, 0.5, 4-1ns, 2h, never. {x|y} stands for x in a first run and for y in a second one.
 *
 *     set a v, set a v 5         the second one with a lifetime; letters abc: each sets itself
 *     add a v 5, replace a v 5, adopt a v 5, until a v 9, touch a 5, delete a, clear
 *     get a, many a, over a, acquire a, peek a
 *                                = the value; over: into the key's memory; peek: without a use
 *     compute a keep, compute a replace v 5, compute a delete
 *                                = the value seen, or none
 *     pop a = v                  deletes it
 *     each = a b                 the keys, sorted
 *     deadline a = 9             or 0
 *     lives a v 5                it has the value until the time has passed, and then none
 *     pass 5, advance 5, settle  advance: waits for no task
 *     stop, destroy, wheel_stop
 *
 *     source v, source SYSTEM, source v NOT_FOUND
 *                                what the loader gives and answers from now on; - is no value, and
 *                                a number is a status. Also: gated, it stops in each load; kept, it
 *                                keeps the load; lives 5, the value's lifetime
 *     other v                    the same for another loader, which a step has with the word other
 *     take a, take a wait 5      = the value, a status, or STALE and a value. Also: other, and own,
 *                                the cache's loader
 *     loads = 2                  calls of the loader
 *     reached, go                wait for a load that stops or was kept, and let it go on
 *     give v, give v 5, end OK, keep
 *                                about the load that was kept last
 *     begin b take a             in another thread; begin 20 b take a: in twenty
 *     ended b = v                waits for these
 *     async b a, async 20 b a    takes with a callback, or makes twenty takes, and
 *     answered b = v             waits for it, while `answers b = 0` counts without a wait
 *     thread b = own             the callback's: own or another
 *
 *     hits = 3                   a count of tw_cache_get_stats; loads there are loads_begun, those
 *                                that have ended are loads_ended; `removed expired = 2`
 *     counts = hits 1 misses 2   hits, misses, absent, loads_begun, load_errors, load_waits,
 *                                wait_timeouts, inserts, entries; those not named are 0
 *     await load_waits 20        waits until it is that
 */
#ifndef SUPPORT_CACHE_SCRIPT_H
#define SUPPORT_CACHE_SCRIPT_H

#include "cache_recorder.h"

/* CACHE_SCRIPT(kind, name, expire, text, options...) is a case on a cache with these options. */
#define CACHE_SCRIPT(kind, name, expire, text, ...)                                                \
	TEST(kind, name)                                                                           \
	{                                                                                          \
		cache_script_run(*state, expire, (struct tw_cache_options){__VA_ARGS__}, __FILE__, \
				 __LINE__, "%s", text);                                            \
	}
/* This option makes the script's loader the cache's own. */
#define LOADS .load = cache_script_load

enum tw_status cache_script_load(void *source, const void *key, size_t key_size,
				 struct tw_cache_loading *loading);
/* Runs the text, as printf() makes it. */
__attribute__((format(printf, 6, 7))) void cache_script_run(const struct variant *variant,
							    tw_duration expire,
							    struct tw_cache_options more,
							    const char *file, int line,
							    const char *format, ...);

#endif
