/* SPDX-License-Identifier: MIT */
/*
 * A token is the address of a value with the count of its uses in the low bits, which is odd while
 * the value is out. So a value that comes back a second time is recognized, even if it is in use
 * again.
 *
 * No lock is held while the wheel is called, its clock included: in a simulation every such call
 * may switch to another thread.
 */
#include "wheel_model.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wheel_user.h"

enum { TOKEN_USES = 64 };

/* A window has the deadlines that one command may have given. */
struct window {
	tw_duration low;
	tw_duration high;
	uint64_t order; /* its command's */
	bool at_once;   /* a move under one interval: runs before its deadline */
	bool is_struck;
	bool is_filed; /* a flush has come back before it was due */
};

enum fate { OFFERED, ACCEPTED };

struct model_value {
	atomic_flag lock;
	uint64_t uses;
	struct wheel_user *user;
	unsigned key;
	enum fate fate;
	uint64_t fate_order; /* the place of its fate among the commands */
	uint64_t drains;     /* drains over before it was set */
	bool is_undone;      /* by a command of its user, or owed in the exact case */
	bool is_loose;       /* too many windows */
	bool is_visited;     /* by the walk under way, in the exact case */
	unsigned windows;
	struct window window[];
};

static struct model_value *value_lock(void *token, bool *is_out)
{
	uintptr_t uses = (uintptr_t)token % TOKEN_USES;
	struct model_value *value = (struct model_value *)((uintptr_t)token - uses);

	while (atomic_flag_test_and_set_explicit(&value->lock, memory_order_acquire))
		sched_yield();
	*is_out = value->uses % TOKEN_USES == uses && uses % 2 == 1;
	return value;
}

static void value_unlock(struct model_value *value)
{
	atomic_flag_clear_explicit(&value->lock, memory_order_release);
}

static void *value_token(struct model_value *value)
{
	return (void *)((uintptr_t)value + value->uses % TOKEN_USES);
}

static struct model_value *value_at(const struct wheel_user *user, size_t index)
{
	return (struct model_value *)((char *)user->values + index * user->value_size);
}

static struct window *value_last_window(struct model_value *value)
{
	return &value->window[value->windows - 1];
}

void wheel_user_open(struct wheel_user *user, struct model *model, unsigned number, unsigned keys,
		     size_t values, unsigned windows)
{
	size_t size = sizeof(struct model_value) + windows * sizeof(struct window);

	*user = (struct wheel_user){.model = model,
				    .number = number,
				    .keys = keys,
				    .value_count = values,
				    .value_size = (size + TOKEN_USES - 1) / TOKEN_USES * TOKEN_USES,
				    .windows = windows};
	user->values = aligned_alloc(TOKEN_USES, values * user->value_size);
	user->current = calloc(keys, sizeof(*user->current));
	if (!user->values || !user->current)
		abort();
	memset(user->values, 0, values * user->value_size);
	alarms_begin(user);
}

void wheel_user_close(struct wheel_user *user)
{
	free(user->values);
	free(user->current);
}

/* ---- Reports ---- */

void model_fail(struct model *model, const char *format, ...)
{
	char text[600];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	model->hooks->fail(model, text);
}

static void value_fail(struct model_value *value, tw_duration now, const char *what)
{
	char text[360];
	int length = 0;

	for (unsigned i = 0; i < value->windows && length < (int)sizeof(text) - 60; i++) {
		const struct window *window = &value->window[i];

		length += snprintf(text + length, sizeof(text) - (size_t)length,
				   "; %" PRId64 " to %" PRId64 "%s%s", window->low, window->high,
				   window->at_once ? " at once" : "",
				   window->is_struck ? " struck" : "");
	}
	model_fail(value->user->model, "%s: key %u/%u%s%s, now %" PRId64 ", deadlines%s", what,
		   value->user->number, value->key, value->is_undone ? ", undone" : "",
		   value->is_loose ? ", loose" : "", now, text);
}

#define TRACE(model, ...)                                   \
	do {                                                \
		if ((model)->hooks->trace)                  \
			(model)->hooks->trace(__VA_ARGS__); \
	} while (0)

/* ---- Owed values of the exact case ---- */

void model_begin_group(struct model *model)
{
	if (model->is_exact)
		model->groups++;
}

/* The value leaves the pending ones by a command. It must come back that way, in any order within a
 * group; a taken one comes back by the call. */
