/* SPDX-License-Identifier: MIT */
/*
 * The recorder has a wheel on a manual clock and records tasks, releases and drain calls in order,
 * for the main thread to read. Tests run in several variants: with and without an owner thread,
 * with and without workers.
 */
#ifndef SUPPORT_RECORDER_H
#define SUPPORT_RECORDER_H

#include <pthread.h>
#include <stddef.h>
#include <timingwheel/timingwheel.h>

#include "gate.h"
#include "journal.h"
#include "test.h"

struct variant {
	enum tw_drive drive;
	int workers;
};

/* levels_inline is driven by the caller, without workers; owner has an owner thread; workers has
 * two workers; threads has both. */
extern struct variant levels_inline, levels_owner, levels_workers, levels_threads;

/* These are kinds of cases (test.h) by their variants. */
extern const struct test_kind kind_everywhere; /* all four */
extern const struct test_kind kind_inline;     /* the calling thread does everything */
extern const struct test_kind kind_owner;
extern const struct test_kind kind_workers;
extern const struct test_kind kind_threads;
extern const struct test_kind kind_ordered;    /* inline, owner: in the order of deadlines */
extern const struct test_kind kind_pool;       /* workers, threads: tasks run on workers */
extern const struct test_kind kind_with_owner; /* owner, threads */
extern const struct test_kind kind_by_caller;  /* inline, workers */
extern const struct test_kind kind_inline_and_threads;
extern const struct test_kind kind_with_threads; /* all but inline: at least one thread */

/* This is the tick of recorded wheels, unless a test chooses another. */
#define INTERVAL TW_MILLISECOND

enum event_kind { EVENT_EXECUTE, EVENT_RELEASE, EVENT_DRAIN };

struct event {
	enum event_kind kind;
	enum tw_reason reason; /* the reason of a release */
	void *value;
	size_t key_size;
	unsigned char key[32]; /* its first bytes */
	tw_duration deadline;
	tw_duration lateness;
	tw_duration now; /* tw_now during the call */
	pthread_t thread;
};

struct recorder {
	const struct variant *variant;
	struct tw_wheel *wheel;
	void (*on_execute)(struct recorder *, const struct tw_task *); /* called after recording */
	void (*on_release)(struct recorder *, const struct tw_task *);
	void (*on_drain)(struct recorder *, const struct tw_task *);
	void *argument;      /* for those functions */
	uintptr_t held;      /* the value of the task that stops at the gate before them, or 0 */
	atomic_bool is_over; /* the case has returned: nothing is recorded, no function called */
	struct gate gate;
	struct journal events;
};

/* Returns the options of a variant on the manual clock, with `more` options; its workers are also
 * the maximum. */
struct tw_options variant_options(const struct variant *variant, struct tw_options more);
/* Returns a variant's options with the recorder's functions, for recorder_start. */
struct tw_options recorder_options(struct recorder *recorder, const struct variant *variant);
struct recorder *recorder_create(void);
/* Creates the wheel; the test fails if that fails. */
void recorder_start(struct recorder *recorder, tw_duration interval, size_t slots,
		    const struct tw_options *options);
/* Does the three above at once, with INTERVAL. */
struct recorder *recorder_open(const struct variant *variant, size_t slots);
/* Opens a recorder with `more` options. */
struct recorder *recorder_open_with(const struct variant *variant, size_t slots,
				    struct tw_options more);
/* Destroys the recorder, and its wheel if there is one. */
void recorder_close(struct recorder *recorder);

/* RECORDED(kind, name, .max_pending = 2) { ... } is a case with an open `recorder` of ten slots and
 * these options, or none. It is closed when the case has returned: by then no task or alarm may
 * use a variable of the case. */
#define RECORDED(kind, name, ...)                         \
	TEST_GIVEN(kind, name, struct recorder *recorder, \
		   recorder_give(*state, (struct tw_options){__VA_ARGS__}, name))
void recorder_give(const struct variant *variant, struct tw_options more,
		   void (*run)(struct recorder *));

/* These are for tw_create, and for tw_drain with the recorder as context. */
void record_execute(void *recorder, const struct tw_task *task);
void record_release(void *recorder, const struct tw_task *task, enum tw_reason reason);
void record_drain(void *recorder, const struct tw_task *task);

/* This stands for no release function in the options of a recorder. */
void no_release(void *context, const struct tw_task *task, enum tw_reason reason);
/* This is for a wheel whose tasks do not matter. */
void ignore_task(void *context, const struct tw_task *task);

/* These calls must succeed. They take string keys. Only the main thread may make them. */
void set_timer(struct recorder *recorder, const char *key, uintptr_t value, tw_duration delay);
/* Sets timers "a", "b", … with the values 1, 2, … and these delays in ms, which are ticks. */
#define set_letters_ms(recorder, ...)                         \
	set_letters_ms_(recorder, (const int[]){__VA_ARGS__}, \
			sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
void set_letters_ms_(struct recorder *recorder, const int *delays, size_t count);
void move_timer(struct recorder *recorder, const char *key, tw_duration delay);
void remove_timer(struct recorder *recorder, const char *key);

/* Advances by whole ticks, one call a tick, and waits after each until its tasks have ended. */
void pass_ticks(struct recorder *recorder, int64_t ticks);
/* Advances once, then waits for the tasks. */
void advance(struct recorder *recorder, tw_duration by);
/* Advances to that time of the wheel's clock, then waits for the tasks. */
void advance_to(struct recorder *recorder, tw_duration time);
/* Applies all commands and waits until all tasks and releases have come. */
void settle(struct recorder *recorder);
void settle_wheel(struct tw_wheel *wheel);
/* Applies all commands. */
void flush_wheel(struct recorder *recorder);
/* Polls. Returns the time until the next work. */
tw_duration poll_wheel(struct recorder *recorder);
/* Stops the wheel and waits until it has returned all values. */
void stop_wheel(struct recorder *recorder);

size_t event_count(struct recorder *recorder);
size_t event_count_of_kind(struct recorder *recorder, enum event_kind kind);
struct event event_at(struct recorder *recorder, size_t index);
/* Returns how often the value came back, in any way. */
size_t times_returned(struct recorder *recorder, uintptr_t value);

/* Returns the value's only event; the test fails if there are none or several. */
#define event_of(recorder, value) event_of_(recorder, value, __FILE__, __LINE__)
struct event event_of_(struct recorder *recorder, uintptr_t value, const char *file, int line);

/* These check that the value came back once: executed at that time of the wheel's clock, released,
 * drained. */
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
/* Checks that these are the values of all events so far, in this order. */
#define assert_order(recorder, ...)                                                           \
	assert_order_(recorder, (const uintptr_t[]){__VA_ARGS__},                             \
		      sizeof((const uintptr_t[]){__VA_ARGS__}) / sizeof(uintptr_t), __FILE__, \
		      __LINE__)
void assert_order_(struct recorder *recorder, const uintptr_t *values, size_t count,
		   const char *file, int line);

#define assert_status(call, expected) \
	assert_string_equal(tw_status_name(call), tw_status_name(expected))

#endif
