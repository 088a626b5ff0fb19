/* SPDX-License-Identifier: MIT */
/* Functions of the program that the wheel calls: they may call it and take their time, and return.
 */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/death.h"
#include "support/exceptions.h"
#include "support/recorder.h"

/* The wheel calls these functions. */
enum place { EXECUTE, RUN, ALARM, RELEASE, DRAIN, CLOSED, NEXT, VISIT, PLACES, START = PLACES };
static const char *const place_names[] = {"execute", "run",   "alarm's run",
					  "release", "drain", "closed",
					  "next",    "visit", "thread's start"};

/* The wheel calls each of them; the first call at `place` acts. */
struct world {
	struct tw_wheel *wheel;
	struct tw_alarm alarm;
	struct tw_alarm closed;
	enum place place;
	void (*act)(struct world *world);
	atomic_bool is_armed;
	struct gate gate;
	enum tw_status statuses[4]; /* answers to an act's calls */
};

static void reach(struct world *world, enum place place)
{
	if (place == world->place && atomic_exchange(&world->is_armed, false))
		world->act(world);
}

static void on_execute(void *context, const struct tw_task *task)
{
	reach(context, EXECUTE);
}

static void on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	reach(context, RELEASE);
}

static void on_drain(void *context, const struct tw_task *task)
{
	reach(context, DRAIN);
}

static void on_run(void *world)
{
	reach(world, RUN);
}

static void on_alarm(void *world)
{
	reach(world, ALARM);
}

static void on_closed(void *world)
{
	reach(world, CLOSED);
}

static tw_duration on_next(void *world, tw_duration previous)
{
	reach(world, NEXT);
	return previous + INTERVAL;
}

static int on_visit(void *world, const struct tw_pending_timer *timer)
{
	reach(world, VISIT);
	return 1;
}

static void on_start(void *world, const char *name)
{
	reach(world, START);
}

/* Makes the wheel and timers that lead to one call of each function in its first two ticks. */
static struct world *world_open(const struct variant *variant, enum place place,
				void (*act)(struct world *world))
{
	struct world *world = calloc(1, sizeof(*world));
	struct tw_options options =
		variant_options(variant, (struct tw_options){.context = world,
							     .release = on_release,
							     .on_thread_start = on_start,
							     .name = "odd one"});

	assert_non_null(world);
	world->place = place;
	world->act = act;
	gate_init(&world->gate);
	atomic_store(&world->is_armed, place == START);
	assert_status(tw_create(&world->wheel, INTERVAL, 16, on_execute, &options), TW_OK);
	/* The drain and the release may come at once; `next` is called here, too. */
	if (place != NEXT)
		atomic_store(&world->is_armed, true);
	assert_status(tw_set_timer(world->wheel, "drained", 7, NULL, TW_HOUR), TW_OK);
	assert_status(tw_drain(world->wheel, on_drain, world), TW_OK);
	assert_status(tw_set_timer(world->wheel, "removed", 7, NULL, TW_HOUR), TW_OK);
	assert_status(tw_remove_timer(world->wheel, "removed", 7), TW_OK);
	assert_status(tw_set_timer(world->wheel, "run", 3, NULL, INTERVAL), TW_OK);
	assert_status(tw_after_func(world->wheel, INTERVAL, on_run, world, NULL), TW_OK);
	assert_status(tw_alarm_init(world->wheel, &world->alarm, on_alarm, world), TW_OK);
	assert_status(tw_alarm_set(&world->alarm, INTERVAL), TW_OK);
	assert_status(tw_alarm_init(world->wheel, &world->closed, on_run, world), TW_OK);
	assert_status(tw_alarm_close(&world->closed, on_closed), TW_OK);
	assert_status(tw_schedule_func(world->wheel, on_next, on_run, world, NULL), TW_OK);
	if (place == NEXT)
		atomic_store(&world->is_armed, true);
	return world;
}

static void world_close(struct world *world)
{
	tw_destroy(world->wheel);
	free(world);
}

/* Makes the call in which the place is reached. */
static void drive(void *argument)
{
	struct world *world = argument;

	if (world->place == VISIT)
		(void)tw_each(world->wheel, on_visit, world);
	else
		(void)tw_advance(world->wheel, 2 * INTERVAL);
}

static void *drive_alone(void *argument)
{
	drive(argument);
	return argument;
}

/* ---- Functions that do not return ---- */

/* A case for a child process. */
struct fatal {
	const struct variant *variant;
	enum place place;
	void (*act)(void);
};

static void (*way_out)(void);

static void leave(struct world *world)
{
	way_out();
}

/* Drives in the child, where what is thrown would be caught. */
static void drive_to_the_end(void *argument)
{
	const struct fatal *fatal = argument;
	struct world *world;

	way_out = fatal->act;
	world = world_open(fatal->variant, fatal->place, leave);
	(void)exception_comes_out_of(drive, world);
	pause();
}