static void leave(struct model *model, struct model_value *value, enum model_way way,
		  bool is_of_group)
{
	value->is_undone = true;
	model->pending--;
	if (way == WAY_TAKEN)
		return;
	if (!is_of_group)
		model_begin_group(model);
	if (model->owed_first == model->owed_count)
		model->owed_first = model->owed_count = 0;
	if (model->owed_count == model->owed_most) {
		model->owed_most = model->owed_most * 2 + 64;
		model->owed = realloc(model->owed, model->owed_most * sizeof(*model->owed));
		if (!model->owed)
			abort();
	}
	model->owed[model->owed_count++] = (struct owed){value_token(value), way, model->groups};
}

/* Takes the value from the first owed group. Returns false if it is not there. */
static bool owed_take(struct model *model, void *token, enum model_way way)
{
	struct owed *first = &model->owed[model->owed_first];

	for (size_t i = model->owed_first; i < model->owed_count; i++) {
		struct owed *found = &model->owed[i];

		if (found->group != first->group)
			return false;
		if (found->token != token)
			continue;
		if (found->way != way)
			return false;
		*found = *first;
		model->owed_first++;
		return true;
	}
	return false;
}

/* Returns its latest run: ticks of a real clock are counted from an unknown time. */
static tw_duration tick_at(const struct model *model, tw_duration time)
{
	tw_duration interval = model->interval;

	if (!model_is_manual(model))
		return time_add(time, interval);
	if (time > TW_FOREVER - interval)
		return TW_FOREVER;
	return (time + interval - 1) / interval * interval;
}

/* Checks that the value comes back as it must, when it must. */
static void judge_exactly(struct model *model, struct model_value *value, enum model_way way,
			  const struct tw_task *task, tw_duration now)
{
	struct window *window = value_last_window(value);

	if (way == WAY_TAKEN)
		return;
	if (model->owed_first < model->owed_count) {
		if (!owed_take(model, value_token(value), way))
			value_fail(value, now, "something else must come first, or otherwise");
	} else if (value->is_undone || way != WAY_RUN) {
		value_fail(value, now, "a value comes back, and nothing has caused it");
	} else {
		if (now < model->now || now > model->target)
			value_fail(value, now, "the clock is not where the call moves it");
		model->now = now;
		model->pending--;
	}
	if (now != model->now)
		value_fail(value, now, "a value comes back at another time than it must");
	if (task->deadline != window->low)
		value_fail(value, now, "a value comes back with another deadline");
	if (task->lateness != (now > window->low ? now - window->low : 0))
		value_fail(value, now, "a value comes back with another lateness");
}

/* Calls function(value) for the keys' values that are not owed. */
#define FOR_EACH_PENDING(user, value)                        \
	for (unsigned key_ = 0; key_ < (user)->keys; key_++) \
		for (struct model_value *value = value_pending((user), key_); value; value = NULL)

/* This is for the exact case, which has one thread. */
static struct model_value *value_pending(const struct wheel_user *user, unsigned key)
{
	void *token = user->current[key];
	uintptr_t uses = (uintptr_t)token % TOKEN_USES;
	struct model_value *value = (struct model_value *)((uintptr_t)token - uses);

	if (!token || value->uses % TOKEN_USES != uses || value->is_undone)
		return NULL;
	return value;
}

void model_begin_drive(struct model *model, tw_duration target)
{
	if (model->is_exact)
		model->target = target;
}

void model_end_drive(struct model *model)
{
	if (!model->is_exact)
		return;
	if (model->owed_first < model->owed_count)
		model_fail(model, "%zu values have not come back that must have",
			   model->owed_count - model->owed_first);
	FOR_EACH_PENDING(model->users, value)
	if (tick_at(model, value_last_window(value)->low) <= model->target)
		value_fail(value, model->target, "a timer has not run");
	model->now = model->target;
	timers_judge_drive(model->users);
	if (model_now(model) != model->now)
		model_fail(model, "the clock is not where the call moves it");
	if (tw_pending(model->wheel) != model->pending)
		model_fail(model, "tw_pending: %zu instead of %zu", tw_pending(model->wheel),
			   model->pending);
}

tw_duration model_next_time(const struct model *model)
{
	tw_duration next = TW_FOREVER;

	FOR_EACH_PENDING(model->users, value)
	{
		tw_duration tick = tick_at(model, value_last_window(value)->low);

		if (tick < next)
			next = tick;
	}
	return next;
}

