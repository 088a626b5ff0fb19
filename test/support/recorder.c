/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "recorder.h"

struct variant levels_inline = {TW_DRIVE_CALLER, TW_WORKERS_INLINE};
struct variant levels_owner = {TW_DRIVE_THREAD, TW_WORKERS_INLINE};
struct variant levels_workers = {TW_DRIVE_CALLER, 2};
struct variant levels_threads = {TW_DRIVE_THREAD, 2};

#define IN(variant)                  \
	{                            \
#variant, &(variant) \
	}
#define KIND(name, ...) \
	const struct test_kind kind_##name = {.variants = TEST_VARIANTS(__VA_ARGS__)}
KIND(everywhere, IN(levels_inline), IN(levels_owner), IN(levels_workers), IN(levels_threads));
KIND(inline, IN(levels_inline));
KIND(owner, IN(levels_owner));
KIND(workers, IN(levels_workers));
KIND(threads, IN(levels_threads));
KIND(ordered, IN(levels_inline), IN(levels_owner));
KIND(pool, IN(levels_workers), IN(levels_threads));
KIND(with_owner, IN(levels_owner), IN(levels_threads));
KIND(by_caller, IN(levels_inline), IN(levels_workers));
KIND(inline_and_threads, IN(levels_inline), IN(levels_threads));
KIND(with_threads, IN(levels_owner), IN(levels_workers), IN(levels_threads));

struct tw_options variant_options(const struct variant *variant, struct tw_options more)
{
	more.clock = TW_CLOCK_MANUAL;
	more.drive = variant->drive;
	if (more.workers == 0)
		more.workers = variant->workers;
	/* Some tests that stop all workers need their number to stay. */
	if (more.workers < 0)
		more.max_workers = 0;
	else if (more.max_workers == 0)
		more.max_workers = more.workers;
	return more;
}

struct tw_options recorder_options(struct recorder *recorder, const struct variant *variant)
{
	return variant_options(variant,
			       (struct tw_options){.context = recorder, .release = record_release});
}

struct recorder *recorder_create(void)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	assert_non_null(recorder);
	gate_init(&recorder->gate);
	journal_init(&recorder->events, sizeof(struct event));
	return recorder;
}

void recorder_start(struct recorder *recorder, tw_duration interval, size_t slots,
		    const struct tw_options *options)
{
	assert_status(tw_create(&recorder->wheel, interval, slots, record_execute, options), TW_OK);
	assert_non_null(recorder->wheel);
}

struct recorder *recorder_open(const struct variant *variant, size_t slots)
{
	return recorder_open_with(variant, slots, (struct tw_options){0});
}

struct recorder *recorder_open_with(const struct variant *variant, size_t slots,
				    struct tw_options more)
{
	struct recorder *recorder = recorder_create();

	recorder->variant = variant;
	more.context = recorder;
	if (more.release == NULL)
		more.release = record_release;
	else if (more.release == no_release)
		more.release = NULL;
	more = variant_options(variant, more);
	recorder_start(recorder, INTERVAL, slots, &more);
	return recorder;
}

void recorder_close(struct recorder *recorder)
{
	tw_destroy(recorder->wheel);
	journal_destroy(&recorder->events);
	free(recorder);
}

void recorder_give(const struct variant *variant, struct tw_options more,
		   void (*run)(struct recorder *))
{
	struct recorder *recorder = recorder_open_with(variant, 10, more);

	run(recorder);
	atomic_store(&recorder->is_over, true);
	recorder_close(recorder);
}

/* Returns false if nothing more is recorded. */
static bool record(struct recorder *recorder, enum event_kind kind, enum tw_reason reason,
		   const struct tw_task *task)
{
	struct event event = {
		.kind = kind,
		.reason = reason,
		.value = task->value,
		.key_size = task->key_size,
		.deadline = task->deadline,
		.lateness = task->lateness,
		.now = tw_now(recorder->wheel),
		.thread = pthread_self(),
	};
	size_t shown = task->key_size < sizeof(event.key) ? task->key_size : sizeof(event.key);

	if (atomic_load(&recorder->is_over))
		return false;
	if (shown > 0)
		memcpy(event.key, task->key, shown);
	journal_append(&recorder->events, &event);
	return true;
}

void record_execute(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;

	if (!record(recorder, EVENT_EXECUTE, 0, task))
		return;
	if (recorder->held != 0 && task->value == VALUE(recorder->held))
		gate_pass(&recorder->gate);
	if (recorder->on_execute != NULL)
		recorder->on_execute(recorder, task);
}

void record_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct recorder *recorder = context;

	if (!record(recorder, EVENT_RELEASE, reason, task))
		return;
	if (recorder->on_release != NULL)
		recorder->on_release(recorder, task);
}

void record_drain(void *context, const struct tw_task *task)
{
	struct recorder *recorder = context;

	if (!record(recorder, EVENT_DRAIN, 0, task))
		return;
	if (recorder->on_drain != NULL)
		recorder->on_drain(recorder, task);
}

void no_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
}

void ignore_task(void *context, const struct tw_task *task)
{
}

