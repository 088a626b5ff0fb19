/* SPDX-License-Identifier: MIT */
#include "wheel_timers.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "wheel_user.h"

enum { OWN_RUN = MODEL_USERS };

static void lock(atomic_flag *flag)
{
	while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire))
		sched_yield();
}

static void unlock(atomic_flag *flag)
{
	atomic_flag_clear_explicit(flag, memory_order_release);
}

void timer_set_begin(struct timer_set *timers, struct model_timer *memory, unsigned most)
{
	*timers = (struct timer_set){.most = most, .timers = memory};
	memset(memory, 0, most * sizeof(*memory));
}

/* Draws a delay, which may be below 0, but not in a task of the exact case: what it sets for now
 * waits for the next turn. */
static tw_duration draw_delay(struct wheel_user *user)
{
	if (!user->model->in_task && random_once_in(&user->random, 6))
		return -random_between(&user->random, 0, user->model->interval);
	return user->model->hooks->draw_delay(user);
}

/* Returns the deadline that a delay gives now. */
static tw_duration time_of(const struct model *model, tw_duration delay)
{
	tw_duration now = model_now(model);

	return delay < 0 ? now + delay : time_add(now, delay);
}

/* ---- The exact case ---- */

static void timer_arm(struct model_timer *timer, tw_duration delay)
{
	struct model *model = timer->model;

	if (!model->is_exact)
		return;
	model->pending += !timer->is_armed;
	timer->is_armed = true;
	timer->deadline = time_of(model, delay);
	timer->at_once = delay <= 0;
	/* It may run before the next drive, after others of the tick. */
	if (timer->at_once)
		model->users->timers->last_time = -1;
	timer->order = ++model->commands;
	timer->is_moved = false;
}

static void timer_disarm(struct model_timer *timer)
{
	if (!timer->is_armed)
		return;
	timer->model->pending--;
	timer->is_armed = false;
}

/* Returns when it must run. */
static tw_duration timer_time(const struct model_timer *timer)
{
	tw_duration interval = timer->model->interval;

	if (timer->at_once)
		return timer->model->now;
	if (timer->deadline > TW_FOREVER - interval)
		return TW_FOREVER;
	return (timer->deadline + interval - 1) / interval * interval;
}

/* The timers of a tick run in the order of deadlines, equal ones in that of commands. */
static void timer_judge_order(struct model_timer *timer, struct timer_set *timers, tw_duration now)
{
	if (timers->last_time == now &&
	    (timer->deadline < timers->last_deadline ||
	     (timer->deadline == timers->last_deadline && timer->order < timers->last_order)))
		model_fail(timer->model, "two timers of one tick change places");
	timers->last_time = now;
	timers->last_deadline = timer->deadline;
	timers->last_order = timer->order;
}

static void timer_judge_exactly(struct model_timer *timer, tw_duration now)
{
	struct model *model = timer->model;
	struct timer_set *timers = model->users->timers;

	if (!timer->is_armed || timer->is_owed || now != timer_time(timer) || now < model->now ||
	    now > model->target)
		model_fail(model, "a timer runs at %lld and not at %lld", (long long)now,
			   (long long)timer_time(timer));
	if (tw_current_task()->deadline != timer->deadline)
		model_fail(model, "a timer runs with another deadline");
	model->now = now;
	if (!timer->is_moved)
		timer_judge_order(timer, timers, now);
	timer_disarm(timer);
	if (timer->kind == ONE_SHOT)
		return;
	/* It is filed again before what its run sets. */
	timer_arm(timer, 1);
	timer->deadline = tw_current_task()->deadline + timer->period;
}

void timers_judge_drive(struct wheel_user *user)
{
	struct timer_set *timers = user->timers;

	for (unsigned i = 0; timers && i < timers->count; i++) {
		struct model_timer *timer = &timers->timers[i];

		if (timer->is_owed)
			model_fail(user->model, "a timer's argument has not come back");
		if (timer->is_armed && timer_time(timer) <= user->model->target)
			model_fail(user->model, "a timer has not run that was due at %lld",
				   (long long)timer_time(timer));
	}
}

