/* SPDX-License-Identifier: MIT */
#include "wheel_user.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"

/* ---- Calls ---- */

bool user_call_begins(struct wheel_user *user, const char *call)
{
	bool was_stopped = atomic_load(&user->model->stop_ended);

	if (user->model->hooks->call_begins)
		user->model->hooks->call_begins(user, call);
	return was_stopped;
}

/* Every status must have a reason. */
void user_call_ended(struct wheel_user *user, const char *call, enum tw_status status,
		     bool was_stopped)
{
	struct model *model = user->model;
	const struct tw_options *options = &model->options;

	if (model->hooks->call_ended)
		model->hooks->call_ended(user, call, status);
	if (status == TW_CLOSED && !atomic_load(&model->stop_begun))
		model_fail(model, "%s: TW_CLOSED, and the wheel was not stopped", call);
	if (status != TW_CLOSED && was_stopped)
		model_fail(model, "%s: %s after the stop", call, tw_status_name(status));
	if (status == TW_FULL && options->when_full == TW_WHEN_FULL_WAIT &&
	    options->max_pending == 0)
		model_fail(model, "%s: TW_FULL where it is to wait", call);
	if (status == TW_INVALID)
		model_fail(model, "%s: TW_INVALID", call);
	if (model->is_exact && status == TW_FULL && options->max_pending == 0)
		model_fail(model, "%s: %s", call, tw_status_name(status));
}

void wheel_user_act(struct wheel_user *user, const struct wheel_act *acts)
{
	unsigned weights = 0;
	uint64_t drawn;

	for (const struct wheel_act *act = acts; act->act; act++)
		weights += act->weight;
	for (drawn = random_below(&user->random, weights); drawn >= acts->weight; acts++)
		drawn -= acts->weight;
	acts->act(user);
}

/* ---- Sets ---- */

/* An item is a command for a key, and its possible effects. */
struct item {
	unsigned key;
	struct model_name name;
	void *token;
	tw_duration delay;
};

static struct item item_of(const struct wheel_user *user, unsigned key, tw_duration delay)
{
	return (struct item){.key = key, .name = model_name(user->number, key), .delay = delay};
}

static struct item draw_item(struct wheel_user *user)
{
	unsigned key = (unsigned)random_below(&user->random, user->keys);

	return item_of(user, key, user->model->hooks->draw_delay(user));
}

static tw_duration delay_of_set(const struct wheel_user *user, tw_duration delay)
{
	return delay > user->model->interval ? delay : user->model->interval;
}

static void item_accept(struct wheel_user *user, const struct item *item)
{
	tw_duration delay = delay_of_set(user, item->delay);

	model_accept(user, item->key, item->token, time_add(model_now(user->model), delay));
}

/* Offers the item's value at the time `now`. Returns whether there was a value left. */
static bool item_offer(struct wheel_user *user, struct item *item, tw_duration now)
{
	item->token = model_offer(user, item->key, time_add(now, delay_of_set(user, item->delay)));
	return item->token;
}

/* Draws an item and offers its value. Returns whether there was a value left. */
static bool draw_set(struct wheel_user *user, struct item *item)
{
	/* The clock is not read under the lock: in a simulation that may switch to another
	 * thread. */
	tw_duration now = model_now(user->model);
	bool is_offered;

	while (user->is_shared &&
	       atomic_flag_test_and_set_explicit(&user->lock, memory_order_acquire))
		sched_yield();
	*item = draw_item(user);
	is_offered = item_offer(user, item, now);
	if (user->is_shared)
		atomic_flag_clear_explicit(&user->lock, memory_order_release);
	return is_offered;
}

/* In the exact case: returns whether the set of the last value offered finds no place. The others
 * have one each; the value whose function makes the set has come back, and still has its place. */
static bool set_is_refused(struct model *model)
{
	size_t limit = model->options.max_pending;

	return model->is_exact && limit > 0 && model_open(model) - 1 + model->in_task >= limit;
}

/* In the exact case an accepted value is known before the call, and may come back in it. Returns
 * whether the value was accepted. */
static bool give_set(struct wheel_user *user, const struct item *item)
{
	struct model *model = user->model;
	bool is_refused = set_is_refused(model);
	enum tw_status status;

	if (model->is_exact && !is_refused)
		item_accept(user, item);
	status = USER_CALL(user, tw_set_timer(model->wheel, item->name.bytes, item->name.size,
					      item->token, item->delay));
	if (model->is_exact && status != (is_refused ? TW_FULL : TW_OK))
		model_fail(model, "a set: %s", tw_status_name(status));
	else if (!model->is_exact && status == TW_OK)
		item_accept(user, item);
	else if (!model->is_exact || is_refused)
		model_refuse(model, item->token);
	return status == TW_OK;
}

