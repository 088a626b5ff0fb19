/* SPDX-License-Identifier: MIT */
/* A callback may do other things than return: each cell of the table in timingwheel.h is tested. */
#include "support/test.h"

#include "support/blocked_call.h"
#include "support/exceptions.h"
#include "support/recorder.h"
#include "support/wait.h"

#include <assert.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The wheel calls these functions. */
enum place { EXECUTE, RUN, ALARM, RELEASE, DRAIN, CLOSED, NEXT, VISIT, PLACES };
static const char *const place_names[] = {"execute", "run",    "alarm's run", "release",
					  "drain",   "closed", "next",        "visit"};

/* The wheel calls each of them; the first call at `place` acts. */
struct world {
	struct tw_wheel *wheel;
	struct tw_alarm *alarm;
	enum place place;
	void (*act)(struct world *world);
	atomic_bool is_armed;
	atomic_int calls[PLACES];
	struct gate gate;
	jmp_buf way_out;
	enum tw_status statuses[4]; /* answers to an act's calls */
};

static void reach(struct world *world, enum place place)
{
	atomic_fetch_add(&world->calls[place], 1);
	if (place == world->place && atomic_exchange(&world->is_armed, false))
		world->act(world);
}

static void on_execute(void *context, const struct tw_task *task)
{
	(void)task;
	reach(context, EXECUTE);
}

static void on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	(void)task;
	(void)reason;
	reach(context, RELEASE);
}

static void on_drain(void *context, const struct tw_task *task)
{
	(void)task;
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
	(void)timer;
	reach(world, VISIT);
	return 1;
}

/* Makes the wheel and timers that lead to one call of each function in its first two ticks. */
static struct world *world_open(const struct variant *variant, enum place place,
				void (*act)(struct world *world))
{
	struct world *world = calloc(1, sizeof(*world));
	struct tw_alarm *closed;
	struct tw_timer timer;
	struct tw_options options = variant_options(
		variant, (struct tw_options){.context = world, .release = on_release});

	assert_non_null(world);
	world->place = place;
	world->act = act;
	gate_init(&world->gate);
	assert_status(tw_create(&world->wheel, INTERVAL, 16, on_execute, &options), TW_OK);
	/* The drain and the release may come at once; `next` is called here, too. */
	atomic_store(&world->is_armed, place != NEXT);
	assert_status(tw_set_timer(world->wheel, "drained", 7, NULL, TW_HOUR), TW_OK);
	assert_status(tw_drain(world->wheel, on_drain, world), TW_OK);
	assert_status(tw_set_timer(world->wheel, "removed", 7, NULL, TW_HOUR), TW_OK);
	assert_status(tw_remove_timer(world->wheel, "removed", 7), TW_OK);
	assert_status(tw_set_timer(world->wheel, "run", 3, NULL, INTERVAL), TW_OK);
	assert_status(tw_after_func(world->wheel, INTERVAL, on_run, world, NULL), TW_OK);
	assert_status(tw_alarm_create(world->wheel, on_alarm, world, &world->alarm), TW_OK);
	assert_status(tw_alarm_set(world->alarm, INTERVAL), TW_OK);
	assert_status(tw_after_func(world->wheel, TW_HOUR, on_run, world, &timer), TW_OK);
	assert_status(tw_timer_close(world->wheel, timer, on_closed), TW_OK);
	assert_status(tw_alarm_create(world->wheel, on_run, world, &closed), TW_OK);
	assert_status(tw_alarm_close(closed, on_closed), TW_OK);
	assert_status(tw_schedule_func(world->wheel, on_next, on_run, world, NULL), TW_OK);
	if (place == NEXT)
		atomic_store(&world->is_armed, true);
	return world;
}