void timers_owe(struct wheel_user *user)
{
	struct timer_set *timers = user->timers;

	for (unsigned i = 0; timers && i < timers->count; i++) {
		timers->timers[i].is_owed |= timers->timers[i].is_armed;
		timer_disarm(&timers->timers[i]);
	}
}

int timer_visit(struct model *model, const struct tw_pending_timer *given)
{
	struct model_timer *timer = given->value;

	if (!model->is_exact)
		return 1;
	if (!timer->is_armed || timer->is_visited || given->timer.id != timer->timer.id ||
	    given->deadline != timer->deadline ||
	    given->period != (timer->kind == PERIODIC ? timer->period : 0))
		model_fail(model, "a walk has other fields of a timer");
	timer->is_visited = true;
	return 1;
}

void timers_end_walk(struct wheel_user *user)
{
	for (unsigned i = 0; user->timers && i < user->timers->count; i++)
		user->timers->timers[i].is_visited = false;
}

/* ---- Resets ---- */

/* Returns the earliest time that the resets under way ask for. */
static tw_duration timer_asked(const struct model_timer *timer)
{
	tw_duration low = TW_FOREVER;

	for (unsigned i = 0; i <= MODEL_USERS; i++)
		if (timer->asked[i] < low)
			low = timer->asked[i];
	return low;
}

/* A deadline that did not begin a run is not in force any more; where a run may have begun by it,
 * or resets ran side by side, either may be. */
static void timer_bring(tw_duration *low, tw_duration asked, bool is_alone, tw_duration now)
{
	if (asked < *low || (is_alone && *low > now))
		*low = asked;
}

/* A reset is under way: a user's, or the timer's own run's. */
struct reset_call {
	struct model_timer *timer;
	unsigned number;
	tw_duration delay;
	tw_duration asked;
	bool is_alone;
	uint64_t order;
};

static uint64_t *reset_counter(const struct reset_call *call)
{
	return call->number == OWN_RUN ? &call->timer->own_resets : &call->timer->resets;
}

/* Comes before the call: others may see its effects before it returns. */
static struct reset_call reset_begin(struct model_timer *timer, unsigned number, tw_duration delay)
{
	struct reset_call call = {.timer = timer, .number = number, .delay = delay};

	call.asked = time_of(timer->model, delay);
	lock(&timer->lock);
	call.is_alone = timer_asked(timer) == TW_FOREVER;
	call.order = ++timer->resets_begun;
	++*reset_counter(&call);
	timer->asked[number] = call.asked;
	unlock(&timer->lock);
	return call;
}

/* A reset that fails changes nothing. */
static void reset_end(const struct reset_call *call, enum tw_status status)
{
	struct model_timer *timer = call->timer;
	tw_duration now = model_now(timer->model);
	bool is_alone;

	lock(&timer->lock);
	is_alone = call->is_alone && call->order == timer->resets_begun;
	timer->asked[call->number] = TW_FOREVER;
	if (status == TW_OK) {
		timer_bring(&timer->low, call->asked, is_alone, now);
		timer_bring(&timer->low_reset, call->asked, is_alone, now);
	} else {
		--*reset_counter(call);
	}
	unlock(&timer->lock);
}

/* Returns how often it has been reset, by any thread. */
static uint64_t timer_resets(const struct model_timer *timer)
{
	return timer->resets + timer->own_resets;
}

/* In the exact case a call's answer is known before the call, which may cause its events. */
static enum tw_status expect_reset(struct model_timer *timer, tw_duration delay)
{
	if (!timer->is_armed)
		return TW_NOT_FOUND;
	timer_arm(timer, delay);
	timer->is_moved = true;
	return TW_OK;
}

static enum tw_status expect_stop(struct model_timer *timer)
{
	enum tw_status expected = timer->is_armed ? TW_OK : TW_NOT_FOUND;

	if (timer->model->is_exact)
		timer_disarm(timer);
	return expected;
}