/* ---- Commands ---- */

static struct model_value *find_free(struct wheel_user *user)
{
	for (size_t i = 0; i < user->value_count; i++) {
		struct model_value *value = value_at(user, user->next_value);
		bool is_out;

		user->next_value = (user->next_value + 1) % user->value_count;
		(void)value_lock(value, &is_out);
		if (value->uses % 2 == 0)
			return value;
		value_unlock(value);
	}
	return NULL;
}

static struct window *value_add_window(struct model_value *value, tw_duration low, bool at_once)
{
	struct model *model = value->user->model;
	struct window *window;

	if (model->is_exact)
		value->windows = 0;
	if (value->windows == value->user->windows) {
		value->is_loose = true;
		value->windows--;
	}
	window = &value->window[value->windows++];
	*window = (struct window){.low = low, .high = TW_FOREVER, .at_once = at_once};
	window->order = 1 + atomic_fetch_add_explicit(&model->commands, 1, memory_order_relaxed);
	return window;
}

void *model_offer(struct wheel_user *user, unsigned key, tw_duration low)
{
	struct model *model = user->model;
	struct model_value *value = find_free(user);
	void *token;

	if (!value)
		return NULL;
	value->uses++;
	value->user = user;
	value->key = key;
	value->fate = OFFERED;
	value->drains = atomic_load_explicit(&model->drains_ended, memory_order_relaxed);
	value->is_undone = value->is_visited = false;
	value->is_loose = user->is_loose;
	value->windows = 0;
	(void)value_add_window(value, low, false);
	atomic_fetch_add_explicit(&model->given, 1, memory_order_relaxed);
	token = value_token(value);
	value_unlock(value);
	return token;
}

void model_accept(struct wheel_user *user, unsigned key, void *token, tw_duration high)
{
	struct model *model = user->model;
	bool is_out;
	struct model_value *value = value_lock(token, &is_out);

	TRACE(model, "  key %u/%u: %p, until %lld", user->number, key, token, (long long)high);
	if (is_out) {
		value->fate = ACCEPTED;
		value->fate_order =
			1 + atomic_fetch_add_explicit(&model->commands, 1, memory_order_relaxed);
		value_last_window(value)->high = high;
	}
	value_unlock(value);
	/* Tasks' timers have many setters: their order is not known. */
	if (user->is_shared || key == MODEL_NO_KEY)
		return;
	model_undo(user, key, WAY_REPLACED);
	user->current[key] = token;
	if (model->is_exact)
		model->pending++;
}

void model_refuse(struct model *model, void *token)
{
	bool is_out;
	struct model_value *value = value_lock(token, &is_out);

	if (is_out) {
		value->uses++;
		atomic_fetch_sub_explicit(&model->given, 1, memory_order_relaxed);
	} else {
		value_fail(value, 0, "a value was given back by a set that failed");
	}
	value_unlock(value);
}

uint64_t model_move_begin(struct wheel_user *user, unsigned key, tw_duration delay)
{
	struct model *model = user->model;
	tw_duration now = model_now(model);
	bool at_once = delay < model->interval;
	struct model_value *value;
	uint64_t order = 0;
	bool is_out;

	if (!user->current[key])
		return 0;
	value = value_lock(user->current[key], &is_out);
	if (is_out && !(model->is_exact && value->is_undone)) {
		struct window *window = value_add_window(value, time_add(now, delay), at_once);

		order = window->order;
		if (model->is_exact)
			window->high = window->low;
		if (model->is_exact && at_once)
			leave(model, value, WAY_RUN, false);
	}
	value_unlock(value);
	return order;
}

void model_move_end(struct wheel_user *user, unsigned key, uint64_t order, tw_duration delay,
		    bool is_accepted)
{
	struct model *model = user->model;
	tw_duration now = model_now(model);
	bool is_out;
	struct model_value *value = value_lock(user->current[key], &is_out);

	for (unsigned i = value->windows; is_out && i-- > 0;) {
		struct window *window = &value->window[i];

		if (window->order == order && is_accepted)
			window->high = time_add(now, delay);
		else if (window->order == order && !value->is_loose)
			value->windows--;
	}
	value_unlock(value);
}

