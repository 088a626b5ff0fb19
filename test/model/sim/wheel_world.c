/* SPDX-License-Identifier: MIT */
/*
 * This world is a wheel with random options, a few threads that command it, and the model of the
 * possible results (model/wheel_model.h). When all threads sleep, nothing that is due may be left,
 * and no call may be waiting for time to pass: this finds lost wake-ups.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "caller.h"
#include "model/wheel_user.h"

enum {
	USERS_MOST = 4,
	KEYS_A_USER = 6,
	VALUES_A_USER = 256,
	WINDOWS_A_VALUE = 6,
	TIMERS_MOST = 64,
	TASKS = USERS_MOST /* the user for timers set by tasks */
};

static struct world {
	struct model model;
	struct wheel_user user[USERS_MOST + 1];
	struct caller caller[USERS_MOST + 1];
	uint64_t refused[USERS_MOST + 1]; /* refused allocations when the call began */
	struct timer_set timers;
	struct model_timer timer[TIMERS_MOST];
	size_t slots;
	bool polls_descriptor;
	bool may_stop;
	bool may_drain;
	unsigned users;
	unsigned calls; /* per user */
	unsigned sleeping_tasks;
	int64_t slept_until; /* by the last task that slept: it may have held the owner up */
	unsigned tasks_left;
	bool is_over; /* for the poller */
} world;

static bool is_inline(void)
{
	return world.model.options.workers == TW_WORKERS_INLINE;
}

/* ---- The model's functions ---- */

static void fail(struct model *model, const char *text)
{
	sim_fail("%s", text);
}

static void call_begins(struct wheel_user *user, const char *call)
{
	struct caller *caller = &world.caller[user->number];

	if (user->number == TASKS)
		return;
	world.refused[user->number] = sim_memory_refused();
	caller_begin(caller, call);
}

static void call_ended(struct wheel_user *user, const char *call, enum tw_status status)
{
	struct caller *caller = &world.caller[user->number];

	if (user->number == TASKS)
		return;
	caller_end(caller);
	caller_check(caller, call, status, world.refused[user->number]);
}

static tw_duration draw_delay(struct wheel_user *user)
{
	struct random *random = &user->random;
	tw_duration interval = world.model.interval;

	switch (random_below(random, 8)) {
	case 0:
		return random_between(random, 1, interval);
	case 1:
		return interval * random_between(random, 1, 200);
	case 2:
		return TW_FOREVER;
	default:
		return random_between(random, 1, 6 * interval);
	}
}

/* ---- Tasks ---- */

static void task_sleep(struct wheel_user *tasks)
{
	struct timespec time = {.tv_nsec = draw_between(1, 3 * TW_MILLISECOND)};
	int state;

	world.sleeping_tasks++;
	/* A task returns: a user that is cancelled in it would end the process. */
	sim_pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	sim_nanosleep(&time, NULL);
	sim_pthread_setcancelstate(state, NULL);
	world.sleeping_tasks--;
	world.slept_until = sim_now();
}

static void task_stop(struct wheel_user *tasks)
{
	if (!world.may_stop || sim_draw(8) != 0)
		return;
	tasks->model->stop_begun = true;
	(void)tw_stop(tasks->model->wheel);
	tasks->model->stop_ended = true;
}

static void task_flush(struct wheel_user *tasks)
{
	struct tw_wheel *wheel = tasks->model->wheel;
	enum tw_status status = tw_flush(wheel);

	if (status != (is_inline() ? TW_INVALID : TW_OK) && status != TW_CLOSED)
		sim_fail("a flush in a task: %s", tw_status_name(status));
}

static void task_wait_idle(struct wheel_user *tasks)
{
	enum tw_status status = tw_wait_idle(tasks->model->wheel);

	if (status != TW_INVALID)
		sim_fail("an idle wait in a task: %s", tw_status_name(status));
}

static void task_yield(struct wheel_user *tasks)
{
	sim_point();
}

static const struct wheel_act task_acts[] = {
	{task_yield, 15},    {act_set, 3},   {task_sleep, 2},        {task_flush, 1},
	{task_wait_idle, 1}, {task_stop, 1}, {act_look_at_stats, 1}, {NULL, 0},
};

/* Acts in a task, release or drain function. */
static void in_task(struct model *model, enum model_way way, const struct tw_task *task)
{
	if (world.tasks_left == 0)
		return;
	world.tasks_left--;
	wheel_user_act(&world.user[TASKS], task_acts);
}

/* ---- Users ---- */

static void user_sleep(struct wheel_user *user)
{
	struct timespec time = {.tv_nsec = draw_between(1, 4 * TW_MILLISECOND)};

	sim_nanosleep(&time, NULL);
}

static void let_time_pass(struct wheel_user *user)
{
	tw_duration interval = world.model.interval;
	tw_duration by = draw_between(0, 3) * interval;

	if (sim_draw(8) == 0)
		by = draw_between(0, 40) * interval + (tw_duration)sim_draw((uint64_t)interval);
	if (model_is_manual(&world.model))
		act_advance(user, by);
	else
		user_sleep(user);
}