static void judge_answer(struct model *model, enum tw_status status, enum tw_status expected)
{
	if (model->is_exact && status != expected)
		model_fail(model, "a call is answered by %s", tw_status_name(status));
}

/* ---- Runs ---- */

static void timer_judge_run(struct model_timer *timer, tw_duration now)
{
	struct model *model = timer->model;
	tw_duration asked = timer_asked(timer);
	tw_duration low = asked < timer->low ? asked : timer->low;

	if (timer->is_running)
		model_fail(model, "two runs of a timer overlap");
	if (++timer->runs > timer->runs_most)
		model_fail(model, "a timer runs after it was stopped");
	if (timer->kind == ONE_SHOT && timer->runs > 1 + timer_resets(timer))
		model_fail(model, "run %llu of a one-shot timer, and it was reset %llu times",
			   (unsigned long long)timer->runs,
			   (unsigned long long)timer_resets(timer));
	if (now < low)
		model_fail(model, "run %llu of a timer is early: %lld, not before %lld",
			   (unsigned long long)timer->runs, (long long)now, (long long)low);
	/* A reset before this line may have come after the run's beginning, and armed the next. */
	timer->low = timer->kind == ONE_SHOT ? TW_FOREVER : time_add(low, timer->period);
	if (timer->low_reset < timer->low)
		timer->low = timer->low_reset;
	timer->low_reset = TW_FOREVER;
}

/* Sets the run's timer again, or not. Returns whether it has. */
static bool timer_run_again(struct model_timer *timer, bool may_reset, uint64_t draw)
{
	struct model *model = timer->model;
	struct reset_call call;
	enum tw_status status;

	if (timer->kind != ONE_SHOT || !may_reset || draw % 6 != 0 || model->is_exact)
		return false;
	call = reset_begin(timer, OWN_RUN,
			   1 + (tw_duration)(draw / 6 % (3 * (uint64_t)model->interval)));
	status = tw_timer_reset(model->wheel, tw_current_task()->timer, call.delay);
	reset_end(&call, status);
	return status == TW_OK;
}

static void timer_run(void *argument)
{
	struct model_timer *timer = argument;
	struct model *model = timer->model;
	tw_duration now = model_now(model);
	struct random random;
	bool may_reset;

	if (atomic_load(&model->is_quiet))
		model_fail(model, "a task begins after the stop and an idle wait");
	lock(&timer->lock);
	timer_judge_run(timer, now);
	if (model->is_exact)
		timer_judge_exactly(timer, now);
	timer->is_running = true;
	may_reset = timer->own_resets < 3;
	random = random_from((uint64_t)now, timer->runs);
	unlock(&timer->lock);
	if (model->hooks->in_task)
		model->hooks->in_task(model, WAY_RUN, tw_current_task());
	may_reset = timer_run_again(timer, may_reset, random_next(&random));
	lock(&timer->lock);
	timer->is_running = false;
	timer->given += timer->kind == ONE_SHOT && !may_reset;
	unlock(&timer->lock);
}

static tw_duration timer_next(void *argument, tw_duration previous)
{
	struct model_timer *timer = argument;
	bool ends;

	lock(&timer->lock);
	ends = timer->ends && timer->runs == 3;
	timer->given += ends;
	unlock(&timer->lock);
	return ends ? previous : previous + timer->period;
}

static void timer_give_locked(struct model_timer *timer, const char *how)
{
	if (!timer->is_accepted && timer->given > 0)
		model_fail(timer->model, "the argument of a refused timer: %s", how);
	if (timer->is_running && timer->kind == ONE_SHOT && timer_resets(timer) == 0)
		model_fail(timer->model, "the argument of a one-shot timer in its run: %s", how);
	timer->given++;
}

void timer_give(const struct tw_task *task, enum model_way way)
{
	struct model_timer *timer = task->value;
	struct model *model = timer->model;

	lock(&timer->lock);
	timer_give_locked(timer, way == WAY_DRAINED ? "drained" : "released");
	if (model->is_exact && (!timer->is_owed || task->deadline != timer->deadline))
		model_fail(model, "a timer comes back, and need not, or with another deadline");
	timer->is_owed = false;
	unlock(&timer->lock);
}