static const char not_returned[] =
	"timingwheel: a callback of the wheel \"odd one\" has not returned";

/* `message` is that of functions that the wheel's threads call. */
static void assert_ends_the_process(const struct variant *variant, void (*act)(void),
				    const char *message)
{
	bool is_driven = variant->workers < 0 && variant->drive != TW_DRIVE_THREAD;
	int places = is_driven ? PLACES : PLACES + 1;

	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	for (int place = 0; place < places; place++) {
		struct fatal fatal = {variant, (enum place)place, act};

		print_message("%s\n", place_names[place]);
		assert_dies(drive_to_the_end, &fatal,
			    is_driven || place == VISIT ? not_returned : message);
	}
}

TEST(everywhere, function_that_does_not_return_ends_the_process)
{
	for (int way = 0; way < NO_RETURNS; way++)
		assert_ends_the_process(*state, no_returns[way],
					way == THROWS ? terminated : not_returned);
}

/* ---- Functions that make calls, or take long ---- */

static void call_wheel(struct world *world)
{
	struct tw_stats stats;

	world->statuses[0] = tw_set_timer(world->wheel, "called", 6, NULL, TW_HOUR);
	world->statuses[1] = tw_contains(world->wheel, "called", 6, NULL);
	world->statuses[2] = tw_get_stats(world->wheel, &stats);
	world->statuses[3] = tw_wait_idle(world->wheel);
}

TEST(everywhere, function_may_call_the_wheel)
{
	for (int place = 0; place < PLACES; place++) {
		struct world *world = world_open(*state, (enum place)place, call_wheel);

		print_message("%s\n", place_names[place]);
		drive(world);
		settle_wheel(world->wheel);
		assert_false(atomic_load(&world->is_armed));
		assert_status(world->statuses[0], TW_OK);
		assert_status(world->statuses[1], TW_OK);
		assert_status(world->statuses[2], TW_OK);
		/* The call would wait for its own end. */
		assert_status(world->statuses[3], place == VISIT ? TW_OK : TW_INVALID);
		world_close(world);
	}
}

static void stay(struct world *world)
{
	gate_pass(&world->gate);
}

static void flush(void *argument)
{
	struct world *world = argument;

	world->statuses[0] = tw_flush(world->wheel);
}

TEST(everywhere, function_that_does_not_return_holds_up_no_set)
{
	for (int place = 0; place < PLACES; place++) {
		const struct variant *variant = *state;
		struct world *world = world_open(variant, (enum place)place, stay);
		struct blocked_call other = {.make = flush, .argument = world};
		bool waits = variant->workers == TW_WORKERS_INLINE && place != VISIT;
		pthread_t thread;
		struct tw_stats stats;

		print_message("%s\n", place_names[place]);
		assert_int_equal(pthread_create(&thread, NULL, drive_alone, world), 0);
		gate_await(&world->gate);
		assert_status(tw_set_timer(world->wheel, "meanwhile", 9, NULL, TW_HOUR), TW_OK);
		assert_status(tw_get_stats(world->wheel, &stats), TW_OK);
		/* Calls that wait for the owner wait for the act, where the owner does it. */
		blocked_call_start(&other, flush, world);
		if (waits)
			WAIT_UNTIL(blocked_call_is_asleep(&other));
		else
			WAIT_UNTIL(blocked_call_has_returned(&other));
		gate_open(&world->gate);
		blocked_call_end(&other);
		assert_status(world->statuses[0], TW_OK);
		pthread_join(thread, NULL);
		world_close(world);
	}
}

static atomic_int runs;

static void count_run(void *argument)
{
	atomic_fetch_add(&runs, 1);
}

static struct tw_wheel *open_wheel(const struct variant *variant)
{
	struct tw_options options = variant_options(variant, (struct tw_options){0});
	struct tw_wheel *wheel;

	atomic_store(&runs, 0);
	assert_status(tw_create(&wheel, INTERVAL, 16, NULL, &options), TW_OK);
	return wheel;
}

/* ---- A schedule's first call ---- */

struct schedule_call {
	struct tw_wheel *wheel;
	struct tw_timer timer;
};

static tw_duration throw_at_once(void *argument, tw_duration previous)
{
	exception_throw();
	return TW_FOREVER;
}

static void schedule(void *argument)
{
	struct schedule_call *call = argument;

	may_fail(tw_schedule_func(call->wheel, throw_at_once, count_run, NULL, &call->timer));
}

TEST(inline, next_that_throws_at_first_arms_nothing)
{
	struct schedule_call call = {.wheel = open_wheel(*state)};

	assert_true(exception_comes_out_of(schedule, &call));
	assert_int_equal(call.timer.id, 0);
	assert_status(tw_flush(call.wheel), TW_OK);
	assert_int_equal(tw_pending(call.wheel), 0);
	tw_destroy(call.wheel);
}

