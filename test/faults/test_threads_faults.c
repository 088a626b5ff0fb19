/* SPDX-License-Identifier: MIT */
/*
 * The model's laws hold under load: four threads give random commands for shared keys, and for
 * keys, timers by handle and alarms of their own, tasks do, too, a fifth thread moves the clock,
 * and the wheel is stopped at some point. In some storms memory fails meanwhile, threads are
 * cancelled and the process forks. The model checks the values and arguments that come back, and
 * all answers.
 */
#include "support/test.h"

#include "faults/faults.h"
#include "support/inside.h"
#include "support/recorder.h"
#include "support/stats.h"
#include "model/wheel_user.h"

enum {
	THREADS = 4,
	COMMANDS = TEST_SHARE_OF(20000), /* maximum per thread */
	SHARED_KEYS = 300,
	OWN_KEYS = 100, /* per thread */
	TIMERS = 1000,  /* by handle, per thread */
	VALUES = 2000,
	WINDOWS = 6,
	ROUNDS_A_FORK = 50,
	TASKS = 2 * THREADS, /* tasks' user, after those of each thread */
	USERS
};

/* A setting has a storm's parameters. */
struct setting {
	int commands; /* per thread */
	size_t queue_capacity;
	size_t max_pending;
	enum tw_when_full when_full;
	int stop_at; /* per mille of the commands before the stop; 1000 for the end */
	bool has_trouble;
};

struct storm {
	struct model model; /* the first member: hooks find the storm by it */
	const struct setting *setting;
	struct wheel_user users[USERS]; /* two per thread: for its own keys, and for the others */
	struct timer_set timers[THREADS];
	struct model_timer timer[THREADS][TIMERS];
	atomic_int at_work; /* threads that give commands */
	atomic_int runs;
	atomic_int wrong;
	char text[600]; /* the first mismatch */
};

static void complain(struct model *model, const char *text)
{
	struct storm *storm = (struct storm *)model;

	if (atomic_fetch_add(&storm->wrong, 1) == 0)
		snprintf(storm->text, sizeof(storm->text), "%s", text);
}

static tw_duration draw_delay(struct wheel_user *user)
{
	return INTERVAL * random_between(&user->random, 1, 200);
}

/* Every fourth task sets a shared key again. */
static void in_task(struct model *model, enum model_way way, const struct tw_task *task)
{
	struct storm *storm = (struct storm *)model;

	if (atomic_fetch_add(&storm->runs, 1) % 4 == 0)
		act_set(&storm->users[TASKS]);
}

static void look_at_limit(struct wheel_user *user)
{
	struct model *model = user->model;
	size_t limit = model->options.max_pending;

	act_look_at_stats(user);
	if (limit > 0 && tw_pending(model->wheel) > limit)
		model_fail(model, "more timers are pending than may be");
}

static const struct wheel_act acts_of_own[] = {
	{act_start_timer, 10}, {act_stop_timer, 10}, {act_reset_timer, 10},
	{act_ask_timer, 1},    {act_use_alarm, 10},  {NULL, 0},
};

static const struct wheel_act acts[] = {
	{act_set, 980},     {act_set_crowd, 1}, {act_move, 655},    {act_remove, 330},
	{act_add, 20},      {act_take, 10},     {act_drain, 1},     {act_ask, 1},
	{look_at_limit, 1}, {act_flush, 1},     {act_wait_idle, 1}, {act_wait_idle_until, 1},
	{act_walk, 1},      {NULL, 0},
};

static void go_home(void *argument)
{
	atomic_fetch_sub(&((struct storm *)argument)->at_work, 1);
}