/* ---- Setting ---- */

/* In the exact case a run does not choose its own timer: answers differ there. */
static struct model_timer *timer_choose(struct wheel_user *user)
{
	struct timer_set *timers = user->timers;
	unsigned count = timers ? atomic_load(&timers->count) : 0;
	struct model_timer *timer;

	if (count == 0)
		return NULL;
	timer = &timers->timers[random_below(&user->random, count)];
	return user->model->is_exact && timer->is_running ? NULL : timer;
}

static enum tw_status timer_stop(struct wheel_user *user, struct model_timer *timer, bool waits);

/* Stops one, and waits for its end. Returns NULL if its argument may yet come back. */
static struct model_timer *timer_reuse(struct wheel_user *user)
{
	struct model_timer *timer = timer_choose(user);
	unsigned given;

	if (user->model->is_exact)
		return timer && !timer->is_armed ? timer : NULL;
	if (timer->is_accepted && timer_stop(user, timer, true) == TW_CLOSED)
		return NULL;
	lock(&timer->lock);
	given = timer->given;
	if (given > 1)
		model_fail(user->model, "the argument of a timer is %u parties'", given);
	unlock(&timer->lock);
	return given == 1 || !timer->is_accepted ? timer : NULL;
}

static struct model_timer *timer_new(struct wheel_user *user)
{
	struct timer_set *timers = user->timers;
	unsigned index = atomic_load(&timers->count);

	if (timers->is_reused && index == timers->most)
		return timer_reuse(user);
	index = atomic_fetch_add(&timers->count, 1);
	if (index < timers->most)
		return &timers->timers[index];
	atomic_store(&timers->count, timers->most);
	return NULL;
}

static void timer_draw(struct wheel_user *user, struct model_timer *timer)
{
	struct model *model = user->model;
	struct random *random = &user->random;
	static const enum timer_kind kinds[] = {ONE_SHOT, ONE_SHOT, ONE_SHOT, PERIODIC, SCHEDULED};

	*timer = (struct model_timer){
		.lock = ATOMIC_FLAG_INIT,
		.model = model,
		.kind = kinds[random_below(random, model->is_exact ? 4 : 5)],
		.runs_most = UINT64_MAX,
		.low_reset = TW_FOREVER,
		.drains = atomic_load(&model->drains_ended),
		/* At two intervals or more none is ever missed. */
		.period = random_between(random, (1 + model->is_exact) * model->interval,
					 (4 + 36 * model->is_exact) * model->interval)};
	for (unsigned i = 0; i <= MODEL_USERS; i++)
		timer->asked[i] = TW_FOREVER;
	if (timer->period < user->timers->period_least)
		timer->period = user->timers->period_least;
	timer->ends =
		timer->kind == SCHEDULED && user->timers->may_end && random_once_in(random, 2);
}

void act_start_timer(struct wheel_user *user)
{
	struct model *model = user->model;
	struct tw_wheel *wheel = model->wheel;
	struct model_timer *timer = timer_new(user);
	tw_duration delay = draw_delay(user);
	enum tw_missed missed = (enum tw_missed)random_below(&user->random, 3);
	struct tw_timer handle = {0};
	enum tw_status status;

	if (!timer)
		return;
	timer_draw(user, timer);
	timer->low = time_of(model, delay);
	timer_arm(timer, delay);
	if (timer->kind == ONE_SHOT) {
		status = USER_CALL(user, tw_after_func(wheel, delay, timer_run, timer, &handle));
	} else if (timer->kind == PERIODIC) {
		status = USER_CALL(user, tw_every(wheel, delay, timer->period, missed, timer_run,
						  timer, &handle));
	} else {
		timer->low = time_add(model_now(model), timer->period);
		status = USER_CALL(user,
				   tw_schedule_func(wheel, timer_next, timer_run, timer, &handle));
	}
	lock(&timer->lock);
	timer->timer = handle;
	timer->is_accepted = status == TW_OK;
	if (!timer->is_accepted && (timer->runs > 0 || timer->given > 0))
		model_fail(model, "a timer that was refused has run");
	unlock(&timer->lock);
}