/* ---- Thread ends while the wheel ends ---- */

/* Each of two workers' data has a destructor, which acts at its thread's end. */
struct ends {
	struct tw_wheel *wheel;
	pthread_key_t key;
	atomic_int id[2]; /* the workers' system ids */
	atomic_int met;
	atomic_int ended;
	bool calls_right;
};

static bool thread_has_ended(int id)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d", id);
	return access(path, F_OK) != 0;
}

/* Makes every kind of call at the end of a worker thread. */
static bool calls_return(struct tw_wheel *wheel)
{
	struct tw_stats stats;
	struct tw_timer timer;
	tw_duration remaining;
	void *value;
	bool right = tw_get_stats(wheel, &stats) == TW_OK;

	right &= tw_set_timer(wheel, "late", 4, NULL, TW_HOUR) == TW_CLOSED;
	right &= tw_move_timer(wheel, "late", 4, TW_HOUR) == TW_CLOSED;
	right &= tw_remove_timer(wheel, "late", 4) == TW_CLOSED;
	right &= tw_add_timer(wheel, "late", 4, NULL, TW_HOUR) == TW_CLOSED;
	right &= tw_take_timer(wheel, "late", 4, &value) == TW_CLOSED;
	right &= tw_contains(wheel, "late", 4, &remaining) == TW_CLOSED;
	right &= tw_after_func(wheel, 1, count_run, NULL, &timer) == TW_CLOSED;
	right &= tw_timer_stop(wheel, timer) == TW_CLOSED;
	right &= tw_timer_stop_wait(wheel, timer) == TW_CLOSED;
	right &= tw_drain(wheel, on_drain, NULL) == TW_CLOSED;
	right &= tw_flush(wheel) == TW_CLOSED;
	right &= tw_each(wheel, on_visit, NULL) == TW_CLOSED;
	right &= tw_stop(wheel) == TW_CLOSED && tw_wait_idle(wheel) == TW_INVALID;
	right &= tw_pending(wheel) == 0;
	return right && tw_destroy(wheel) == TW_INVALID;
}

/* The worker that is joined first ends first; the other makes its calls after that. */
static void call_at_end(void *argument)
{
	struct ends *ends = argument;
	int me = (int)gettid();

	if (atomic_load(&ends->id[1]) == me) {
		while (!thread_has_ended(atomic_load(&ends->id[0])))
			give_way();
		/* Memory freed at a join is freed meanwhile. */
		for (int i = 0; i < 1000; i++)
			(void)calls_return(ends->wheel);
	}
	if (!calls_return(ends->wheel))
		ends->calls_right = false;
	atomic_fetch_add(&ends->ended, 1);
}

static void meet_other(void *argument)
{
	struct ends *ends = argument;
	char name[16];

	pthread_setspecific(ends->key, ends);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	atomic_store(&ends->id[strcmp(name, "tw-1") == 0], (int)gettid());
	atomic_fetch_add(&ends->met, 1);
	while (atomic_load(&ends->met) < 2)
		give_way();
}

TEST(pool, end_of_a_worker_may_call_the_wheel_inside_tw_destroy)
{
	struct ends ends = {.calls_right = true};
	struct tw_options options = variant_options(*state, (struct tw_options){0});

	assert_int_equal(pthread_key_create(&ends.key, call_at_end), 0);
	options.workers = options.max_workers = 2;
	assert_status(tw_create(&ends.wheel, INTERVAL, 16, on_execute, &options), TW_OK);
	for (int i = 0; i < 2; i++)
		assert_status(tw_after_func(ends.wheel, INTERVAL, meet_other, &ends, NULL), TW_OK);
	assert_status(tw_advance(ends.wheel, INTERVAL), TW_OK);
	settle_wheel(ends.wheel);
	tw_destroy(ends.wheel);
	assert_int_equal(atomic_load(&ends.ended), 2);
	assert_true(ends.calls_right);
	pthread_key_delete(ends.key);
}

/* These functions run while tw_destroy waits for them. */
static void call_while_destroyed(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct ends *ends = context;

	/* tw_stop passes timers to release when all calls are closed. */
	if (!calls_return(task->wheel))
		ends->calls_right = false;
	atomic_fetch_add(&ends->ended, 1);
}

TEST(everywhere, release_may_call_the_wheel_inside_tw_destroy)
{
	struct ends ends = {.calls_right = true};
	struct tw_options options = variant_options(
		*state, (struct tw_options){.context = &ends, .release = call_while_destroyed});

	assert_status(tw_create(&ends.wheel, INTERVAL, 16, on_execute, &options), TW_OK);
	for (int i = 0; i < 100; i++)
		assert_status(tw_after_func(ends.wheel, TW_HOUR, count_run, NULL, NULL), TW_OK);
	tw_destroy(ends.wheel);
	assert_int_equal(atomic_load(&ends.ended), 100);
	assert_true(ends.calls_right);
}
