/* SPDX-License-Identifier: MIT */
/*
 * A wheel on the manual clock whose tasks, releases and drain calls are written down, in order, for
 * the main thread to look at. Tests run in several variants: both layouts, with and without an
 * owner thread, with and without workers.
 */
#ifndef SUPPORT_RECORDER_H
#define SUPPORT_RECORDER_H

#include <pthread.h>
#include <stddef.h>
#include <timingwheel/timingwheel.h>

#include "gate.h"
#include "journal.h"

struct variant {
	enum tw_layout layout;
	enum tw_drive drive;
	int workers;
};

/* loop: one thread makes all calls. inline: driven by the caller, no workers. owner: an owner
 * thread. workers: two. threads: both. */
extern struct variant levels_loop, levels_inline, levels_owner, levels_workers, levels_threads;
extern struct variant rounds_loop, rounds_inline, rounds_owner, rounds_workers, rounds_threads;

/* Entries of a cmocka test table. */
/* clang-format off */
#define TEST_IN(variant, test) {#test " (" #variant ")", test, NULL, NULL, &(variant)}
/* clang-format on */
#define TEST_BOTH(kind, test) TEST_IN(levels_##kind, test), TEST_IN(rounds_##kind, test)
/* Where the calling thread does everything. */
#define TEST_DRIVEN(test) TEST_BOTH(inline, test)
#define TEST_ALONE(test) TEST_DRIVEN(test), TEST_BOTH(loop, test)
/* Where tasks run in the order of their deadlines. */
#define TEST_INLINE(test) TEST_BOTH(inline, test), TEST_BOTH(owner, test)
/* Where tasks run on workers. */
#define TEST_POOL(test) TEST_BOTH(workers, test), TEST_BOTH(threads, test)
/* Where the wheel has threads, at least one. */
#define TEST_WITH_THREADS(test) TEST_BOTH(owner, test), TEST_POOL(test)
/* Where any thread may make calls. */
#define TEST_SHARED(test) TEST_INLINE(test), TEST_POOL(test)
#define TEST_EVERYWHERE(test) TEST_SHARED(test), TEST_BOTH(loop, test)

/* The tick of the recorded wheels, unless a test asks for another. */
#define INTERVAL TW_MILLISECOND

enum event_kind { EVENT_EXECUTE, EVENT_RELEASE, EVENT_DRAIN };

struct event {
	enum event_kind kind;
	enum tw_reason reason; /* of a release */
	void *value;
	size_t key_size;
	unsigned char key[32]; /* its first bytes */
	tw_duration deadline;
	tw_duration lateness;
	tw_duration now; /* tw_now during the call */
	pthread_t thread;
};

struct recorder {
	struct tw_wheel *wheel;
	void (*on_execute)(struct recorder *, const struct tw_task *); /* called after recording */
	void (*on_release)(struct recorder *, const struct tw_task *);
	void (*on_drain)(struct recorder *, const struct tw_task *);
	void *argument; /* for those */
	uintptr_t held; /* a task with this value is held up at the gate before them; 0: none */
	struct gate gate;
	struct journal events;
};

/* Options of a variant on the manual clock, and what `more` says; as many workers at the most. */
struct tw_options variant_options(const struct variant *variant, struct tw_options more);
/* Options of a variant, with the recorder's functions; tests change them before recorder_start. */
struct tw_options recorder_options(struct recorder *recorder, const struct variant *variant);
struct recorder *recorder_create(void);
/* Makes the wheel; the test fails if that fails. */
void recorder_start(struct recorder *recorder, tw_duration interval, size_t slots,
		    const struct tw_options *options);
/* The three above at once, with INTERVAL. */
struct recorder *recorder_open(const struct variant *variant, size_t slots);
/* The same, and what `more` says holds too. */
struct recorder *recorder_open_with(const struct variant *variant, size_t slots,
				    struct tw_options more);
/* Destroys the wheel if there is one still, and the recorder. */
void recorder_close(struct recorder *recorder);