/* ---- Stopping ---- */

/* After an answer that ends the timer, at most a run that has been claimed begins. */
static void timer_end_runs(struct model_timer *timer, enum tw_status status)
{
	bool may_begin = status == TW_RUNNING || status == TW_REARMED;
	uint64_t most = timer->runs + (may_begin && !timer->is_running);

	if (most < timer->runs_most)
		timer->runs_most = most;
}

static void judge_status_of_stop(struct model_timer *timer, enum tw_status status)
{
	struct model *model = timer->model;
	/* A call that has begun before the wheel's stop may find the timer released. */
	bool may_be_done = timer->stops > 1 || timer->drains != atomic_load(&model->drains_begun) ||
			   timer->ends || atomic_load(&model->stop_begun);

	switch (status) {
	case TW_OK:
		if (timer->kind == ONE_SHOT && timer->runs > timer_resets(timer))
			model_fail(model, "a timer that has run is stopped with TW_OK");
		timer_give_locked(timer, "a stop's");
		break;
	case TW_REARMED:
		if (timer->kind == ONE_SHOT &&
		    (timer->runs > timer_resets(timer) || timer_resets(timer) == 0))
			model_fail(model, "a one-shot timer without a reset: TW_REARMED");
		timer->given++;
		break;
	case TW_RUNNING:
		if (timer->kind != ONE_SHOT && timer->stops == 1)
			model_fail(model, "a periodic timer's last run, and it was not stopped");
		break;
	case TW_NOT_FOUND:
		if (!may_be_done && (timer->kind != ONE_SHOT || timer->runs == 0))
			model_fail(model, "a timer that is pending or running is not found");
		break;
	default:
		break;
	}
}

static void judge_stop(struct model_timer *timer, enum tw_status status, bool has_waited)
{
	struct model *model = timer->model;

	if (status == TW_CLOSED)
		return;
	lock(&timer->lock);
	if (timer->is_running && (has_waited || status == TW_OK))
		model_fail(model, "a timer runs after it was stopped");
	if (has_waited && status == TW_OK && timer->runs > 0)
		timer->given++;
	else
		judge_status_of_stop(timer, status);
	timer_end_runs(timer, status);
	unlock(&timer->lock);
}

static bool timer_may_be_used(struct model_timer *timer)
{
	bool may_be;

	/* A timer that is being set is known to its setter alone. */
	lock(&timer->lock);
	may_be = timer->is_accepted && !timer->ends;
	unlock(&timer->lock);
	return may_be;
}

static enum tw_status stop_begin(struct model_timer *timer)
{
	enum tw_status expected;

	lock(&timer->lock);
	timer->stops++;
	expected = expect_stop(timer);
	unlock(&timer->lock);
	return expected;
}

static enum tw_status timer_stop(struct wheel_user *user, struct model_timer *timer, bool waits)
{
	struct tw_wheel *wheel = user->model->wheel;
	const char *call = waits ? "tw_timer_stop_wait" : "tw_timer_stop";
	enum tw_status expected = stop_begin(timer);
	enum tw_status status;

	(void)user_call_begins(user, call);
	status = waits ? tw_timer_stop_wait(wheel, timer->timer)
		       : tw_timer_stop(wheel, timer->timer);
	/* It answers after a stop of the wheel, too. */
	user_call_ended(user, call, status, false);
	judge_answer(user->model, status, expected);
	judge_stop(timer, status, waits);
	return status;
}

void act_stop_timer(struct wheel_user *user)
{
	struct model_timer *timer = timer_choose(user);

	if (timer && timer_may_be_used(timer))
		(void)timer_stop(user, timer, random_once_in(&user->random, 3));
}