bool act_set_key(struct wheel_user *user, unsigned key, tw_duration delay)
{
	struct item item = item_of(user, key, delay);

	return item_offer(user, &item, model_now(user->model)) && give_set(user, &item);
}

void act_set(struct wheel_user *user)
{
	struct item item;

	if (draw_set(user, &item))
		(void)give_set(user, &item);
}

void act_set_crowd(struct wheel_user *user)
{
	unsigned count = (unsigned)random_between(&user->random, 1, CROWD_MOST);
	tw_duration delay = user->model->hooks->draw_delay(user);

	for (unsigned i = 0; i < count; i++)
		(void)act_set_key(user, (unsigned)random_below(&user->random, user->keys), delay);
}

void act_add(struct wheel_user *user)
{
	struct model *model = user->model;
	struct item item;
	struct model_look look;
	enum tw_status status;
	bool is_refused;

	if (!draw_set(user, &item))
		return;
	look = model_look(user, item.key);
	is_refused = set_is_refused(model);
	if (model->is_exact && (look.was_there || is_refused))
		model_refuse(model, item.token);
	else if (model->is_exact)
		item_accept(user, &item);
	status = USER_CALL(user, tw_add_timer(model->wheel, item.name.bytes, item.name.size,
					      item.token, item.delay));
	if (model->is_exact && (status == TW_FULL) != is_refused)
		model_fail(model, "an add: %s", tw_status_name(status));
	if (status == TW_OK || status == TW_EXISTS)
		model_judge_look(user, item.key, &look, status == TW_EXISTS, -1);
	if (status == TW_OK && !model->is_exact)
		item_accept(user, &item);
	else if (!model->is_exact)
		model_refuse(model, item.token);
}

/* ---- Moves and removals ---- */

static void judge_command(const struct wheel_user *user, enum tw_status status)
{
	if (user->model->is_exact && status != TW_OK)
		model_fail(user->model, "a command was refused: %s", tw_status_name(status));
}

void act_move(struct wheel_user *user)
{
	struct item item = draw_item(user);
	uint64_t order = model_move_begin(user, item.key, item.delay);
	enum tw_status status = USER_CALL(user, tw_move_timer(user->model->wheel, item.name.bytes,
							      item.name.size, item.delay));

	judge_command(user, status);
	if (!user->model->is_exact && order > 0)
		model_move_end(user, item.key, order, item.delay, status == TW_OK);
}

bool act_remove_key(struct wheel_user *user, unsigned key)
{
	struct model *model = user->model;
	struct model_name name = model_name(user->number, key);
	enum tw_status status;

	if (model->is_exact)
		model_undo(user, key, WAY_REMOVED);
	status = USER_CALL(user, tw_remove_timer(model->wheel, name.bytes, name.size));
	judge_command(user, status);
	if (!model->is_exact && status == TW_OK)
		model_undo(user, key, WAY_REMOVED);
	return status == TW_OK;
}

void act_remove(struct wheel_user *user)
{
	(void)act_remove_key(user, (unsigned)random_below(&user->random, user->keys));
}

/* ---- Questions ---- */

void act_ask(struct wheel_user *user)
{
	struct item item = draw_item(user);
	struct model_look look = model_look(user, item.key);
	tw_duration left = 0;
	enum tw_status status = USER_CALL(
		user, tw_contains(user->model->wheel, item.name.bytes, item.name.size, &left));

	if (status == TW_OK || status == TW_NOT_FOUND)
		model_judge_look(user, item.key, &look, status == TW_OK, left);
}

void act_take(struct wheel_user *user)
{
	struct model *model = user->model;
	struct item item = draw_item(user);
	struct model_look look = model_look(user, item.key);
	void *token = user;
	enum tw_status status;

	if (model->is_exact)
		model_undo(user, item.key, WAY_TAKEN);
	atomic_fetch_add(&model->takes, 1);
	status = USER_CALL(user,
			   tw_take_timer(model->wheel, item.name.bytes, item.name.size, &token));

	if (status == TW_OK || status == TW_NOT_FOUND)
		model_judge_look(user, item.key, &look, status == TW_OK, -1);
	if (status == TW_OK) {
		if (token != look.token && !user->is_shared)
			model_fail(model, "tw_take_timer gives another value");
		model_return(model, token, WAY_TAKEN, NULL);
		if (!model->is_exact)
			model_undo(user, item.key, WAY_TAKEN);
	}
	atomic_fetch_sub(&model->takes, 1);
}

/* ---- All keys and timers ---- */

void act_flush(struct wheel_user *user)
{
	if (USER_CALL(user, tw_flush(user->model->wheel)) == TW_OK)
		model_strike(user, model_now(user->model));
}