/* For tw_create, and for tw_drain with the recorder as context. */
void record_execute(void *recorder, const struct tw_task *task);
void record_release(void *recorder, const struct tw_task *task, enum tw_reason reason);
void record_drain(void *recorder, const struct tw_task *task);

/* For a wheel whose tasks nobody looks at. */
void ignore_task(void *context, const struct tw_task *task);

/* Calls that must succeed, with string keys. Main thread. */
void set_timer(struct recorder *recorder, const char *key, uintptr_t value, tw_duration delay);
void set_timer_at(struct recorder *recorder, const char *key, uintptr_t value,
		  tw_duration deadline);
/* Timers "a", "b", … with the values 1, 2, …; after so many milliseconds, which are ticks. */
#define set_letters_ms(recorder, ...)                         \
	set_letters_ms_(recorder, (const int[]){__VA_ARGS__}, \
			sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
void set_letters_ms_(struct recorder *recorder, const int *delays, size_t count);
void move_timer(struct recorder *recorder, const char *key, tw_duration delay);
void remove_timer(struct recorder *recorder, const char *key);

/* Advances by whole ticks, one call a tick, and waits after each until its tasks have ended. */
void pass_ticks(struct recorder *recorder, int64_t ticks);
/* One tw_advance, then waits for the tasks. */
void advance(struct recorder *recorder, tw_duration by);
/* The same, to that time of the wheel's clock. */
void advance_to(struct recorder *recorder, tw_duration time);
/* Applies all commands and waits until nothing is owed. */
void settle(struct recorder *recorder);
void settle_wheel(struct tw_wheel *wheel);
/* tw_advance, and with TW_DRIVE_LOOP the polls that run what is due by then. */
enum tw_status advance_and_run(struct tw_wheel *wheel, tw_duration by);
/* Applies all commands. */
void flush_wheel(struct recorder *recorder);
/* tw_poll; how long until there is something to do. */
tw_duration poll_wheel(struct recorder *recorder);
/* Stops the wheel and waits until it has given back what it owes. */
void stop_wheel(struct recorder *recorder);

size_t event_count(struct recorder *recorder);
size_t event_count_of_kind(struct recorder *recorder, enum event_kind kind);
struct event event_at(struct recorder *recorder, size_t index);
/* How often the value came back, in any way. */
size_t times_returned(struct recorder *recorder, uintptr_t value);

/* The value's one and only event; the test fails if there are none or several. */
#define event_of(recorder, value) event_of_(recorder, value, __FILE__, __LINE__)
struct event event_of_(struct recorder *recorder, uintptr_t value, const char *file, int line);

/* The value came back once: executed at that time of the wheel's clock, released, drained. */
#define assert_executed_at(recorder, value, now) \
	assert_executed_at_(recorder, value, now, __FILE__, __LINE__)
void assert_executed_at_(struct recorder *recorder, uintptr_t value, tw_duration now,
			 const char *file, int line);
#define assert_released(recorder, value, reason) \
	assert_released_(recorder, value, reason, __FILE__, __LINE__)
void assert_released_(struct recorder *recorder, uintptr_t value, enum tw_reason reason,
		      const char *file, int line);
#define assert_drained(recorder, value) assert_drained_(recorder, value, __FILE__, __LINE__)
void assert_drained_(struct recorder *recorder, uintptr_t value, const char *file, int line);
#define assert_not_returned(recorder, value) assert_int_equal(times_returned(recorder, value), 0)
/* These are the values of all events so far, in this order. */
#define assert_order(recorder, ...)                                                           \
	assert_order_(recorder, (const uintptr_t[]){__VA_ARGS__},                             \
		      sizeof((const uintptr_t[]){__VA_ARGS__}) / sizeof(uintptr_t), __FILE__, \
		      __LINE__)
void assert_order_(struct recorder *recorder, const uintptr_t *values, size_t count,
		   const char *file, int line);

#define assert_status(call, expected) \
	assert_string_equal(tw_status_name(call), tw_status_name(expected))

#endif