void act_reset_timer(struct wheel_user *user)
{
	struct model_timer *timer = timer_choose(user);
	tw_duration delay = draw_delay(user);
	struct reset_call call;
	enum tw_status expected;
	enum tw_status status;

	if (!timer || !timer_may_be_used(timer) ||
	    (user->timers->is_reused && !user->model->is_exact && timer->kind == ONE_SHOT))
		return;
	call = reset_begin(timer, user->number, delay);
	expected = expect_reset(timer, delay);
	status = USER_CALL(user, tw_timer_reset(user->model->wheel, timer->timer, delay));
	judge_answer(user->model, status, expected);
	reset_end(&call, status);
}

void act_ask_timer(struct wheel_user *user)
{
	struct model *model = user->model;
	struct model_timer *timer = timer_choose(user);
	tw_duration left = -1;
	enum tw_status status;

	if (!timer || !timer_may_be_used(timer))
		return;
	status = USER_CALL(user, tw_timer_remaining(model->wheel, timer->timer, &left));
	/* A drained timer may have been handed over, or not. */
	if (!model->is_exact || timer->is_owed)
		return;
	if (status != (timer->is_armed ? TW_OK : TW_NOT_FOUND) ||
	    (status == TW_OK && left != time_left(timer->deadline, model->now)))
		model_fail(model, "tw_timer_remaining: %s, %lld", tw_status_name(status),
			   (long long)left);
}

void timers_stop_all(struct wheel_user *user)
{
	for (unsigned i = 0; i < user->timers->count; i++)
		if (timer_may_be_used(&user->timers->timers[i]))
			(void)timer_stop(user, &user->timers->timers[i], true);
}

void timers_judge_end(struct model *model, struct timer_set *timers)
{
	for (unsigned i = 0; i < timers->count; i++) {
		const struct model_timer *timer = &timers->timers[i];
		/* A run does not know whether another thread's reset has taken the argument. */
		uint64_t most = 1 + (timer->kind == ONE_SHOT ? timer->resets : 0);

		if (timer->is_accepted && (timer->given == 0 || timer->given > most))
			model_fail(model, "the argument of timer %u, of kind %d, is %u parties'", i,
				   (int)timer->kind, timer->given);
	}
}

/* ---- Alarms ---- */

static void alarm_run(void *argument)
{
	struct model_alarm *alarm = argument;
	struct model *model = alarm->model;
	tw_duration now = model_now(model);

	if (atomic_load(&model->is_quiet))
		model_fail(model, "a task begins after the stop and an idle wait");
	lock(&alarm->lock);
	if (alarm->is_running)
		model_fail(model, "two runs of an alarm overlap");
	if (alarm->is_closed)
		model_fail(model, "an alarm runs after it was closed");
	if (++alarm->runs > alarm->runs_most)
		model_fail(model, "an alarm runs that is not set");
	if (now < alarm->low)
		model_fail(model, "an alarm is early: %lld, not before %lld", (long long)now,
			   (long long)alarm->low);
	alarm->is_set = false;
	alarm->is_running = true;
	unlock(&alarm->lock);
	if (model->hooks->in_task)
		model->hooks->in_task(model, WAY_RUN, tw_current_task());
	lock(&alarm->lock);
	alarm->is_running = false;
	unlock(&alarm->lock);
}

void alarms_begin(struct wheel_user *user)
{
	for (int i = 0; i < MODEL_ALARMS; i++)
		user->alarms[i] = (struct model_alarm){
			.lock = ATOMIC_FLAG_INIT, .model = user->model, .low = TW_FOREVER};
}

void alarms_create(struct wheel_user *user)
{
	alarms_begin(user);
	for (int i = 0; i < MODEL_ALARMS; i++)
		user->alarms[i].is_there =
			USER_CALL(user, tw_alarm_init(user->model->wheel, &user->alarms[i].alarm,
						      alarm_run, &user->alarms[i])) == TW_OK;
}

static void alarm_closed(void *argument)
{
	struct model_alarm *alarm = argument;

	lock(&alarm->lock);
	if (alarm->is_running || !alarm->is_closing || alarm->is_closed)
		model_fail(alarm->model, "an alarm is closed twice, or beside its run");
	alarm->is_closed = true;
	unlock(&alarm->lock);
}