void set_timer(struct recorder *recorder, const char *key, uintptr_t value, tw_duration delay)
{
	assert_status(tw_set_timer(recorder->wheel, key, strlen(key), VALUE(value), delay), TW_OK);
}

void set_letters_ms_(struct recorder *recorder, const int *delays, size_t count)
{
	for (size_t i = 0; i < count; i++)
		set_timer(recorder, (const char[]){(char)('a' + i), '\0'}, i + 1,
			  delays[i] * TW_MILLISECOND);
}

void move_timer(struct recorder *recorder, const char *key, tw_duration delay)
{
	assert_status(tw_move_timer(recorder->wheel, key, strlen(key), delay), TW_OK);
}

void remove_timer(struct recorder *recorder, const char *key)
{
	assert_status(tw_remove_timer(recorder->wheel, key, strlen(key)), TW_OK);
}

void pass_ticks(struct recorder *recorder, int64_t ticks)
{
	for (int64_t i = 0; i < ticks; i++)
		advance(recorder, INTERVAL);
}

void advance(struct recorder *recorder, tw_duration by)
{
	assert_status(tw_advance(recorder->wheel, by), TW_OK);
	settle(recorder);
}

void advance_to(struct recorder *recorder, tw_duration time)
{
	advance(recorder, time - tw_now(recorder->wheel));
}

void settle(struct recorder *recorder)
{
	settle_wheel(recorder->wheel);
}

void settle_wheel(struct tw_wheel *wheel)
{
	assert_status(tw_wait_idle(wheel), TW_OK);
}

void flush_wheel(struct recorder *recorder)
{
	assert_status(tw_flush(recorder->wheel), TW_OK);
}

tw_duration poll_wheel(struct recorder *recorder)
{
	tw_duration until_next = -1;

	assert_status(tw_poll(recorder->wheel, &until_next), TW_OK);
	assert_true(until_next >= 0);
	return until_next;
}

void stop_wheel(struct recorder *recorder)
{
	assert_status(tw_stop(recorder->wheel), TW_OK);
	settle(recorder);
}

size_t event_count(struct recorder *recorder)
{
	return journal_count(&recorder->events);
}

static bool is_of_kind(const void *event, const void *kind)
{
	return ((const struct event *)event)->kind == *(const enum event_kind *)kind;
}

size_t event_count_of_kind(struct recorder *recorder, enum event_kind kind)
{
	return journal_find(&recorder->events, is_of_kind, &kind, NULL);
}

struct event event_at(struct recorder *recorder, size_t index)
{
	struct event event;

	journal_get(&recorder->events, index, &event);
	return event;
}

static bool has_value(const void *event, const void *value)
{
	return ((const struct event *)event)->value == value;
}

size_t times_returned(struct recorder *recorder, uintptr_t value)
{
	return journal_find(&recorder->events, has_value, VALUE(value), NULL);
}

struct event event_of_(struct recorder *recorder, uintptr_t value, const char *file, int line)
{
	size_t index = 0;
	size_t times = journal_find(&recorder->events, has_value, VALUE(value), &index);

	if (times != 1) {
		print_error("value %zu came back %zu times\n", (size_t)value, times);
		_fail(file, line);
	}
	return event_at(recorder, index);
}

static void expect_kind(struct event event, enum event_kind kind, const char *file, int line)
{
	static const char *const names[] = {"executed", "released", "drained"};

	if (event.kind == kind)
		return;
	print_error("value %zu was %s, not %s\n", (size_t)(uintptr_t)event.value, names[event.kind],
		    names[kind]);
	_fail(file, line);
}

void assert_executed_at_(struct recorder *recorder, uintptr_t value, tw_duration now,
			 const char *file, int line)
{
	struct event event = event_of_(recorder, value, file, line);

	expect_kind(event, EVENT_EXECUTE, file, line);
	if (event.now != now) {
		print_error("value %zu was executed at %lld, not at %lld\n", (size_t)value,
			    (long long)event.now, (long long)now);
		_fail(file, line);
	}
}

void assert_released_(struct recorder *recorder, uintptr_t value, enum tw_reason reason,
		      const char *file, int line)
{
	struct event event = event_of_(recorder, value, file, line);

	expect_kind(event, EVENT_RELEASE, file, line);
	if (event.reason != reason) {
		print_error("value %zu was released for reason %d, not %d\n", (size_t)value,
			    event.reason, reason);
		_fail(file, line);
	}
}

void assert_drained_(struct recorder *recorder, uintptr_t value, const char *file, int line)
{
	expect_kind(event_of_(recorder, value, file, line), EVENT_DRAIN, file, line);
}

void assert_order_(struct recorder *recorder, const uintptr_t *values, size_t count,
		   const char *file, int line)
{
	size_t recorded = event_count(recorder);

	for (size_t i = 0; i < count && i < recorded; i++) {
		uintptr_t value = (uintptr_t)event_at(recorder, i).value;

		if (value != values[i]) {
			print_error("event %zu is value %zu, not %zu\n", i, (size_t)value,
				    (size_t)values[i]);
			_fail(file, line);
		}
	}
	if (count != recorded) {
		print_error("%zu events, not %zu\n", recorded, count);
		_fail(file, line);
	}
}