static void *give_commands(void *argument)
{
	struct wheel_user *own = argument;
	struct storm *storm = (struct storm *)own->model;
	volatile uint64_t refused = 0; /* the push below is a setjmp in some compilations */

	pthread_cleanup_push(go_home, storm);
	for (int i = 0; i < storm->setting->commands; i++) {
		struct wheel_user *user = own + random_once_in(&own->random, 4) * THREADS;
		struct tw_stats stats;

		pthread_testcancel();
		wheel_user_act(user, user == own && i % 4 == 0 ? acts_of_own : acts);
		if (i % 8 != 0 || tw_get_stats(storm->model.wheel, &stats) != TW_OK)
			continue;
		if (stats.refused > refused)
			act_flush(user);
		refused = stats.refused;
	}
	pthread_cleanup_pop(1);
	return NULL;
}

struct clock_mover {
	struct storm *storm;
	struct random random;
};

static void *move_clock(void *argument)
{
	struct clock_mover *mover = argument;
	struct storm *storm = mover->storm;

	while (atomic_load(&storm->at_work) > 0) {
		act_advance(&storm->users[TASKS], random_between(&mover->random, 0, INTERVAL * 10));
		wait_for(TW_MILLISECOND / 20);
	}
	return NULL;
}

static void start_storm(struct storm *storm, const struct variant *variant,
			const struct setting *setting)
{
	static const struct model_hooks hooks = {
		.fail = complain, .draw_delay = draw_delay, .in_task = in_task};
	struct tw_options options = {.clock = TW_CLOCK_MANUAL,
				     .drive = variant->drive,
				     .workers = variant->workers,
				     .queue_capacity = setting->queue_capacity,
				     .max_pending = setting->max_pending,
				     .when_full = setting->when_full};

	memset(storm, 0, sizeof(*storm));
	storm->setting = setting;
	storm->at_work = THREADS;
	storm->model = (struct model){.hooks = &hooks, .users = storm->users, .user_count = USERS};
	for (unsigned i = 0; i < USERS; i++) {
		bool is_own = i < THREADS;
		struct wheel_user *user = &storm->users[i];

		wheel_user_open(user, &storm->model, is_own ? i : THREADS,
				is_own ? OWN_KEYS : SHARED_KEYS, VALUES, WINDOWS);
		user->is_shared = user->is_loose = !is_own;
		user->random = random_from(seed_choose(), i);
	}
	assert_status(model_begin(&storm->model, INTERVAL, 16, &options), TW_OK);
	for (unsigned i = 0; i < THREADS; i++) {
		timer_set_begin(&storm->timers[i], storm->timer[i], TIMERS);
		storm->users[i].timers = &storm->timers[i];
		alarms_create(&storm->users[i]);
	}
}

static bool is_time_to_stop(struct storm *storm)
{
	size_t enough = (size_t)storm->setting->stop_at * THREADS * COMMANDS / 2000;

	return atomic_load(&storm->model.given) >= enough || atomic_load(&storm->at_work) == 0;
}

/* Another thread goes on with the user. */
static void cancel_one(struct storm *storm, struct random *random, pthread_t *threads)
{
	size_t i = (size_t)random_below(random, THREADS);

	atomic_fetch_add(&storm->at_work, 1);
	pthread_cancel(threads[i]);
	pthread_join(threads[i], NULL);
	assert_int_equal(pthread_create(&threads[i], NULL, give_commands, &storm->users[i]), 0);
}

/* The wheel is closed in the child. */
static void fork_one(struct tw_wheel *wheel)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(tw_set_timer(wheel, "a", 1, NULL, INTERVAL) != TW_CLOSED ||
		      tw_timer_stop(wheel, (struct tw_timer){1}) != TW_CLOSED ||
		      tw_wait_idle(wheel) != TW_CLOSED || tw_destroy(wheel) != TW_CLOSED);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void make_trouble(struct storm *storm, pthread_t *threads)
{
	struct random random = random_from(seed_choose(), 78);

	for (int round = 0; !is_time_to_stop(storm); round++) {
		fail_allocation((long)random_below(&random, 12) + 1, random_once_in(&random, 4));
		wait_for(TW_MILLISECOND);
		(void)end_faults();
		cancel_one(storm, &random, threads);
		if (TEST_CAN_FORK && round % ROUNDS_A_FORK == 1)
			fork_one(storm->model.wheel);
	}
}