static void drain_or_set(struct wheel_user *user)
{
	if (world.may_drain)
		act_drain(user);
	else
		act_set(user);
}

static void stop_seldom(struct wheel_user *user)
{
	if (world.may_stop && sim_draw(20) == 0)
		act_stop(user);
}

static void poll_or_look(struct wheel_user *user)
{
	if (world.model.options.drive == TW_DRIVE_CALLER)
		act_poll(user);
	else
		act_look_at_stats(user);
}

static const struct wheel_act acts[] = {
	{act_set, 40},         {act_set_crowd, 12},
	{act_add, 8},          {act_move, 26},
	{act_remove, 24},      {act_take, 4},
	{act_ask, 16},         {act_flush, 11},
	{act_wait_idle, 8},    {act_wait_idle_until, 8},
	{act_start_timer, 24}, {act_stop_timer, 24},
	{act_reset_timer, 24}, {act_ask_timer, 4},
	{act_use_alarm, 32},   {drain_or_set, 24},
	{stop_seldom, 8},      {let_time_pass, 24},
	{poll_or_look, 12},    {NULL, 0},
};

static void *user_run(void *argument)
{
	struct wheel_user *user = argument;

	for (unsigned i = 0; i < world.calls; i++) {
		wheel_user_act(user, acts);
		sim_pthread_testcancel();
	}
	return NULL;
}

/* Drives a wheel without an owner thread. */
static void *poller_run(void *argument)
{
	while (!world.is_over) {
		tw_duration left = 0;
		struct pollfd polled = {.fd = -1, .events = POLLIN};
		struct timespec time;

		if (tw_poll(world.model.wheel, &left) != TW_OK)
			break;
		if (world.polls_descriptor)
			polled.fd = tw_fd(world.model.wheel);
		/* Without a descriptor it sleeps for a random time. */
		world.polls_descriptor = polled.fd >= 0;
		if (polled.fd >= 0) {
			(void)sim_poll(&polled, 1, 1000);
			continue;
		}
		if (left > 2 * TW_MILLISECOND)
			left = 2 * TW_MILLISECOND;
		time = (struct timespec){.tv_nsec = left + 1};
		sim_nanosleep(&time, NULL);
	}
	return argument;
}

/* ---- The world ---- */

static void draw_pool(struct tw_options *options)
{
	options->workers = (int)DRAW_ONE_OF(TW_WORKERS_INLINE, 1, 2, 2, 3);
	if (options->workers == TW_WORKERS_INLINE)
		return;
	options->max_workers = options->workers + (int)DRAW_ONE_OF(0, 0, 1, 2);
	options->patience_for_worker = DRAW_ONE_OF(0, TW_MICROSECOND, TW_MILLISECOND);
}

static tw_duration draw_world(struct tw_options *options)
{
	tw_duration interval =
		DRAW_ONE_OF(TW_MILLISECOND, 10 * TW_MILLISECOND, 700000, TW_MICROSECOND);

	world.slots = (size_t)DRAW_ONE_OF(1, 2, 4, 8, 64);
	options->layout = (enum tw_layout)sim_draw(2);
	options->clock = (enum tw_clock)DRAW_ONE_OF(TW_CLOCK_MONOTONIC, TW_CLOCK_MANUAL,
						    TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME);
	options->drive =
		(enum tw_drive)DRAW_ONE_OF(TW_DRIVE_THREAD, TW_DRIVE_THREAD, TW_DRIVE_CALLER);
	options->queue_capacity = (size_t)DRAW_ONE_OF(2, 4, 8, 64);
	options->when_full = (enum tw_when_full)sim_draw(2);
	if (sim_draw(4) == 0)
		options->max_pending = (size_t)DRAW_ONE_OF(1, 4, 12);
	draw_pool(options);
	world.polls_descriptor = sim_draw(2) == 0;
	world.may_stop = sim_draw(4) == 0;
	world.may_drain = sim_draw(3) == 0;
	world.users = (unsigned)draw_between(1, USERS_MOST);
	world.calls = (unsigned)DRAW_ONE_OF(5, 10, 20, 40, 80);
	world.tasks_left = 100;
	return interval;
}

static void open_users(const struct tw_options *options)
{
	timer_set_begin(&world.timers, world.timer, TIMERS_MOST);
	world.timers.may_end = !world.may_stop && !world.may_drain;
	/* A timer that outruns its wheel would have no end. */
	if (options->clock != TW_CLOCK_MANUAL)
		world.timers.period_least = TW_MILLISECOND / 4;
	for (unsigned i = 0; i <= USERS_MOST; i++) {
		struct wheel_user *user = &world.user[i];

		wheel_user_open(user, &world.model, i, KEYS_A_USER, VALUES_A_USER, WINDOWS_A_VALUE);
		user->timers = &world.timers;
		user->random = random_from(sim_draw(UINT64_MAX), i);
		user->is_shared = i == TASKS;
		world.caller[i].number = i;
	}
}