void model_undo(struct wheel_user *user, unsigned key, enum model_way way)
{
	struct model *model = user->model;
	struct model_value *value;
	bool is_out;

	if (!user->current[key])
		return;
	value = value_lock(user->current[key], &is_out);
	if (is_out && model->is_exact && !value->is_undone)
		leave(model, value, way, way == WAY_DRAINED || way == WAY_STOPPED);
	else if (is_out)
		value->is_undone = true;
	value_unlock(value);
	user->current[key] = NULL;
}

static void value_strike(struct model_value *value, tw_duration now)
{
	for (unsigned i = 0; i < value->windows; i++) {
		struct window *window = &value->window[i];
		bool is_last = i + 1 == value->windows;

		if (window->low > now && !window->at_once && (value->is_undone || !is_last))
			window->is_struck = true;
		window->is_filed |= is_last && window->low > now;
	}
}

void model_strike(struct wheel_user *user, tw_duration now)
{
	for (size_t i = 0; i < user->value_count; i++) {
		struct model_value *value = value_at(user, i);
		bool is_out;

		(void)value_lock(value, &is_out);
		if (value->uses % 2 == 1)
			value_strike(value, now);
		value_unlock(value);
	}
}

/* ---- Returned values ---- */

struct model_name model_name(unsigned user, unsigned key)
{
	/* A cell of the queue takes up to 24 bytes. */
	static const size_t sizes[] = {8, 24, 16, 25, 48, 9, 8, 40};
	struct model_name name = {.size = sizes[key % (sizeof(sizes) / sizeof(sizes[0]))]};

	memcpy(name.bytes, &user, sizeof(user));
	memcpy(name.bytes + sizeof(user), &key, sizeof(key));
	return name;
}

static void judge_key(struct model_value *value, const struct tw_task *task, tw_duration now)
{
	struct model_name name = model_name(value->user->number, value->key);

	if (task->key_size != name.size || memcmp(task->key, name.bytes, name.size) != 0)
		value_fail(value, now, "a value comes back with another key");
}

/* Inline, with a manual clock, a timer runs in its tick, and one user's timers of a tick run in the
 * order of deadlines, equal ones in that of commands. */
static void judge_tick(struct model_value *value, const struct window *window, tw_duration deadline,
		       tw_duration now)
{
	struct wheel_user *user = value->user;
	struct model *model = user->model;

	if (!model_is_manual(model) || model->options.workers != TW_WORKERS_INLINE ||
	    value->is_loose)
		return;
	if (model->is_exact ? value->is_undone : !window->is_filed)
		return;
	if (now != tick_at(model, deadline))
		value_fail(value, now, "a timer runs in another tick");
	if (user->last_tick == now &&
	    (deadline < user->last_deadline ||
	     (deadline == user->last_deadline && window->order < user->last_order)))
		value_fail(value, now, "two timers of one tick change places");
	user->last_tick = now;
	user->last_deadline = deadline;
	user->last_order = window->order;
}

static void judge_run(struct model_value *value, const struct tw_task *task, tw_duration now)
{
	bool is_known = value->is_loose;
	bool at_once = value->is_loose;

	for (unsigned i = 0; i < value->windows; i++) {
		const struct window *window = &value->window[i];

		if (window->is_struck || task->deadline < window->low ||
		    task->deadline > window->high)
			continue;
		is_known = true;
		at_once |= window->at_once;
		if (i + 1 == value->windows && !window->at_once)
			judge_tick(value, window, task->deadline, now);
	}
	if (!is_known)
		value_fail(value, now, "a timer runs at a deadline that no command in force gave");
	if (!at_once && now < task->deadline)
		value_fail(value, now, "early");
	if (task->lateness < 0)
		value_fail(value, now, "lateness under 0");
}

void model_return(struct model *model, void *token, enum model_way way, const struct tw_task *task)
{
	tw_duration now = model_now(model);
	bool is_out;
	struct model_value *value = value_lock(token, &is_out);

	TRACE(model, "%p of key %u/%u comes back, way %d, now %lld", token, value->user->number,
	      value->key, (int)way, (long long)now);
	if (!is_out)
		value_fail(value, now, "a value that was refused, or has come back, comes back");
	if (task && task->key)
		judge_key(value, task, now);
	if (way == WAY_RUN)
		judge_run(value, task, now);
	if (model->is_exact && is_out)
		judge_exactly(model, value, way, task, now);
	value->uses += is_out;
	value_unlock(value);
	atomic_fetch_add_explicit(&model->back[way], 1, memory_order_relaxed);
	if (task && model->hooks->in_task)
		model->hooks->in_task(model, way, task);
}