void act_wait_idle(struct wheel_user *user)
{
	struct model *model = user->model;
	tw_duration before = model_now(model);
	bool was_stopped = atomic_load(&model->stop_ended);
	uint64_t commands = atomic_load(&model->commands);
	enum tw_status status;

	/* The call works after a stop: its status is checked elsewhere. */
	(void)user_call_begins(user, "tw_wait_idle");
	status = tw_wait_idle(model->wheel);
	user_call_ended(user, "tw_wait_idle", status, false);
	if (status != TW_OK)
		model_fail(model, "tw_wait_idle does not answer TW_OK");
	if (model->is_exact) {
		model_end_drive(model);
	} else {
		model_strike(user, model_now(model));
		model_judge_idle(user, before, commands, was_stopped);
	}
	if (was_stopped)
		atomic_store(&model->is_quiet, true);
}

void act_wait_idle_until(struct wheel_user *user)
{
	struct model *model = user->model;
	tw_duration wait = random_between(&user->random, 0, 2 * model->interval);
	tw_duration before = model_now(model);
	bool was_stopped = atomic_load(&model->stop_ended);
	uint64_t commands = atomic_load(&model->commands);
	enum tw_status status;

	(void)user_call_begins(user, "tw_wait_idle_until");
	status = tw_wait_idle_until(model->wheel, tw_now(model->wheel) + wait);
	user_call_ended(user, "tw_wait_idle_until", status, false);
	if (status != TW_OK && status != TW_TIMED_OUT && status != TW_NO_MEMORY)
		model_fail(model, "tw_wait_idle_until: %s", tw_status_name(status));
	if (status != TW_OK)
		return;
	model_strike(user, model_now(model));
	model_judge_idle(user, before, commands, was_stopped);
}

/* All pending timers leave the wheel. */
static void undo_all(struct wheel_user *user, enum model_way way)
{
	model_begin_group(user->model);
	for (unsigned key = 0; key < user->keys; key++)
		model_undo(user, key, way);
	if (user->model->is_exact)
		timers_owe(user);
}

void act_drain(struct wheel_user *user)
{
	struct model *model = user->model;
	enum tw_status status;

	atomic_fetch_add(&model->drains_begun, 1);
	if (model->is_exact)
		undo_all(user, WAY_DRAINED);
	status = USER_CALL(user, tw_drain(model->wheel, model_drain, model));
	atomic_fetch_add(&model->drains_ended, 1);
	if (!model->is_exact && status == TW_OK)
		undo_all(user, WAY_DRAINED);
}

void act_stop(struct wheel_user *user)
{
	struct model *model = user->model;
	bool was_stopped = atomic_load(&model->stop_ended);
	enum tw_status status;

	atomic_store(&model->stop_begun, true);
	if (model->is_exact)
		undo_all(user, WAY_STOPPED);
	(void)user_call_begins(user, "tw_stop");
	status = tw_stop(model->wheel);
	user_call_ended(user, "tw_stop", status, false);
	atomic_store(&model->stop_ended, true);
	if (status != TW_CLOSED && (was_stopped || status != TW_OK))
		model_fail(model, "tw_stop: %s", tw_status_name(status));
}

void act_look_at_stats(struct wheel_user *user)
{
	struct tw_stats stats;

	if (tw_get_stats(user->model->wheel, &stats) != TW_OK)
		model_fail(user->model, "tw_get_stats");
}

void act_advance(struct wheel_user *user, tw_duration by)
{
	struct model *model = user->model;
	tw_duration before = model_now(model);

	model_begin_drive(model, before + by);
	if (USER_CALL(user, tw_advance(model->wheel, by)) != TW_OK)
		return;
	if (model_now(model) < before + by)
		model_fail(model, "the clock went on by less than it was moved");
	model_end_drive(model);
}

void act_poll(struct wheel_user *user)
{
	struct model *model = user->model;
	tw_duration left = -1;
	tw_duration next;

	if (USER_CALL(user, tw_poll(model->wheel, &left)) != TW_OK || !model->is_exact)
		return;
	model_end_drive(model);
	next = model_next_time(model);
	if (left == TW_FOREVER && next == TW_FOREVER)
		return;
	/* It may be sooner: a coarse slot comes up before its timers. */
	if (left <= 0 || left > next - model->now)
		model_fail(model, "tw_poll returns another time: %lld", (long long)left);
}

struct walk {
	struct model *model;
	size_t visits;
};

static int visit(void *context, const struct tw_pending_timer *timer)
{
	struct walk *walk = context;

	walk->visits++;
	return model_visit(walk->model, timer);
}

/* In the exact case a walk visits each pending timer once. */
void act_walk(struct wheel_user *user)
{
	struct model *model = user->model;
	struct walk walk = {.model = model};

	if (model->is_exact)
		act_advance(user, 0);
	(void)USER_CALL(user, tw_each(model->wheel, visit, &walk));
	if (!model->is_exact)
		return;
	if (walk.visits != model->pending)
		model_fail(model, "a walk visits %zu timers, and %zu are pending", walk.visits,
			   model->pending);
	model_end_walk(model);
}