static void stop_at_the_end(struct storm *storm)
{
	act_advance(&storm->users[TASKS], INTERVAL * 201);
	act_wait_idle(&storm->users[TASKS]);
	assert_true(atomic_load(&storm->model.back[WAY_RUN]) > 0);
	act_stop(&storm->users[TASKS]);
}

static void end_storm(struct storm *storm)
{
	struct model *model = &storm->model;

	act_wait_idle(&storm->users[TASKS]);
	assert_int_equal(tw_pending(model->wheel), 0);
	assert_int_equal(wheel_places_taken(model->wheel), 0);
	assert_true(stats_of_wheel(model->wheel).stopped >= atomic_load(&model->back[WAY_STOPPED]));
	for (unsigned i = 0; i < THREADS; i++)
		alarms_destroy(&storm->users[i]);
	tw_destroy(model->wheel);
	model_judge_end(model);
	for (unsigned i = 0; i < THREADS; i++) {
		alarms_judge_end(&storm->users[i]);
		timers_judge_end(model, &storm->timers[i]);
	}
	if (atomic_load(&storm->wrong) > 0)
		fail_msg("%d times wrong; first: %s", atomic_load(&storm->wrong), storm->text);
	assert_int_equal(model_open(model), 0);
	model_end(model);
}

static void run_storm(const struct variant *variant, const struct setting *setting)
{
	static struct storm storm;
	struct clock_mover mover = {&storm, random_from(seed_choose(), USERS)};
	pthread_t threads[THREADS + 1];

	start_storm(&storm, variant, setting);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, give_commands, &storm.users[i]),
				 0);
	assert_int_equal(pthread_create(&threads[THREADS], NULL, move_clock, &mover), 0);
	if (setting->has_trouble)
		make_trouble(&storm, threads);
	if (setting->stop_at < 1000) {
		WAIT_UNTIL(is_time_to_stop(&storm));
		act_stop(&storm.users[TASKS]);
	}
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	if (setting->stop_at >= 1000)
		stop_at_the_end(&storm);
	end_storm(&storm);
}

TEST(everywhere, values_come_back_once_and_none_early)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS, .stop_at = 1000});
}

TEST(everywhere, values_come_back_once_with_a_small_queue)
{
	run_storm(*state, &(struct setting){
				  .commands = COMMANDS / 4, .queue_capacity = 4, .stop_at = 1000});
}

TEST(everywhere, values_come_back_once_with_a_small_queue_that_refuses)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS / 4,
					    .queue_capacity = 4,
					    .when_full = TW_WHEN_FULL_FAIL,
					    .stop_at = 1000});
}

TEST(everywhere, values_come_back_once_with_a_limit_of_pending_timers)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS / 4,
					    .max_pending = 100,
					    .when_full = TW_WHEN_FULL_FAIL,
					    .stop_at = 1000});
}

TEST(everywhere, stop_in_the_middle_of_it_loses_and_doubles_nothing)
{
	struct random random = random_from(seed_choose(), 77);

	for (size_t i = 0; i < 4; i++)
		run_storm(*state,
			  &(struct setting){.commands = COMMANDS,
					    .queue_capacity = i % 2 * 8,
					    .stop_at = (int)random_between(&random, 0, 900)});
}

TEST(everywhere, all_comes_back_once_through_faults_cancels_and_forks)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS,
					    .queue_capacity = 64,
					    .stop_at = 800,
					    .has_trouble = true});
}

TEST(everywhere, all_comes_back_once_through_faults_where_limits_refuse)
{
	run_storm(*state, &(struct setting){.commands = COMMANDS,
					    .queue_capacity = 64,
					    .max_pending = 400,
					    .when_full = TW_WHEN_FULL_FAIL,
					    .stop_at = 800,
					    .has_trouble = true});
}