static void execute(void *context, const struct tw_task *task)
{
	struct model *model = context;

	if (atomic_load(&model->is_quiet))
		model_fail(model, "a task begins after the stop and an idle wait");
	model_return(model, task->value, WAY_RUN, task);
}

void model_run_once(void *token)
{
	const struct tw_task *task = tw_current_task();
	bool is_out;
	struct model_value *value = value_lock(token, &is_out);
	struct model *model = value->user->model;

	value_unlock(value);
	model_return(model, token, WAY_RUN, task);
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	static const enum model_way ways[] = {[TW_REPLACED] = WAY_REPLACED,
					      [TW_REMOVED] = WAY_REMOVED,
					      [TW_STOPPED] = WAY_STOPPED};
	struct model *model = context;

	if (reason == TW_STOPPED && !atomic_load(&model->stop_begun))
		model_fail(model, "TW_STOPPED, and the wheel was not stopped");
	/* The command may be under way, and not yet known to the model. */
	if (reason == TW_REPLACED && atomic_load(&model->is_quiet))
		model_fail(model, "replaced after the stop");
	if (task->key || task->run == model_run_once) {
		model_return(model, task->value, ways[reason], task);
		return;
	}
	if (reason != TW_STOPPED)
		model_fail(model, "a timer by handle is released without a stop");
	timer_give(task, WAY_STOPPED);
}

void model_drain(void *context, const struct tw_task *task)
{
	struct model *model = context;

	if (atomic_load(&model->drains_begun) == 0)
		model_fail(model, "a drain function is called without a drain");
	if (task->key || task->run == model_run_once)
		model_return(model, task->value, WAY_DRAINED, task);
	else
		timer_give(task, WAY_DRAINED);
}

/* ---- Questions ---- */

struct model_look model_look(struct wheel_user *user, unsigned key)
{
	struct model_look look = {.token = user->current[key], .before = model_now(user->model)};

	if (look.token) {
		struct model_value *value = value_lock(look.token, &look.was_there);

		look.was_there &= !(user->model->is_exact && value->is_undone);
		look.deadline = value_last_window(value)->low;
		value_unlock(value);
	}
	return look;
}

/* Returns whether a command in force may have made it run by then. */
static bool may_have_run(const struct model_value *value, tw_duration now)
{
	if (value->is_loose)
		return true;
	for (unsigned i = 0; i < value->windows; i++)
		if (!value->window[i].is_struck &&
		    (value->window[i].at_once || value->window[i].low <= now))
			return true;
	return false;
}

static void judge_found(struct model_value *value, tw_duration left, tw_duration before,
			tw_duration after)
{
	const struct window *window = value_last_window(value);

	if (window->at_once || value->is_loose)
		return;
	if (left >= 0 && (left > time_left(window->high, before) ||
			  (window->low > after && left < time_left(window->low, after))))
		value_fail(value, after, "a key is said to have another time left");
	/* The timer is there after all commands: the last one counts. */
	for (unsigned i = 0; i + 1 < value->windows; i++)
		value->window[i].is_struck = true;
}

static void judge_answer_exactly(const struct wheel_user *user, unsigned key,
				 const struct model_look *look, bool is_found, tw_duration left)
{
	if (!is_found && look->was_there)
		model_fail(user->model, "key %u/%u is not found, and is there", user->number, key);
	if (is_found && left >= 0 && left != time_left(look->deadline, look->before))
		model_fail(user->model, "key %u/%u is said to have another time left: %" PRId64,
			   user->number, key, left);
}

void model_judge_look(struct wheel_user *user, unsigned key, const struct model_look *look,
		      bool is_found, tw_duration left)
{
	struct model *model = user->model;
	tw_duration after = model_now(model);
	uint64_t drains = atomic_load(&model->drains_begun);
	struct model_value *value;
	bool is_out;

	if (user->is_shared)
		return;
	if (is_found && !look->was_there)
		model_fail(model, "key %u/%u is found, and was not set or has left", user->number,
			   key);
	if (model->is_exact) {
		judge_answer_exactly(user, key, look, is_found, left);
		return;
	}
	if (!look->token)
		return;
	value = value_lock(look->token, &is_out);
	if (is_out && is_found)
		judge_found(value, left, look->before, after);
	if (is_out && !is_found && !may_have_run(value, after) && value->drains == drains)
		value_fail(value, after, "a pending key is not found");
	value_unlock(value);
}