static void alarm_end(struct wheel_user *user, struct model_alarm *alarm)
{
	enum tw_status status;

	alarm->is_closing = random_once_in(&user->random, 2);
	/* This works after a stop, too. */
	(void)user_call_begins(user, "end of an alarm");
	status = alarm->is_closing ? tw_alarm_close(&alarm->alarm, alarm_closed)
				   : tw_alarm_destroy(&alarm->alarm);
	user_call_ended(user, "end of an alarm", TW_OK, false);
	if (!alarm->is_closing)
		memset(&alarm->alarm, 0x5a, sizeof(alarm->alarm));
	if (status != TW_OK)
		model_fail(user->model, "an alarm is not destroyed: %s", tw_status_name(status));
}

bool alarms_are_closed(struct wheel_user *user)
{
	bool are_closed = true;

	for (int i = 0; i < MODEL_ALARMS; i++) {
		struct model_alarm *alarm = &user->alarms[i];

		lock(&alarm->lock);
		are_closed &= alarm->is_closing == alarm->is_closed;
		unlock(&alarm->lock);
	}
	return are_closed;
}

void alarms_judge_end(struct wheel_user *user)
{
	if (!alarms_are_closed(user))
		model_fail(user->model, "an alarm was closed, and its function not called");
}

void alarms_destroy(struct wheel_user *user)
{
	for (int i = 0; i < MODEL_ALARMS; i++) {
		struct model_alarm *alarm = &user->alarms[i];

		if (!alarm->is_there)
			continue;
		alarm_end(user, alarm);
		alarm->is_there = false;
		lock(&alarm->lock);
		/* A close leaves a run that has begun, and that the model may not have seen. */
		if (!alarm->is_closing)
			alarm->runs_most = alarm->runs;
		alarm->is_set = false;
		unlock(&alarm->lock);
	}
}

static void alarm_stop(struct wheel_user *user, struct model_alarm *alarm)
{
	enum tw_status status = USER_CALL(user, tw_alarm_stop(&alarm->alarm));

	if (status == TW_CLOSED)
		return;
	lock(&alarm->lock);
	if (status == TW_OK && alarm->is_running)
		model_fail(user->model, "an alarm runs after a stop with TW_OK");
	alarm->is_set = false;
	alarm->runs_most = alarm->runs;
	if ((status == TW_RUNNING || status == TW_REARMED) && !alarm->is_running)
		alarm->runs_most++;
	alarm->low = alarm->runs_most > alarm->runs ? 0 : TW_FOREVER;
	unlock(&alarm->lock);
}

void act_use_alarm(struct wheel_user *user)
{
	struct model *model = user->model;
	struct model_alarm *alarm = &user->alarms[random_below(&user->random, MODEL_ALARMS)];
	tw_duration delay = draw_delay(user);
	tw_duration low = time_add(model_now(model), delay < 0 ? 0 : delay);
	tw_duration now;
	uint64_t runs;

	if (!alarm->is_there)
		return;
	if (random_once_in(&user->random, 3)) {
		alarm_stop(user, alarm);
		return;
	}
	lock(&alarm->lock);
	if (low < alarm->low)
		alarm->low = low;
	runs = alarm->runs;
	alarm->runs_most++;
	alarm->is_set = false;
	alarm->high = TW_FOREVER;
	unlock(&alarm->lock);
	if (USER_CALL(user, tw_alarm_set(&alarm->alarm, delay)) != TW_OK)
		return;
	now = model_now(model);
	lock(&alarm->lock);
	alarm->high = time_add(now, delay > model->interval ? delay : model->interval);
	/* A run meanwhile may have been for this. */
	alarm->is_set = alarm->runs == runs;
	unlock(&alarm->lock);
}

void alarms_judge_sleep(struct wheel_user *user, tw_duration slack, tw_duration until)
{
	for (int i = 0; i < MODEL_ALARMS; i++) {
		const struct model_alarm *alarm = &user->alarms[i];

		if (alarm->is_set && time_add(alarm->high, slack) < until)
			model_fail(user->model, "an alarm is due until %lld, and all sleep",
				   (long long)alarm->high);
	}
}