static void run_users(void)
{
	enum tw_drive drive = world.model.options.drive;
	pthread_t poller;
	bool has_poller =
		drive == TW_DRIVE_CALLER && (!model_is_manual(&world.model) || sim_draw(2) == 0);
	bool has_user[USERS_MOST] = {false};

	if (has_poller)
		has_poller = sim_pthread_create(&poller, NULL, poller_run, NULL) == 0;
	world.polls_descriptor &= has_poller;
	for (unsigned i = 0; i < world.users; i++) {
		alarms_create(&world.user[i]);
		has_user[i] = sim_pthread_create(&world.caller[i].thread, NULL, user_run,
						 &world.user[i]) == 0;
	}
	if (sim_draw(6) == 0 && has_user[0]) {
		user_sleep(NULL);
		(void)sim_pthread_cancel(world.caller[0].thread);
	}
	for (unsigned i = 0; i < world.users; i++)
		if (has_user[i])
			sim_pthread_join(world.caller[i].thread, NULL);
	if (sim_draw(2) == 0)
		act_wait_idle(&world.user[0]);
	world.is_over = true;
	if (has_poller)
		sim_pthread_join(poller, NULL);
}

/* Makes the wheel, which may only fail for want of memory or threads. */
static void make_wheel(void)
{
	const struct sim_plan *plan = sim_plan_here();
	struct tw_options options = {0};
	tw_duration interval = draw_world(&options);
	enum tw_status status;

	/* A clock that runs ahead of the wheel would have no end. */
	sim_limit_time_step(interval / 200);
	open_users(&options);
	sim_call_begin();
	status = model_begin(&world.model, interval, world.slots, &options);
	sim_call_end();
	if (status == TW_OK)
		return;
	if (plan->memory_failures == 0 && plan->thread_failures == 0)
		sim_fail("tw_create: %s", tw_status_name(status));
	model_end(&world.model);
	sim_pthread_exit(NULL);
}

void wheel_world_run(void *argument)
{
	static const struct model_hooks hooks = {.fail = fail,
						 .draw_delay = draw_delay,
						 .call_begins = call_begins,
						 .call_ended = call_ended,
						 .in_task = in_task,
						 .trace = sim_trace};
	struct wheel_user *body = &world.user[0];

	memset(&world, 0, sizeof(world));
	world.model.hooks = &hooks;
	world.model.users = world.user;
	world.model.user_count = USERS_MOST + 1;
	make_wheel();
	run_users();
	if (sim_draw(3) == 0)
		act_stop(body);
	if (sim_draw(3) == 0)
		act_wait_idle(body);
	for (unsigned i = 0; i < world.users; i++)
		alarms_destroy(&world.user[i]);
	world.model.stop_begun = true;
	caller_begin(&world.caller[0], "tw_destroy");
	tw_destroy(world.model.wheel);
	caller_end(&world.caller[0]);
	for (unsigned i = 0; i < world.users; i++)
		alarms_judge_end(&world.user[i]);
	model_judge_end(&world.model);
	timers_judge_end(&world.model, &world.timers);
	model_end(&world.model);
	sim_pthread_exit(NULL);
}

void wheel_world_describe(void)
{
	const struct tw_options *options = &world.model.options;

	printf("   %s, %s, %s, interval %lld, %zu slots, %d to %d workers, queue of %zu, %s, "
	       "max_pending %zu, %u users of %u calls\n",
	       options->layout == TW_LAYOUT_LEVELS ? "levels" : "rounds",
	       model_is_manual(&world.model)          ? "manual clock"
	       : options->clock == TW_CLOCK_MONOTONIC ? "monotonic clock"
						      : "boottime clock",
	       options->drive == TW_DRIVE_THREAD ? "owner thread"
	       : world.polls_descriptor          ? "driven by callers that poll the descriptor"
						 : "driven by callers",
	       (long long)world.model.interval, world.slots, options->workers, options->max_workers,
	       options->queue_capacity,
	       options->when_full == TW_WHEN_FULL_WAIT ? "waits when full" : "fails when full",
	       options->max_pending, world.users, world.calls);
}

/* ---- When all sleep ---- */

/* A call waits, and only time can end that. */
static void check_calls(int64_t now, int64_t next)
{
	if (next - now < TW_MILLISECOND)
		return;
	for (unsigned i = 0; i <= USERS_MOST; i++)
		if (world.caller[i].call)
			sim_fail("%s waits, and all sleep for %lld ns", world.caller[i].call,
				 (long long)(next - now));
}

static void check_values(int64_t next)
{
	/* An owner that has been busy naps, and reading the clock takes time. */
	tw_duration slack = world.model.interval + TW_MILLISECOND;

	if (next < world.slept_until + slack)
		return;
	model_judge_sleep(&world.model, slack, next);
	for (unsigned i = 0; i < world.users; i++)
		alarms_judge_sleep(&world.user[i], slack, next);
}

void wheel_world_idle(void *argument, int64_t now, int64_t next)
{
	const struct model *model = &world.model;

	if (!model->wheel || world.sleeping_tasks > 0 || next - now <= WORLD_NAP)
		return;
	check_calls(now, next);
	if (!model_is_manual(model) && !model->stop_begun &&
	    (model->options.drive == TW_DRIVE_THREAD || world.polls_descriptor))
		check_values(next);
}