/* A walk visits a timer. In the exact case its fields are the model's. */
int model_visit(void *context, const struct tw_pending_timer *timer)
{
	struct model *model = context;
	struct model_value *value;
	bool is_out;

	if (!timer->key)
		return timer_visit(model, timer);
	if (timer->key_size == 0)
		model_fail(model, "a walk visits a key without a byte");
	if (!model->is_exact)
		return 1;
	value = value_lock(timer->value, &is_out);
	if (!is_out || value->is_undone || value->is_visited)
		value_fail(value, model->now, "a walk visits a timer that is not armed");
	else if (timer->deadline != value_last_window(value)->low)
		value_fail(value, model->now, "a walk has another deadline");
	judge_key(value, &(struct tw_task){.key = timer->key, .key_size = timer->key_size},
		  model->now);
	value->is_visited = true;
	value_unlock(value);
	return 1;
}

void model_end_walk(struct model *model)
{
	FOR_EACH_PENDING(model->users, value)
	value->is_visited = false;
	timers_end_walk(model->users);
}

/* ---- Values that must have come back ---- */

/* Runs the statement for each of the users' values that are out: `user`, `value` and the rest are
 * the caller's. */
#define FOR_EACH_OUT(user, value, statement)                              \
	for (size_t index_ = 0; index_ < (user)->value_count; index_++) { \
		bool is_out_;                                             \
		struct model_value *value = value_at((user), index_);     \
                                                                          \
		(void)value_lock(value, &is_out_);                        \
		if (value->uses % 2 == 1 && value->fate == ACCEPTED) {    \
			statement;                                        \
		}                                                         \
		value_unlock(value);                                      \
	}

static void judge_idle_value(struct model_value *value, tw_duration before, uint64_t commands,
			     bool was_stopped)
{
	const struct window *window = value_last_window(value);

	/* A set that was under way at the stop may be accepted after the wait. */
	if (value->fate_order > commands || atomic_load(&value->user->model->takes) > 0)
		return;
	/* For a loose value the last window is not known to be in force. */
	if (was_stopped || value->is_undone ||
	    (!value->is_loose &&
	     (window->at_once || tick_at(value->user->model, window->high) <= before)))
		value_fail(value, before, "a value has not come back after an idle wait");
}

void model_judge_idle(struct wheel_user *user, tw_duration before, uint64_t commands,
		      bool was_stopped)
{
	struct model *model = user->model;

	for (unsigned i = 0; i < model->user_count; i++)
		if (was_stopped || &model->users[i] == user)
			FOR_EACH_OUT(&model->users[i], value,
				     judge_idle_value(value, before, commands, was_stopped))
}

void model_judge_end(struct model *model)
{
	for (unsigned i = 0; i < model->user_count; i++)
		FOR_EACH_OUT(&model->users[i], value,
			     value_fail(value, 0, "a value has not come back at the end"))
}

void model_judge_sleep(struct model *model, tw_duration slack, tw_duration until)
{
	for (unsigned i = 0; i < model->user_count; i++)
		FOR_EACH_OUT(&model->users[i], value,
			     if (!value->is_undone && !value->is_loose &&
				 time_add(value_last_window(value)->high, slack) < until)
				     value_fail(value, until, "due, and all sleep until then"))
}

/* ---- The model ---- */

tw_duration model_now(const struct model *model)
{
	return tw_now(model->wheel);
}

bool model_is_manual(const struct model *model)
{
	return model->options.clock == TW_CLOCK_MANUAL;
}

uint64_t model_open(struct model *model)
{
	uint64_t open = atomic_load(&model->given);

	for (int i = 0; i < WAYS; i++)
		open -= atomic_load(&model->back[i]);
	return open;
}

enum tw_status model_begin(struct model *model, tw_duration interval, size_t slots,
			   const struct tw_options *options)
{
	model->interval = interval;
	model->options = *options;
	model->options.context = model;
	model->options.release = release;
	return tw_create(&model->wheel, interval, slots, execute, &model->options);
}

void model_end(struct model *model)
{
	free(model->owed);
	for (unsigned i = 0; i < model->user_count; i++)
		wheel_user_close(&model->users[i]);
}