static void world_close(struct world *world)
{
	tw_alarm_destroy(world->alarm);
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

static bool can_be_cancelled(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	return state == PTHREAD_CANCEL_ENABLE;
}

/* Checks that the wheel does the rest, each thing once, and ends. */
static void assert_stands(struct world *world)
{
	struct tw_stats stats;

	assert_false(atomic_load(&world->is_armed));
	assert_null(tw_current_task());
	assert_false(tw_is_in_task(world->wheel));
	assert_true(can_be_cancelled());
	assert_status(tw_get_stats(world->wheel, &stats), TW_OK);
	assert_int_equal(stats.running, 0);
	assert_status(tw_flush(world->wheel), TW_OK);
	assert_status(tw_poll(world->wheel, NULL), TW_OK);
	assert_status(tw_advance(world->wheel, 2 * INTERVAL), TW_OK);
	settle_wheel(world->wheel);
	assert_status(tw_get_stats(world->wheel, &stats), TW_OK);
	assert_int_equal(stats.running, 0);
	assert_int_equal(stats.lateness.count, stats.task_duration.count);
	assert_int_equal(stats.fired, stats.task_duration.count - 1); /* the alarm is not counted */
	assert_int_equal(world->calls[EXECUTE], 1);
	assert_int_equal(world->calls[ALARM], 1);
	assert_int_equal(world->calls[DRAIN], 1);
	assert_int_equal(world->calls[RELEASE], 1);
	assert_int_equal(world->calls[CLOSED], 2);
	assert_in_range(world->calls[RUN], 2, 5);
	/* A schedule whose `next` does not return has ended. */
	assert_int_equal(tw_pending(world->wheel), world->place == NEXT ? 0 : 1);
	world_close(world);
}

static void throw_up(struct world *world)
{
	(void)world;
	exception_throw();
}

static void wheel_stands_after_a_function_that_throws(void **state)
{
	for (int place = 0; place < PLACES; place++) {
		struct world *world = world_open(*state, (enum place)place, throw_up);

		print_message("%s\n", place_names[place]);
		assert_true(exception_comes_out_of(drive, world));
		assert_stands(world);
	}
}

static void leave_thread(struct world *world)
{
	(void)world;
	pthread_exit(NULL);
}

static void *drive_alone(void *argument)
{
	drive(argument);
	return argument;
}

static void wheel_stands_after_a_function_that_ends_its_thread(void **state)
{
	for (int place = 0; place < PLACES; place++) {
		struct world *world = world_open(*state, (enum place)place, leave_thread);
		pthread_t thread;
		void *returned;

		print_message("%s\n", place_names[place]);
		assert_int_equal(pthread_create(&thread, NULL, drive_alone, world), 0);
		assert_int_equal(pthread_join(thread, &returned), 0);
		assert_null(returned);
		assert_stands(world);
	}
}

static void be_cancelled(struct world *world)
{
	int state;

	(void)world;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void wheel_stands_after_a_task_that_lets_its_thread_be_cancelled(void **state)
{
	struct world *world;
	pthread_t thread;
	void *returned;

	/* When such a thread ends, the sanitizer takes the unwound stack for one in use. */
	if (SANITIZER_ADDRESS)
		TEST_SKIP("the address sanitizer does not see the unwinding of a cancelled thread");
	world = world_open(*state, EXECUTE, be_cancelled);
	assert_int_equal(pthread_create(&thread, NULL, drive_alone, world), 0);
	assert_int_equal(pthread_join(thread, &returned), 0);
	assert_true(returned == PTHREAD_CANCELED);
	assert_stands(world);
}

/* Runs the act in a child, which it ends. Returns the signal, or 0. */
static int signal_of(const struct variant *variant, enum place place,
		     void (*act)(struct world *world))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct world *world = world_open(variant, place, act);

		alarm(60);
		fclose(stderr);
		close(STDERR_FILENO);
		drive(world);
		(void)tw_wait_idle(world->wheel);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void function_that_leaves_a_thread_of_the_wheel_ends_the_process(void **state)
{
	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	for (int place = 0; place < VISIT; place++) {
		assert_int_equal(signal_of(*state, (enum place)place, throw_up), SIGABRT);
		assert_int_equal(signal_of(*state, (enum place)place, leave_thread), SIGABRT);
	}
}

static void jump_out(struct world *world)
{
	longjmp(world->way_out, 1);
}

/* The wheel can't be used any more, as the header says. */
static void wheel_is_lost_after_a_longjmp(void **state)
{
	if (!TEST_CAN_FORK)
		TEST_SKIP("a fork is tried without the thread sanitizer");
	for (int place = 0; place < PLACES; place++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			struct world *world = world_open(*state, (enum place)place, jump_out);

			if (setjmp(world->way_out) == 0)
				drive(world);
			_exit(place == VISIT ? can_be_cancelled()
					     : tw_poll(world->wheel, NULL) != TW_INVALID);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

static void call_wheel(struct world *world)
{
	struct tw_stats stats;

	world->statuses[0] = tw_set_timer(world->wheel, "called", 6, NULL, TW_HOUR);
	world->statuses[1] = tw_contains(world->wheel, "called", 6, NULL);
	world->statuses[2] = tw_get_stats(world->wheel, &stats);
	world->statuses[3] = tw_wait_idle(world->wheel);
}

static void function_may_call_the_wheel(void **state)
{
	const struct variant *variant = *state;

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

static void function_that_does_not_return_holds_up_no_set(void **state)
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

/* ---- Notes beside the table ---- */

static atomic_int runs;

static void count_run(void *argument)
{
	(void)argument;
	atomic_fetch_add(&runs, 1);
}

static void throw_each_time(void *argument)
{
	count_run(argument);
	exception_throw();
}

static struct tw_wheel *open_wheel(const struct variant *variant)
{
	struct tw_options options = variant_options(variant, (struct tw_options){0});
	struct tw_wheel *wheel;

	atomic_store(&runs, 0);
	assert_status(tw_create(&wheel, INTERVAL, 16, NULL, &options), TW_OK);
	return wheel;
}

static void advance_far(void *wheel)
{
	(void)tw_advance(wheel, 10 * INTERVAL);
}

static void poll_once(void *wheel)
{
	(void)tw_poll(wheel, NULL);
}

static void flush_once(void *wheel)
{
	(void)tw_flush(wheel);
}

static void wait_until_idle(void *wheel)
{
	(void)tw_wait_idle(wheel);
}

static void exception_leaves_the_rest_of_its_tick_to_the_next_drive(void **state)
{
	struct tw_wheel *wheel = open_wheel(*state);

	for (int i = 0; i < 3; i++) {
		assert_status(tw_after_func(wheel, 2 * INTERVAL, count_run, NULL, NULL), TW_OK);
		assert_status(tw_after_func(wheel, 2 * INTERVAL, throw_each_time, NULL, NULL),
			      TW_OK);
	}
	assert_true(exception_comes_out_of(advance_far, wheel));
	/* The clock stops where the task threw. */
	assert_int_equal(tw_now(wheel), 2 * INTERVAL);
	assert_int_equal(atomic_load(&runs), 2);
	assert_int_equal(tw_pending(wheel), 4);
	assert_true(exception_comes_out_of(poll_once, wheel));
	assert_int_equal(atomic_load(&runs), 4);
	assert_true(exception_comes_out_of(wait_until_idle, wheel));
	assert_int_equal(atomic_load(&runs), 6);
	assert_false(exception_comes_out_of(flush_once, wheel));
	assert_int_equal(tw_pending(wheel), 0);
	tw_destroy(wheel);
}

static void periodic_timer_goes_on_after_a_run_that_throws(void **state)
{
	struct tw_wheel *wheel = open_wheel(*state);
	struct tw_timer timer;

	assert_status(
		tw_every(wheel, INTERVAL, INTERVAL, TW_MISSED_BURST, throw_each_time, NULL, &timer),
		TW_OK);
	for (int i = 1; i <= 5; i++) {
		assert_true(exception_comes_out_of(advance_far, wheel));
		assert_int_equal(atomic_load(&runs), i);
		assert_int_equal(tw_now(wheel), i * INTERVAL);
	}
	assert_status(tw_timer_stop_wait(wheel, timer), TW_OK);
	assert_false(exception_comes_out_of(advance_far, wheel));
	tw_destroy(wheel);
}

struct schedule_call {
	struct tw_wheel *wheel;
	struct tw_timer timer;
};

static tw_duration throw_at_once(void *argument, tw_duration previous)
{
	(void)argument;
	(void)previous;
	exception_throw();
	return TW_FOREVER;
}

static void schedule(void *argument)
{
	struct schedule_call *call = argument;

	may_fail(tw_schedule_func(call->wheel, throw_at_once, count_run, NULL, &call->timer));
}

static void next_that_throws_at_first_arms_nothing(void **state)
{
	struct schedule_call call = {.wheel = open_wheel(*state)};

	assert_true(exception_comes_out_of(schedule, &call));
	assert_int_equal(call.timer.id, 0);
	assert_status(tw_flush(call.wheel), TW_OK);
	assert_int_equal(tw_pending(call.wheel), 0);
	tw_destroy(call.wheel);
}

static void throw_on_release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	(void)task;
	(void)reason;
	throw_each_time(context);
}

static void destroy(void *wheel)
{
	tw_destroy(wheel);
}

static void destroy_may_be_called_again_after_an_exception_of_release(void **state)
{
	struct tw_options options =
		variant_options(*state, (struct tw_options){.release = throw_on_release});
	struct tw_wheel *wheel;

	atomic_store(&runs, 0);
	assert_status(tw_create(&wheel, INTERVAL, 16, NULL, &options), TW_OK);
	for (int i = 0; i < 3; i++)
		assert_status(tw_after_func(wheel, TW_HOUR, count_run, NULL, NULL), TW_OK);
	for (int i = 1; i <= 3; i++) {
		assert_true(exception_comes_out_of(destroy, wheel));
		assert_int_equal(atomic_load(&runs), i);
		assert_true(can_be_cancelled());
		assert_status(tw_flush(wheel), TW_CLOSED);
	}
	assert_false(exception_comes_out_of(destroy, wheel));
}

/* A run closes its own timer or alarm and throws. */
struct closing {
	struct tw_wheel *wheel;
	struct tw_alarm *alarm; /* or NULL */
	struct tw_timer timer;
	atomic_int closed;
	bool closed_throws;
	bool destroys; /* destroys the wheel, too */
};

static void count_closed(void *argument)
{
	struct closing *closing = argument;

	atomic_fetch_add(&closing->closed, 1);
	if (closing->closed_throws)
		exception_throw();
}

static void close_and_throw(void *argument)
{
	struct closing *closing = argument;

	if (closing->alarm)
		(void)tw_alarm_close(closing->alarm, count_closed);
	else
		(void)tw_timer_close(closing->wheel, closing->timer, count_closed);
	if (closing->destroys)
		tw_destroy(closing->wheel);
	if (!closing->closed_throws)
		exception_throw();
}

static void closing_open(const struct variant *variant, struct closing *closing, bool has_alarm)
{
	closing->wheel = open_wheel(variant);
	if (has_alarm) {
		assert_status(
			tw_alarm_create(closing->wheel, close_and_throw, closing, &closing->alarm),
			TW_OK);
		assert_status(tw_alarm_set(closing->alarm, INTERVAL), TW_OK);
	} else {
		assert_status(tw_every(closing->wheel, INTERVAL, INTERVAL, TW_MISSED_BURST,
				       close_and_throw, closing, &closing->timer),
			      TW_OK);
	}
}

static void close_is_done_after_a_run_that_throws(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct closing closing = {.closed_throws = kind >= 2};
		struct tw_stats stats;

		closing_open(*state, &closing, kind % 2);
		assert_true(exception_comes_out_of(advance_far, closing.wheel));
		assert_false(exception_comes_out_of(advance_far, closing.wheel));
		assert_int_equal(atomic_load(&closing.closed), 1);
		assert_int_equal(tw_pending(closing.wheel), 0);
		assert_null(tw_current_task());
		assert_status(tw_get_stats(closing.wheel, &stats), TW_OK);
		assert_int_equal(stats.running, 0);
		tw_destroy(closing.wheel);
	}
}

static void wheel_that_a_run_destroyed_before_it_threw_is_destroyed_again(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct closing closing = {.destroys = true};

		closing_open(*state, &closing, kind % 2);
		assert_true(exception_comes_out_of(advance_far, closing.wheel));
		/* A loop may go on with it: no other call frees it now. */
		for (int poll = 0; kind < 2 && poll < 2; poll++)
			assert_status(tw_poll(closing.wheel, NULL), TW_CLOSED);
		tw_destroy(closing.wheel);
		assert_int_equal(atomic_load(&closing.closed), 1);
	}
}

static void throw_behind_gate(struct world *world)
{
	gate_pass(&world->gate);
	exception_throw();
}

static void *drive_and_catch(void *world)
{
	return exception_comes_out_of(drive, world) ? world : NULL;
}

static void call_of_another_thread_is_answered_after_an_exception(void **state)
{
	struct world *world = world_open(*state, EXECUTE, throw_behind_gate);
	struct blocked_call other = {.make = flush, .argument = world};
	pthread_t thread;
	void *caught;

	assert_int_equal(pthread_create(&thread, NULL, drive_and_catch, world), 0);
	gate_await(&world->gate);
	blocked_call_start(&other, flush, world);
	WAIT_UNTIL(blocked_call_is_asleep(&other));
	gate_open(&world->gate);
	blocked_call_end(&other);
	assert_status(world->statuses[0], TW_OK);
	pthread_join(thread, &caught);
	assert_ptr_equal(caught, world);
	assert_stands(world);
}

static struct tw_wheel *inner;
static bool inner_catches;

static void drive_inner(void *argument)
{
	const struct tw_task *task = tw_current_task();

	count_run(argument);
	if (!inner_catches)
		advance_far(inner);
	assert(exception_comes_out_of(advance_far, inner));
	assert(tw_current_task() == task);
}

static void exception_of_an_inner_wheel_may_leave_both(void **state)
{
	for (int catches = 0; catches < 2; catches++) {
		struct tw_wheel *outer = open_wheel(*state);

		inner = open_wheel(*state);
		inner_catches = catches;
		assert_status(tw_after_func(outer, INTERVAL, drive_inner, NULL, NULL), TW_OK);
		assert_status(tw_after_func(inner, INTERVAL, throw_each_time, NULL, NULL), TW_OK);
		assert_status(tw_after_func(outer, INTERVAL, count_run, NULL, NULL), TW_OK);
		assert_int_equal(exception_comes_out_of(advance_far, outer), !catches);
		assert_false(exception_comes_out_of(advance_far, outer));
		assert_false(exception_comes_out_of(advance_far, inner));
		assert_int_equal(atomic_load(&runs), 3);
		assert_null(tw_current_task());
		tw_destroy(inner);
		tw_destroy(outer);
	}
}

static void descriptor_calls_for_what_an_exception_has_left(void **state)
{
	const struct variant *variant = *state;
	struct tw_options options = {
		.layout = variant->layout, .drive = TW_DRIVE_CALLER, .workers = TW_WORKERS_INLINE};
	struct pollfd descriptor = {.events = POLLIN};
	struct tw_wheel *wheel;

	atomic_store(&runs, 0);
	assert_status(tw_create(&wheel, INTERVAL, 16, NULL, &options), TW_OK);
	descriptor.fd = tw_fd(wheel);
	assert_true(descriptor.fd >= 0);
	assert_status(tw_after_func(wheel, 0, throw_each_time, NULL, NULL), TW_OK);
	assert_status(tw_after_func(wheel, 0, count_run, NULL, NULL), TW_OK);
	assert_true(exception_comes_out_of(poll_once, wheel));
	assert_int_equal(poll(&descriptor, 1, 0), 1);
	assert_false(exception_comes_out_of(poll_once, wheel));
	assert_int_equal(atomic_load(&runs), 2);
	assert_int_equal(poll(&descriptor, 1, 0), 0);
	tw_destroy(wheel);
}

static int throw_at_visit(void *context, const struct tw_pending_timer *timer)
{
	(void)context;
	(void)timer;
	exception_throw();
	return 1;
}

static void visit_and_throw(void *wheel)
{
	(void)tw_each(wheel, throw_at_visit, NULL);
}

static void visitor_that_throws_costs_no_memory(void **state)
{
	struct tw_wheel *wheel = open_wheel(*state);
	size_t before = 0;

	assert_status(tw_after_func(wheel, TW_HOUR, count_run, NULL, NULL), TW_OK);
	for (int i = 0; i < 100; i++) {
		assert_true(exception_comes_out_of(visit_and_throw, wheel));
		if (i == 9)
			before = mallinfo2().uordblks;
	}
	assert_in_range(mallinfo2().uordblks, 0, before + 20000);
	tw_destroy(wheel);
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
	right &= tw_flush(wheel) == TW_CLOSED && tw_trim(wheel) == TW_CLOSED;
	right &= tw_each(wheel, on_visit, NULL) == TW_CLOSED;
	right &= tw_stop(wheel) == TW_CLOSED && tw_wait_idle(wheel) == TW_INVALID;
	right &= tw_is_in_task(wheel) && tw_pending(wheel) == 0;
	tw_destroy(wheel); /* has no effect there */
	return right;
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

static void end_of_a_worker_may_call_the_wheel_inside_tw_destroy(void **state)
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

/* The destructor of a worker's or the owner's data closes an alarm during tw_destroy. */
struct late_close {
	struct tw_alarm *alarm;
	pthread_key_t key;
	atomic_int closed;
};

static void count_late_close(void *argument)
{
	struct late_close *late = argument;

	atomic_fetch_add(&late->closed, 1);
}

static void close_at_end(void *argument)
{
	struct late_close *late = argument;

	(void)tw_alarm_close(late->alarm, count_late_close);
}

static void set_specific(void *argument)
{
	struct late_close *late = argument;

	pthread_setspecific(late->key, late);
}

static void alarm_that_the_end_of_a_thread_closes_is_closed_in_tw_destroy(void **state)
{
	struct tw_wheel *wheel = open_wheel(*state);
	struct late_close late = {0};

	assert_int_equal(pthread_key_create(&late.key, close_at_end), 0);
	assert_status(tw_alarm_create(wheel, count_late_close, &late, &late.alarm), TW_OK);
	assert_status(tw_after_func(wheel, 0, set_specific, &late, NULL), TW_OK);
	assert_status(tw_advance(wheel, INTERVAL), TW_OK);
	settle_wheel(wheel);
	tw_destroy(wheel);
	assert_int_equal(atomic_load(&late.closed), 1);
	pthread_key_delete(late.key);
}

/* These functions run while tw_destroy waits for them. */
static void call_while_destroyed(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct ends *ends = context;

	(void)reason;
	/* tw_stop passes timers to release when all calls are closed. */
	if (!calls_return(task->wheel))
		ends->calls_right = false;
	atomic_fetch_add(&ends->ended, 1);
}

static void release_may_call_the_wheel_inside_tw_destroy(void **state)
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

static const struct CMUnitTest tests[] = {
	TEST_DRIVEN(wheel_stands_after_a_function_that_throws),
	TEST_DRIVEN(wheel_stands_after_a_function_that_ends_its_thread),
	TEST_DRIVEN(wheel_stands_after_a_task_that_lets_its_thread_be_cancelled),
	TEST_IN(levels_owner, function_that_leaves_a_thread_of_the_wheel_ends_the_process),
	TEST_IN(levels_workers, function_that_leaves_a_thread_of_the_wheel_ends_the_process),
	TEST_IN(levels_inline, wheel_is_lost_after_a_longjmp),
	TEST_EVERYWHERE(function_may_call_the_wheel),
	TEST_EVERYWHERE(function_that_does_not_return_holds_up_no_set),
	TEST_DRIVEN(exception_leaves_the_rest_of_its_tick_to_the_next_drive),
	TEST_DRIVEN(periodic_timer_goes_on_after_a_run_that_throws),
	TEST_DRIVEN(next_that_throws_at_first_arms_nothing),
	TEST_DRIVEN(destroy_may_be_called_again_after_an_exception_of_release),
	TEST_DRIVEN(close_is_done_after_a_run_that_throws),
	TEST_DRIVEN(wheel_that_a_run_destroyed_before_it_threw_is_destroyed_again),
	TEST_DRIVEN(call_of_another_thread_is_answered_after_an_exception),
	TEST_DRIVEN(exception_of_an_inner_wheel_may_leave_both),
	TEST_DRIVEN(descriptor_calls_for_what_an_exception_has_left),
	TEST_DRIVEN(visitor_that_throws_costs_no_memory),
	TEST_WITH_THREADS(alarm_that_the_end_of_a_thread_closes_is_closed_in_tw_destroy),
	TEST_POOL(end_of_a_worker_may_call_the_wheel_inside_tw_destroy),
	TEST_EVERYWHERE(release_may_call_the_wheel_inside_tw_destroy),
};

TEST_PROGRAM(tests)
