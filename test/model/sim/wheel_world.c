/* SPDX-License-Identifier: MIT */
/*
 * A wheel with options drawn at random, a few threads that command it, and a model of what may come
 * of it. Each thread has keys of its own, so that what it commanded of a key is known in order; the
 * wheel decides alone whether a timer ran before or after a command.
 *
 * The oracle, for each value that the wheel accepted:
 *  - it comes back once, and a value that was refused never;
 *  - it runs at a deadline that a command gave it, not before that; a window for each command tells
 *    which deadlines it can have given, for the clock was read before and after the call;
 *  - a flush strikes the windows out that were still to come and that a later command has undone;
 *  - after an idle wait all is back that was due or undone before;
 *  - tw_contains answers as the model says where the model knows.
 * When all threads sleep, nothing that is due may be left, and no call may be waiting for time to
 * pass: this finds lost wake-ups.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "caller.h"

enum {
	USERS_MOST = 4,
	KEYS_A_USER = 6,
	VALUES_MOST = 2048,
	WINDOWS_MOST = 6,
	TIMERS_MOST = 64,
	ALARMS_A_USER = 2,
	BATCH_MOST = 12,
	TASKS_THREAD = USERS_MOST /* as the owner of what tasks set */
};

/* Which deadlines one command may have given. */
struct window {
	tw_duration low;
	tw_duration high;
	tw_duration delay; /* from when the owner takes the command, until a flush tells of that */
	bool at_once;      /* a move under one interval: runs before its deadline */
	bool is_struck;
	bool is_filed;  /* a flush has come back before it was due */
	uint64_t order; /* of its command */
};

enum fate { OFFERED, ACCEPTED, REFUSED };

struct value {
	unsigned user;
	unsigned key;
	enum fate fate;
	uint64_t fate_order; /* of that, among the commands */
	unsigned given;
	bool is_undone;  /* replaced or removed by a command of its thread */
	uint64_t drains; /* over before it was set */
	unsigned windows;
	bool is_loose; /* too many windows */
	struct window window[WINDOWS_MOST];
};

enum timer_kind { ONE_SHOT, PERIODIC, SCHEDULED };

/* A timer by handle; its argument. */
struct handle_timer {
	enum timer_kind kind;
	bool is_accepted;
	bool is_running;
	bool ends; /* its schedule, after a few runs; nobody stops it */
	struct tw_timer timer;
	tw_duration low; /* of the next run; resets under way may bring it sooner */
	tw_duration period;
	tw_duration low_reset;               /* by resets since the last run began */
	tw_duration asked[TASKS_THREAD + 1]; /* by resets under way, of each thread and its run */
	uint64_t resets_begun;
	unsigned resets; /* by others than its own run; accepted, or under way */
	uint64_t runs;
	uint64_t runs_most;
	uint64_t drains;
	unsigned own_resets;
	unsigned stops; /* begun */
	unsigned given; /* how often the argument has become somebody's */
};

struct alarm_timer {
	struct tw_alarm *alarm;
	bool is_running;
	bool is_set; /* by the last call that came back, and has not begun since */
	uint64_t runs;
	uint64_t runs_most;
	tw_duration low;
	tw_duration high; /* of the last set */
};

struct user {
	struct caller caller;
	struct value *current[KEYS_A_USER];
	struct alarm_timer alarms[ALARMS_A_USER];
	tw_duration last_tick; /* of those of its timers that ran inline, and the command's order */
	uint64_t last_order;
};

static struct world {
	struct tw_wheel *wheel;
	struct tw_options options;
	tw_duration interval;
	size_t slots;
	bool is_manual;
	bool is_inline;
	bool polls_descriptor;
	bool may_stop;
	bool may_drain;
	unsigned users;
	unsigned calls; /* of each user */
	struct user user[USERS_MOST + 1];
	unsigned values;
	struct value value[VALUES_MOST];
	unsigned timers;
	struct handle_timer timer[TIMERS_MOST];
	unsigned sleeping_tasks;
	int64_t slept_until; /* by the last task that slept: it may have held the owner up */
	unsigned tasks_left;
	uint64_t drains_begun;
	uint64_t drains_ended;
	bool stop_begun;
	bool stop_ended;
	bool is_quiet; /* stopped, and waited for: no task may begin */
	bool is_over;  /* for the poller */
	uint64_t commands;
} world;

static tw_duration now_here(void)
{
	return tw_now(world.wheel);
}

/* ---- What a call is told ---- */

/* What every status must have a reason for. */
static void check_status(const char *call, enum tw_status status, bool was_stopped)
{
	if (status == TW_CLOSED && !world.stop_begun)
		sim_fail("%s: TW_CLOSED, and nobody has stopped the wheel", call);
	if (status != TW_CLOSED && was_stopped)
		sim_fail("%s: %s after the stop", call, tw_status_name(status));
	if (status == TW_FULL && world.options.when_full == TW_WHEN_FULL_WAIT &&
	    world.options.max_pending == 0)
		sim_fail("%s: TW_FULL where it is to wait", call);
}

/* CALL(user, tw_flush(wheel)): with all that goes with a call. */
#define CALL(user, expression)                                                           \
	__extension__({                                                                  \
		bool wheel_stopped = world.stop_ended;                                   \
		enum tw_status wheel_status = CALLER_CALLS(&(user)->caller, expression); \
		check_status(#expression, wheel_status, wheel_stopped);                  \
		wheel_status;                                                            \
	})

/* ---- Values ---- */

static struct value *value_new(struct user *user, unsigned key)
{
	struct value *value;

	if (world.values == VALUES_MOST)
		return NULL;
	value = &world.value[world.values++];
	*value = (struct value){
		.user = user->caller.number, .key = key, .drains = world.drains_ended};
	return value;
}

static struct window *value_add_window(struct value *value, tw_duration delay, tw_duration low)
{
	struct window *window;

	if (value->windows == WINDOWS_MOST) {
		value->is_loose = true;
		value->windows = WINDOWS_MOST - 1;
	}
	window = &value->window[value->windows++];
	*window = (struct window){.low = low, .high = TW_FOREVER, .at_once = false};
	window->at_once = delay > 0 && delay < world.interval;
	window->order = ++world.commands;
	return window;
}

static struct window *value_last_window(struct value *value)
{
	return &value->window[value->windows - 1];
}

/* When it runs at the latest: ticks of a real clock are counted from a time that is not known. */
static tw_duration tick_at(tw_duration time)
{
	if (!world.is_manual)
		return time_add(time, world.interval);
	return time > TW_FOREVER - world.interval
		       ? TW_FOREVER
		       : (time + world.interval - 1) / world.interval * world.interval;
}

/* A name of the key: of different lengths, one longer than a cell takes. */
static size_t key_name(unsigned user, unsigned key, char *name)
{
	int length = snprintf(name, 64, "%u/%u%s", user, key,
			      key == 0 ? "/a key longer than a cell has room for" : "");

	return (size_t)length;
}

/* The call that offers it has ended. */
static void value_decide(struct value *value, bool is_accepted)
{
	value->fate = is_accepted ? ACCEPTED : REFUSED;
	value->fate_order = ++world.commands;
}

static void value_give(struct value *value, const char *how)
{
	sim_trace("value %d of key %u/%u: %s, now %lld", (int)(value - world.value), value->user,
		  value->key, how, (long long)sim_now());
	if (value->fate == REFUSED)
		sim_fail("a value that was refused comes back: %s", how);
	if (++value->given > 1)
		sim_fail("value %d of key %u/%u comes back again: %s", (int)(value - world.value),
			 value->user, value->key, how);
}

static void check_key(const struct tw_task *task, const struct value *value)
{
	char name[64];
	size_t size = key_name(value->user, value->key, name);

	if (task->key_size != size || memcmp(task->key, name, size) != 0)
		sim_fail("a value comes back with the key %.*s instead of %s", (int)task->key_size,
			 (const char *)task->key, name);
}

/* Inline, on a manual clock: in its tick, and of one tick and thread in the order of commands. */
static void check_tick(const struct value *value, const struct window *window, tw_duration deadline)
{
	struct user *user = &world.user[value->user];

	if (!world.is_manual || !world.is_inline || !window->is_filed || value->is_loose)
		return;
	if (now_here() != tick_at(deadline))
		sim_fail("a timer with the deadline %lld runs at %lld", (long long)deadline,
			 (long long)now_here());
	if (user->last_tick == now_here() && window->order < user->last_order)
		sim_fail("two timers of one tick change places");
	user->last_tick = now_here();
	user->last_order = window->order;
}

static void check_deadline(const struct tw_task *task, const struct value *value)
{
	tw_duration now = now_here();
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
			check_tick(value, window, task->deadline);
	}
	if (!is_known)
		sim_fail("value %d of key %u/%u%s runs at the deadline %lld, now %lld, which no "
			 "command in force gave it (the last: %lld to %lld)",
			 (int)(value - world.value), value->user, value->key,
			 value->is_undone ? ", undone," : "", (long long)task->deadline,
			 (long long)now, (long long)value->window[value->windows - 1].low,
			 (long long)value->window[value->windows - 1].high);
	if (!at_once && now < task->deadline)
		sim_fail("early: deadline %lld, now %lld", (long long)task->deadline,
			 (long long)now);
	if (task->lateness < 0)
		sim_fail("lateness %lld", (long long)task->lateness);
}

/* ---- Tasks ---- */

static void user_set(struct user *user, unsigned key, tw_duration delay);

static void task_sleep(void)
{
	struct timespec time = {.tv_nsec = draw_between(1, 3 * TW_MILLISECOND)};

	world.sleeping_tasks++;
	sim_nanosleep(&time, NULL);
	world.sleeping_tasks--;
	world.slept_until = sim_now();
}

/* What a task does beside being run. */
static void task_behave(void)
{
	struct user *tasks = &world.user[TASKS_THREAD];
	struct tw_stats stats;
	enum tw_status status;

	if (world.is_quiet)
		sim_fail("a task begins after the stop and an idle wait");
	if (world.tasks_left == 0)
		return;
	world.tasks_left--;
	switch (sim_draw(24)) {
	case 0:
	case 1:
		task_sleep();
		break;
	case 2:
	case 3:
	case 4:
		user_set(tasks, (unsigned)sim_draw(KEYS_A_USER),
			 draw_between(1, 4 * world.interval));
		break;
	case 5:
		status = sim_draw(2) ? tw_flush(world.wheel) : tw_trim(world.wheel);
		if (status != (world.is_inline ? TW_INVALID : TW_OK) && status != TW_CLOSED)
			sim_fail("a flush or trim in a task: %s", tw_status_name(status));
		break;
	case 6:
		status = tw_wait_idle(world.wheel);
		if (status != TW_INVALID)
			sim_fail("an idle wait in a task: %s", tw_status_name(status));
		break;
	case 7:
		tw_get_stats(world.wheel, &stats);
		break;
	case 8:
		if (world.may_stop && sim_draw(8) == 0) {
			world.stop_begun = true;
			(void)tw_stop(world.wheel);
			world.stop_ended = true;
		}
		break;
	default:
		sim_point();
	}
}

static void execute(void *context, const struct tw_task *task)
{
	struct value *value = task->value;

	(void)context;
	value_give(value, "it runs");
	check_key(task, value);
	check_deadline(task, value);
	task_behave();
}

static void give_handle(struct handle_timer *timer, const char *how)
{
	if (!timer->is_accepted && timer->given > 0)
		sim_fail("the argument of a timer by handle: %s", how);
	if (timer->is_running && timer->kind == ONE_SHOT && timer->resets == 0 &&
	    timer->own_resets == 0)
		sim_fail("the argument of a one-shot timer in its run: %s", how);
	timer->given++;
}

static void release(void *context, const struct tw_task *task, enum tw_reason reason)
{
	struct value *value = task->value;

	(void)context;
	if (reason == TW_STOPPED && !world.stop_begun)
		sim_fail("TW_STOPPED, and nobody has stopped the wheel");
	if (!task->key) {
		if (reason != TW_STOPPED)
			sim_fail("a timer by handle is released without a stop");
		give_handle(task->value, "released");
		return;
	}
	value_give(value, "it is released");
	check_key(task, value);
	/* The command may be under way, so that the model does not know of it yet. */
	if (reason == TW_REPLACED && world.is_quiet)
		sim_fail("replaced after the stop");
}

static void drain_each(void *context, const struct tw_task *task)
{
	(void)context;
	if (world.drains_begun == 0)
		sim_fail("a drain function is called, and nobody drains");
	if (!task->key) {
		give_handle(task->value, "drained");
		return;
	}
	value_give(task->value, "it is drained");
	check_key(task, task->value);
}

/* ---- Commands ---- */

/* The command has been accepted. */
static void window_end(struct window *window, tw_duration delay)
{
	if (world.options.delay_from == TW_FROM_APPLIED)
		window->delay = delay;
	else
		window->high = time_add(now_here(), delay);
}

static tw_duration delay_of_set(tw_duration delay)
{
	return delay > world.interval ? delay : world.interval;
}

static bool is_counted(enum tw_status status)
{
	return status == TW_OK;
}

static void undo(struct user *user, unsigned key)
{
	/* What tasks set has many setters: nothing is known of their order. */
	if (user->caller.number != TASKS_THREAD && user->current[key])
		user->current[key]->is_undone = true;
}

/* A set, by a delay from now or to a deadline. */
struct set {
	bool is_to_deadline;
	tw_duration time;
};

static enum tw_status set_call(struct value *value, const struct set *set)
{
	char name[64];
	size_t size = key_name(value->user, value->key, name);

	if (set->is_to_deadline)
		return tw_set_timer_at(world.wheel, name, size, value, set->time);
	return tw_set_timer(world.wheel, name, size, value, set->time);
}

static enum tw_status set_in_task(struct user *tasks, struct value *value, const struct set *set)
{
	bool may_wait = tasks->caller.may_take_time;
	enum tw_status status;

	/* It may wait for a place, and others for the task. */
	world.sleeping_tasks += may_wait;
	status = set_call(value, set);
	world.sleeping_tasks -= may_wait;
	return status;
}

static void user_set_either(struct user *user, unsigned key, struct set set)
{
	struct value *value = value_new(user, key);
	tw_duration delay = delay_of_set(set.time);
	struct window *window;
	enum tw_status status;

	if (!value)
		return;
	window = value_add_window(value, 0,
				  set.is_to_deadline ? set.time : time_add(now_here(), delay));
	user->caller.may_take_time = world.options.max_pending > 0;
	if (user->caller.number == TASKS_THREAD)
		status = set_in_task(user, value, &set);
	else
		status = CALL(user, set_call(value, &set));
	value_decide(value, is_counted(status));
	sim_trace("  value %d of key %u/%u, %s %lld", (int)(value - world.value), value->user, key,
		  set.is_to_deadline ? "deadline" : "delay", (long long)set.time);
	if (value->fate == REFUSED && value->given > 0)
		sim_fail("a value was given back by a set that failed");
	if (value->fate == REFUSED)
		return;
	if (set.is_to_deadline)
		window->high = set.time;
	else
		window_end(window, delay);
	undo(user, key);
	user->current[key] = value;
}

static void user_set(struct user *user, unsigned key, tw_duration delay)
{
	user_set_either(user, key, (struct set){false, delay});
}

static void user_set_at(struct user *user, unsigned key, tw_duration deadline)
{
	user_set_either(user, key, (struct set){true, deadline});
}

static void user_set_many(struct user *user)
{
	struct tw_set sets[BATCH_MOST];
	struct value *values[BATCH_MOST];
	char names[BATCH_MOST][64];
	size_t count = (size_t)draw_between(1, BATCH_MOST);
	size_t accepted = 0;
	/* Now and then a crowd that is due together. */
	tw_duration together = sim_draw(2) == 0 ? draw_between(1, 3 * world.interval) : 0;

	for (size_t i = 0; i < count; i++) {
		unsigned key = (unsigned)sim_draw(KEYS_A_USER);
		tw_duration delay = together > 0 ? together : draw_between(1, 5 * world.interval);

		values[i] = value_new(user, key);
		if (!values[i])
			return;
		(void)value_add_window(values[i], 0, time_add(now_here(), delay_of_set(delay)));
		sets[i] = (struct tw_set){names[i], key_name(user->caller.number, key, names[i]),
					  values[i], delay};
	}
	user->caller.may_take_time = world.options.max_pending > 0;
	(void)CALL(user, tw_set_timers(world.wheel, sets, count, &accepted));
	for (size_t i = 0; i < count; i++) {
		value_decide(values[i], i < accepted);
		sim_trace("  value %d of key %u/%u, delay %lld: %s", (int)(values[i] - world.value),
			  user->caller.number, values[i]->key, (long long)sets[i].delay,
			  i < accepted ? "accepted" : "refused");
		if (i >= accepted && values[i]->given > 0)
			sim_fail("a value was given back by a set that failed");
		if (i >= accepted)
			continue;
		window_end(value_last_window(values[i]), delay_of_set(sets[i].delay));
		undo(user, values[i]->key);
		user->current[values[i]->key] = values[i];
	}
}

/* What a move by that delay may bring about; NULL: nothing. */
static struct window *move_begin(struct user *user, unsigned key, tw_duration delay)
{
	struct value *value = user->current[key];

	sim_trace("  key %u/%u", user->caller.number, key);
	return value ? value_add_window(value, delay, time_add(now_here(), delay)) : NULL;
}

/* The last to begin is the first to end. */
static void move_end(struct user *user, unsigned key, struct window *window, tw_duration delay,
		     bool is_accepted)
{
	struct value *value = user->current[key];

	if (window && is_accepted)
		window_end(window, delay);
	else if (window && !value->is_loose)
		value->windows--;
}

static void user_move(struct user *user, unsigned key, tw_duration delay)
{
	char name[64];
	size_t size = key_name(user->caller.number, key, name);
	struct window *window = move_begin(user, key, delay);
	enum tw_status status = CALL(user, tw_move_timer(world.wheel, name, size, delay));

	move_end(user, key, window, delay, status == TW_OK);
}

static tw_duration draw_delay(void);

static void user_move_many(struct user *user)
{
	struct tw_move moves[BATCH_MOST];
	struct window *windows[BATCH_MOST];
	unsigned keys[BATCH_MOST];
	char names[BATCH_MOST][64];
	size_t count = (size_t)draw_between(1, BATCH_MOST);
	size_t accepted = 0;

	for (size_t i = 0; i < count; i++) {
		keys[i] = (unsigned)sim_draw(KEYS_A_USER);
		moves[i] = (struct tw_move){
			names[i], key_name(user->caller.number, keys[i], names[i]), draw_delay()};
		windows[i] = move_begin(user, keys[i], moves[i].delay);
	}
	if ((CALL(user, tw_move_timers(world.wheel, moves, count, &accepted)) == TW_OK) !=
	    (accepted == count))
		sim_fail("tw_move_timers has accepted %zu of %zu", accepted, count);
	for (size_t i = count; i-- > 0;)
		move_end(user, keys[i], windows[i], moves[i].delay, i < accepted);
}

static void user_remove(struct user *user, unsigned key)
{
	char name[64];
	size_t size = key_name(user->caller.number, key, name);

	sim_trace("  key %u/%u", user->caller.number, key);
	if (CALL(user, tw_remove_timer(world.wheel, name, size)) != TW_OK)
		return;
	undo(user, key);
	user->current[key] = NULL;
}

static void user_remove_many(struct user *user)
{
	struct tw_key names[KEYS_A_USER];
	char bytes[KEYS_A_USER][64];
	unsigned first = (unsigned)sim_draw(KEYS_A_USER);
	size_t count = (size_t)draw_between(1, KEYS_A_USER);
	size_t accepted = 0;

	for (unsigned i = 0; i < count; i++)
		names[i] = (struct tw_key){bytes[i], key_name(user->caller.number,
							      (first + i) % KEYS_A_USER, bytes[i])};
	sim_trace("  %zu keys from %u/%u on", count, user->caller.number, first);
	if ((CALL(user, tw_remove_timers(world.wheel, names, count, &accepted)) == TW_OK) !=
	    (accepted == count))
		sim_fail("tw_remove_timers has accepted %zu of %zu", accepted, count);
	for (unsigned i = 0; i < accepted; i++) {
		undo(user, (first + i) % KEYS_A_USER);
		user->current[(first + i) % KEYS_A_USER] = NULL;
	}
}

/* All commands of this thread have been applied: what they undid and was still to come by now. */
static void user_strike(struct user *user, tw_duration now)
{
	for (unsigned i = 0; i < world.values; i++) {
		struct value *value = &world.value[i];

		if (value->user != user->caller.number || value->given > 0)
			continue;
		for (unsigned j = 0; j < value->windows; j++) {
			struct window *window = &value->window[j];
			bool is_last = j + 1 == value->windows;

			if (window->delay > 0)
				window->high = time_add(now, window->delay);
			window->delay = 0;
			if (window->low > now && !window->at_once && (value->is_undone || !is_last))
				window->is_struck = true;
			window->is_filed |= is_last && window->low > now;
		}
	}
}

static void user_flush(struct user *user)
{
	if (CALL(user, tw_flush(world.wheel)) == TW_OK)
		user_strike(user, now_here());
}

static void print_value(const struct value *value)
{
	printf("   value %d of key %u/%u%s, now %lld\n", (int)(value - world.value), value->user,
	       value->key, value->is_undone ? ", undone" : "", (long long)now_here());
	for (unsigned i = 0; i < value->windows; i++)
		printf("   window %lld to %lld%s%s\n", (long long)value->window[i].low,
		       (long long)value->window[i].high,
		       value->window[i].at_once ? ", at once" : "",
		       value->window[i].is_struck ? ", struck" : "");
}

static void check_given(const struct value *value, const char *after)
{
	if (value->given > 0)
		return;
	print_value(value);
	sim_fail("a value has not come back after %s", after);
}

static void user_wait_idle(struct user *user)
{
	tw_duration before = now_here();
	bool was_stopped = world.stop_ended;
	uint64_t commands = world.commands;

	/* It is fine after a stop: the check of the status is not for it. */
	caller_begin(&user->caller, "tw_wait_idle");
	if (tw_wait_idle(world.wheel) != TW_OK)
		sim_fail("tw_wait_idle does not answer TW_OK");
	caller_end(&user->caller);
	user_strike(user, now_here());
	for (unsigned i = 0; i < world.values; i++) {
		struct value *value = &world.value[i];

		/* A set that was under way at the stop may be accepted after the wait. */
		if (value->fate != ACCEPTED || value->fate_order > commands ||
		    (value->user != user->caller.number && !was_stopped))
			continue;
		/* Of a loose one the last window is not known to be in force. */
		if (was_stopped || value->is_undone ||
		    (!value->is_loose && (value_last_window(value)->at_once ||
					  tick_at(value_last_window(value)->high) <= before)))
			check_given(value, "an idle wait");
	}
	if (was_stopped)
		world.is_quiet = true;
}

/* Whether a command in force may have made it run by then. */
static bool may_have_run(const struct value *value, tw_duration now)
{
	if (value->is_loose)
		return true;
	for (unsigned i = 0; i < value->windows; i++)
		if (!value->window[i].is_struck &&
		    (value->window[i].at_once || value->window[i].low <= now))
			return true;
	return false;
}

static void check_contained(const struct value *value, enum tw_status status, tw_duration left,
			    tw_duration before, tw_duration after)
{
	const struct window *window = &value->window[value->windows - 1];

	if (status == TW_NOT_FOUND && value->given == 0 && !may_have_run(value, after) &&
	    value->drains == world.drains_begun) {
		print_value(value);
		sim_fail("a pending key is not found");
	}
	if (status == TW_OK && !window->at_once && !value->is_loose &&
	    (left > time_left(window->high, before) ||
	     (window->low > after && left < time_left(window->low, after))))
		sim_fail("a key is said to have %lld left", (long long)left);
}

static void user_ask(struct user *user, unsigned key)
{
	const struct value *value = user->current[key];
	bool was_given = value && value->given > 0;
	tw_duration before = now_here();
	tw_duration left = 0;
	char name[64];
	size_t size = key_name(user->caller.number, key, name);
	enum tw_status status = CALL(user, tw_contains(world.wheel, name, size, &left));

	if (status != TW_OK && status != TW_NOT_FOUND)
		return;
	if (status == TW_OK && (!value || was_given))
		sim_fail("a key is found that %s", value ? "has run" : "was not set");
	if (value)
		check_contained(value, status, left, before, now_here());
}

static void user_drain(struct user *user)
{
	struct value *drained[KEYS_A_USER];
	enum tw_status status;

	world.drains_begun++;
	memcpy(drained, user->current, sizeof(drained));
	status = CALL(user, tw_drain(world.wheel, drain_each, NULL));
	world.drains_ended++;
	for (unsigned i = 0; i < KEYS_A_USER && status == TW_OK; i++) {
		if (drained[i])
			drained[i]->is_undone = true;
		user->current[i] = NULL;
	}
}

static void user_stop(struct user *user)
{
	bool was_stopped = world.stop_ended;
	enum tw_status status;

	world.stop_begun = true;
	caller_begin(&user->caller, "tw_stop");
	status = tw_stop(world.wheel);
	caller_end(&user->caller);
	world.stop_ended = true;
	if (status != TW_CLOSED && (was_stopped || status != TW_OK))
		sim_fail("tw_stop: %s", tw_status_name(status));
}

static void user_advance(struct user *user)
{
	tw_duration by = draw_between(0, 3) * world.interval;
	tw_duration before = now_here();

	if (sim_draw(8) == 0)
		by = draw_between(0, 40) * world.interval + (tw_duration)sim_draw(world.interval);
	if (CALL(user, tw_advance(world.wheel, by)) == TW_OK && now_here() < before + by)
		sim_fail("the clock went on by less than it was moved");
}

/* ---- Timers by handle ---- */

/* The earliest that the resets under way ask for. */
static tw_duration timer_asked(const struct handle_timer *timer)
{
	tw_duration low = TW_FOREVER;

	for (unsigned i = 0; i <= TASKS_THREAD; i++)
		if (timer->asked[i] < low)
			low = timer->asked[i];
	return low;
}

/* The deadline that was in force, and did not begin a run, is not in force any more; where a run
 * may have begun by it, or resets ran side by side, either may be. */
static void timer_bring(tw_duration *low, tw_duration asked, bool is_alone, tw_duration now)
{
	if (asked < *low || (is_alone && *low > now))
		*low = asked;
}

/* A reset under way: of a thread, or of the timer's own run (TASKS_THREAD). */
struct reset_call {
	struct handle_timer *timer;
	unsigned thread;
	tw_duration asked;
	bool is_alone;
	uint64_t number;
};

static unsigned *reset_counter(const struct reset_call *call)
{
	return call->thread == TASKS_THREAD ? &call->timer->own_resets : &call->timer->resets;
}

/* Before the call: others may see what it did before it comes back. */
static struct reset_call reset_begin(struct handle_timer *timer, unsigned thread, tw_duration delay)
{
	struct reset_call call = {.timer = timer,
				  .thread = thread,
				  .asked = time_add(now_here(), delay),
				  .is_alone = timer_asked(timer) == TW_FOREVER,
				  .number = ++timer->resets_begun};

	++*reset_counter(&call);
	timer->asked[thread] = call.asked;
	return call;
}

/* One that fails changes nothing. */
static void reset_end(const struct reset_call *call, enum tw_status status)
{
	struct handle_timer *timer = call->timer;
	/* First: to ask for the time lets others run, which the rest must not. */
	tw_duration now = now_here();
	bool is_alone = call->is_alone && call->number == timer->resets_begun;

	timer->asked[call->thread] = TW_FOREVER;
	if (status != TW_OK) {
		--*reset_counter(call);
		return;
	}
	timer_bring(&timer->low, call->asked, is_alone, now);
	timer_bring(&timer->low_reset, call->asked, is_alone, now);
}

static void timer_reset(struct handle_timer *timer, unsigned thread, tw_duration delay)
{
	struct reset_call call = reset_begin(timer, thread, delay);
	enum tw_status status;

	if (thread == TASKS_THREAD)
		status = tw_timer_reset(world.wheel, timer->timer, delay);
	else
		status =
			CALL(&world.user[thread], tw_timer_reset(world.wheel, timer->timer, delay));
	reset_end(&call, status);
}

/* How often it has been reset, by whichever thread. */
static uint64_t timer_resets(const struct handle_timer *timer)
{
	return (uint64_t)timer->resets + timer->own_resets;
}

static void timer_check_run(struct handle_timer *timer)
{
	tw_duration asked = timer_asked(timer);
	tw_duration low = asked < timer->low ? asked : timer->low;

	if (timer->kind == ONE_SHOT && timer->runs > 1 + timer_resets(timer))
		sim_fail("run %llu of a one-shot timer, and it was reset %llu times",
			 (unsigned long long)timer->runs, (unsigned long long)timer_resets(timer));
	if (now_here() < low)
		sim_fail("run %llu of a timer is early: %lld, not before %lld",
			 (unsigned long long)timer->runs, (long long)now_here(), (long long)low);
	/* A reset before this line may have come after the run's beginning, and armed the next. */
	timer->low = timer->kind == ONE_SHOT ? TW_FOREVER : time_add(low, timer->period);
	if (timer->low_reset < timer->low)
		timer->low = timer->low_reset;
	timer->low_reset = TW_FOREVER;
}

static void timer_run(void *argument)
{
	struct handle_timer *timer = argument;
	unsigned resets = timer->own_resets;

	if (timer->is_running)
		sim_fail("two runs of a timer overlap");
	if (++timer->runs > timer->runs_most)
		sim_fail("a timer runs after it was stopped");
	timer_check_run(timer);
	timer->is_running = true;
	task_behave();
	if (timer->kind == ONE_SHOT && timer->timer.id != 0 && timer->own_resets < 3 &&
	    sim_draw(6) == 0)
		timer_reset(timer, TASKS_THREAD, draw_between(1, 3 * world.interval));
	timer->is_running = false;
	if (timer->kind == ONE_SHOT && timer->own_resets == resets)
		timer->given++;
}

static tw_duration timer_next(void *argument, tw_duration previous)
{
	struct handle_timer *timer = argument;

	if (timer->ends && timer->runs == 3) {
		timer->given++;
		return previous;
	}
	return previous + timer->period;
}

static void user_start_timer(struct user *user)
{
	struct handle_timer *timer;
	tw_duration delay = draw_between(-1, 6 * world.interval);
	tw_duration counted = delay <= 0 ? 0 : delay;
	tw_duration asked;
	enum tw_status status;

	if (world.timers == TIMERS_MOST)
		return;
	timer = &world.timer[world.timers++];
	*timer = (struct handle_timer){.kind = (enum timer_kind)DRAW_ONE_OF(0, 0, 0, 1, 2),
				       .runs_most = UINT64_MAX,
				       .low_reset = TW_FOREVER,
				       .drains = world.drains_ended,
				       .period = draw_between(world.interval, 4 * world.interval)};
	for (unsigned i = 0; i <= TASKS_THREAD; i++)
		timer->asked[i] = TW_FOREVER;
	/* One that outruns its wheel would have no end. */
	if (!world.is_manual && timer->period < TW_MILLISECOND / 4)
		timer->period = TW_MILLISECOND / 4;
	/* A timer that never ends would keep its place for ever. */
	if (world.options.max_pending > 0 && world.options.when_full == TW_WHEN_FULL_WAIT)
		timer->kind = ONE_SHOT;
	timer->low = time_add(now_here(), counted);
	user->caller.may_take_time = world.options.max_pending > 0;
	if (timer->kind == ONE_SHOT) {
		status = CALL(user,
			      tw_after_func(world.wheel, delay, timer_run, timer, &timer->timer));
	} else if (timer->kind == PERIODIC) {
		status = CALL(user, tw_every(world.wheel, delay, timer->period,
					     (enum tw_missed)sim_draw(3), timer_run, timer,
					     &timer->timer));
	} else {
		timer->low = time_add(now_here(), timer->period);
		timer->ends = !world.may_stop && !world.may_drain && sim_draw(2) == 0;
		status = CALL(user, tw_schedule_func(world.wheel, timer_next, timer_run, timer,
						     &timer->timer));
	}
	asked = now_here();
	timer->is_accepted = is_counted(status);
	if (!timer->is_accepted && (timer->runs > 0 || timer->given > 0))
		sim_fail("a timer that was refused has run, at %lld", (long long)asked);
}

/* After an answer that ends the timer: at most a run that has been claimed begins. */
static void timer_end_runs(struct handle_timer *timer, bool may_begin, bool was_running)
{
	uint64_t most = timer->runs + (may_begin && !was_running);

	if (most < timer->runs_most)
		timer->runs_most = most;
}

static void check_stop(struct handle_timer *timer, enum tw_status status, uint64_t runs)
{
	/* A call that has begun before the wheel's stop may find what that has released. */
	bool may_be_done = timer->stops > 1 || timer->drains != world.drains_begun || timer->ends ||
			   world.stop_begun;

	switch (status) {
	case TW_OK:
		if (timer->kind == ONE_SHOT && timer->runs > timer_resets(timer))
			sim_fail("a timer that has run is stopped with TW_OK");
		give_handle(timer, "a stop's");
		break;
	case TW_REARMED:
		if (timer->kind == ONE_SHOT &&
		    (timer->runs > timer_resets(timer) || timer_resets(timer) == 0))
			sim_fail("a one-shot timer that nobody reset is stopped with TW_REARMED");
		timer->given++;
		break;
	case TW_RUNNING:
		if (timer->kind != ONE_SHOT && timer->stops == 1)
			sim_fail("a periodic timer's last run, and nobody had stopped it");
		break;
	case TW_NOT_FOUND:
		if (!may_be_done && (timer->kind != ONE_SHOT || runs == 0))
			sim_fail("a timer that is pending or running is not found");
		break;
	default:
		break;
	}
}

static void user_stop_timer(struct user *user)
{
	struct handle_timer *timer;
	bool waits = sim_draw(3) == 0;
	enum tw_status status;

	if (world.timers == 0)
		return;
	timer = &world.timer[sim_draw(world.timers)];
	/* One that is being set is known to its setter alone. */
	if (!timer->is_accepted || timer->ends)
		return;
	timer->stops++;
	if (waits)
		status = CALL(user, tw_timer_stop_wait(world.wheel, timer->timer));
	else
		status = CALL(user, tw_timer_stop(world.wheel, timer->timer));
	if (status == TW_CLOSED)
		return;
	if (waits && timer->is_running)
		sim_fail("a timer runs after tw_timer_stop_wait");
	if (status == TW_OK && !waits && timer->is_running)
		sim_fail("a timer runs after a stop with TW_OK");
	check_stop(timer, waits && status == TW_OK && timer->runs > 0 ? TW_CLOSED : status,
		   timer->runs);
	if (waits && status == TW_OK && timer->runs > 0)
		timer->given++;
	timer_end_runs(timer, status == TW_RUNNING || status == TW_REARMED, timer->is_running);
}

static void user_reset_timer(struct user *user)
{
	struct handle_timer *timer;

	if (world.timers == 0)
		return;
	timer = &world.timer[sim_draw(world.timers)];
	if (!timer->is_accepted || timer->ends)
		return;
	timer_reset(timer, user->caller.number, draw_between(1, 5 * world.interval));
}

/* Some of the timers, each once, or now and then twice. */
static size_t choose_timers(struct handle_timer **chosen, bool may_repeat)
{
	size_t count = (size_t)draw_between(0, BATCH_MOST);
	size_t found = 0;

	for (size_t i = 0; i < count && world.timers > 0; i++) {
		struct handle_timer *timer = &world.timer[sim_draw(world.timers)];
		bool is_new = timer->is_accepted && !timer->ends;

		for (size_t k = 0; k < found && !may_repeat; k++)
			is_new &= chosen[k] != timer;
		if (is_new)
			chosen[found++] = timer;
	}
	return found;
}

static void check_count(const enum tw_status *statuses, size_t count, size_t told)
{
	size_t ok = 0;

	for (size_t i = 0; i < count; i++)
		ok += statuses[i] == TW_OK;
	if (ok != told)
		sim_fail("%zu timers are said to be done with, and %zu are", told, ok);
}

static void user_stop_timers(struct user *user)
{
	struct handle_timer *chosen[BATCH_MOST];
	struct tw_timer timers[BATCH_MOST];
	enum tw_status statuses[BATCH_MOST];
	size_t count = choose_timers(chosen, true);
	size_t stopped = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		timers[i] = chosen[i]->timer;
		chosen[i]->stops++;
	}
	(void)CALL(user, tw_timers_stop(world.wheel, timers, count, statuses, &stopped));
	check_count(statuses, count, stopped);
	for (size_t i = 0; i < count; i++) {
		struct handle_timer *timer = chosen[i];

		if (statuses[i] == TW_CLOSED)
			continue;
		if (statuses[i] == TW_OK && timer->is_running)
			sim_fail("a timer runs after a stop with TW_OK");
		check_stop(timer, statuses[i], timer->runs);
		timer_end_runs(timer, statuses[i] == TW_RUNNING || statuses[i] == TW_REARMED,
			       timer->is_running);
	}
}

static void user_reset_timers(struct user *user)
{
	struct handle_timer *chosen[BATCH_MOST];
	struct tw_reset resets[BATCH_MOST];
	struct reset_call calls[BATCH_MOST];
	enum tw_status statuses[BATCH_MOST];
	size_t count = choose_timers(chosen, false);
	size_t accepted = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		resets[i] =
			(struct tw_reset){chosen[i]->timer, draw_between(1, 5 * world.interval)};
		calls[i] = reset_begin(chosen[i], user->caller.number, resets[i].delay);
	}
	(void)CALL(user, tw_timers_reset(world.wheel, resets, count, statuses, &accepted));
	check_count(statuses, count, accepted);
	for (size_t i = 0; i < count; i++)
		reset_end(&calls[i], statuses[i]);
}

/* ---- Alarms ---- */

static void alarm_run(void *argument)
{
	struct alarm_timer *alarm = argument;

	if (alarm->is_running)
		sim_fail("two runs of an alarm overlap");
	if (++alarm->runs > alarm->runs_most)
		sim_fail("an alarm runs that is not set");
	if (now_here() < alarm->low)
		sim_fail("an alarm is early: %lld, not before %lld", (long long)now_here(),
			 (long long)alarm->low);
	alarm->is_set = false;
	alarm->is_running = true;
	task_behave();
	alarm->is_running = false;
}

static void user_use_alarm(struct user *user)
{
	struct alarm_timer *alarm = &user->alarms[sim_draw(ALARMS_A_USER)];
	tw_duration delay = draw_between(-1, 5 * world.interval);
	tw_duration low;
	uint64_t runs;
	enum tw_status status;

	if (!alarm->alarm)
		return;
	if (sim_draw(3) == 0) {
		status = CALL(user, tw_alarm_stop(alarm->alarm));
		if (status == TW_CLOSED)
			return;
		if (status == TW_OK && alarm->is_running)
			sim_fail("an alarm runs after a stop with TW_OK");
		alarm->is_set = false;
		alarm->runs_most = alarm->runs;
		if ((status == TW_RUNNING || status == TW_REARMED) && !alarm->is_running)
			alarm->runs_most++;
		alarm->low = TW_FOREVER;
		if (alarm->runs_most > alarm->runs)
			alarm->low = 0;
		return;
	}
	low = time_add(now_here(), delay < 0 ? 0 : delay);
	if (low < alarm->low)
		alarm->low = low;
	runs = alarm->runs;
	alarm->runs_most++;
	alarm->is_set = false;
	alarm->high = TW_FOREVER;
	if (CALL(user, tw_alarm_set(alarm->alarm, delay)) == TW_OK) {
		alarm->high = time_add(now_here(), delay > world.interval ? delay : world.interval);
		/* A run meanwhile may have been for this. */
		alarm->is_set = alarm->runs == runs;
	}
}

/* ---- Users ---- */

static void user_sleep(void)
{
	struct timespec time = {.tv_nsec = draw_between(1, 4 * TW_MILLISECOND)};

	sim_nanosleep(&time, NULL);
}

static tw_duration draw_delay(void)
{
	switch (sim_draw(8)) {
	case 0:
		return draw_between(1, world.interval);
	case 1:
		return world.interval * draw_between(1, 200);
	case 2:
		return world.options.max_pending > 0 ? world.interval : TW_FOREVER;
	default:
		return draw_between(1, 6 * world.interval);
	}
}

static void user_command(struct user *user)
{
	unsigned key = (unsigned)sim_draw(KEYS_A_USER);
	struct tw_stats stats;

	switch (sim_draw(40)) {
	case 0:
	case 1:
	case 2:
		user_move(user, key, draw_delay());
		break;
	case 3:
	case 4:
	case 5:
		user_remove(user, key);
		break;
	case 6:
		user_set_at(user, key,
			    now_here() + draw_between(-world.interval, 6 * world.interval));
		break;
	case 7:
		user_set_many(user);
		break;
	case 8:
		if (sim_draw(2) == 0)
			user_set_many(user);
		else if (sim_draw(2) == 0)
			user_move_many(user);
		else
			user_remove_many(user);
		break;
	case 9:
	case 10:
		if (sim_draw(3) == 0)
			(void)CALL(user, tw_trim(world.wheel));
		else
			user_flush(user);
		break;
	case 11:
		user_wait_idle(user);
		break;
	case 12:
	case 13:
		user_ask(user, key);
		break;
	case 14:
	case 15:
	case 16:
		user_start_timer(user);
		break;
	case 17:
	case 18:
	case 19:
		user_stop_timer(user);
		break;
	case 20:
	case 21:
		user_reset_timer(user);
		break;
	case 35:
		user_stop_timers(user);
		break;
	case 36:
		user_reset_timers(user);
		break;
	case 22:
	case 23:
	case 24:
	case 25:
		user_use_alarm(user);
		break;
	case 26:
	case 33:
	case 34:
		if (world.may_drain)
			user_drain(user);
		else
			user_set(user, key, draw_delay());
		break;
	case 27:
		if (world.may_stop && sim_draw(20) == 0)
			user_stop(user);
		break;
	case 28:
		if (tw_get_stats(world.wheel, &stats) != TW_OK)
			sim_fail("tw_get_stats");
		break;
	case 29:
	case 30:
	case 31:
		if (world.is_manual)
			user_advance(user);
		else
			user_sleep();
		break;
	case 32:
		if (world.options.drive == TW_DRIVE_CALLER)
			(void)CALL(user, tw_poll(world.wheel, NULL));
		break;
	default:
		user_set(user, key, draw_delay());
	}
}

static void *user_run(void *argument)
{
	struct user *user = argument;

	for (unsigned i = 0; i < world.calls; i++) {
		user_command(user);
		sim_pthread_testcancel();
	}
	return NULL;
}

/* Drives a wheel without an owner thread. */
static void *poller_run(void *argument)
{
	struct user *user = argument;

	while (!world.is_over) {
		tw_duration left = 0;
		struct pollfd polled = {.fd = -1, .events = POLLIN};
		struct timespec time;

		if (tw_poll(world.wheel, &left) != TW_OK)
			return NULL;
		if (world.polls_descriptor)
			polled.fd = tw_fd(world.wheel);
		/* Without one it sleeps as it likes. */
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
	(void)user;
	return NULL;
}

/* ---- The world ---- */

static void draw_world(void)
{
	struct tw_options *options = &world.options;

	memset(&world, 0, sizeof(world));
	world.interval = DRAW_ONE_OF(TW_MILLISECOND, 10 * TW_MILLISECOND, 700000, TW_MICROSECOND);
	world.slots = (size_t)DRAW_ONE_OF(1, 2, 4, 8, 64);
	options->release = release;
	options->layout = (enum tw_layout)sim_draw(2);
	options->clock = (enum tw_clock)DRAW_ONE_OF(TW_CLOCK_MONOTONIC, TW_CLOCK_MANUAL,
						    TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME);
	options->drive =
		(enum tw_drive)DRAW_ONE_OF(TW_DRIVE_THREAD, TW_DRIVE_THREAD, TW_DRIVE_CALLER);
	options->workers = (int)DRAW_ONE_OF(TW_WORKERS_INLINE, 1, 2, 2, 3);
	options->queue_capacity = (size_t)DRAW_ONE_OF(2, 4, 8, 64);
	options->when_full = (enum tw_when_full)sim_draw(2);
	options->delay_from = (enum tw_delay_from)sim_draw(2);
	world.is_manual = options->clock == TW_CLOCK_MANUAL;
	world.is_inline = options->workers == TW_WORKERS_INLINE;
	if (sim_draw(4) == 0)
		options->max_pending = (size_t)DRAW_ONE_OF(1, 4, 12);
	if (options->max_pending > 0 && (world.is_manual || options->drive == TW_DRIVE_CALLER))
		options->when_full = TW_WHEN_FULL_FAIL;
	if (!world.is_inline) {
		options->max_workers = options->workers + (int)DRAW_ONE_OF(0, 0, 1, 2);
		options->patience_for_worker = DRAW_ONE_OF(0, TW_MICROSECOND, TW_MILLISECOND);
		if (sim_draw(4) == 0)
			options->max_unfinished = (size_t)DRAW_ONE_OF(1, 2, 8);
	}
	world.polls_descriptor = sim_draw(2) == 0;
	world.may_stop = sim_draw(4) == 0;
	world.may_drain = sim_draw(3) == 0;
	world.users = (unsigned)draw_between(1, USERS_MOST);
	world.calls = (unsigned)DRAW_ONE_OF(5, 10, 20, 40, 80);
	world.tasks_left = 100;
	for (unsigned i = 0; i <= USERS_MOST; i++)
		world.user[i].caller.number = i;
}

static void make_alarms(struct user *user)
{
	for (int i = 0; i < ALARMS_A_USER; i++) {
		struct alarm_timer *alarm = &user->alarms[i];

		alarm->low = TW_FOREVER;
		(void)CALL(user, tw_alarm_create(world.wheel, alarm_run, alarm, &alarm->alarm));
	}
}

static void destroy_alarms(struct user *user)
{
	for (int i = 0; i < ALARMS_A_USER; i++) {
		struct alarm_timer *alarm = &user->alarms[i];

		caller_begin(&user->caller, "tw_alarm_destroy");
		tw_alarm_destroy(alarm->alarm);
		caller_end(&user->caller);
		alarm->runs_most = alarm->runs;
	}
}

static void check_end(void)
{
	for (unsigned i = 0; i < world.values; i++)
		if (world.value[i].fate == ACCEPTED)
			check_given(&world.value[i], "the end");
	for (unsigned i = 0; i < world.timers; i++) {
		struct handle_timer *timer = &world.timer[i];

		if (!timer->is_accepted)
			continue;
		if (timer->given == 0)
			sim_fail("the argument of timer %u, of kind %d, is nobody's at the end", i,
				 (int)timer->kind);
		/* A run does not know whether another thread's reset has taken the argument. */
		if (timer->given > 1 + (timer->kind == ONE_SHOT ? timer->resets : 0))
			sim_fail("the argument of timer %u, of kind %d, is %u parties'", i,
				 (int)timer->kind, timer->given);
	}
}

static void run_users(void)
{
	struct user *body = &world.user[TASKS_THREAD];
	pthread_t poller;
	bool has_poller =
		world.options.drive == TW_DRIVE_CALLER && (!world.is_manual || sim_draw(2) == 0);
	bool has_user[USERS_MOST] = {false};

	if (has_poller)
		has_poller = sim_pthread_create(&poller, NULL, poller_run, body) == 0;
	world.polls_descriptor &= has_poller;
	for (unsigned i = 0; i < world.users; i++) {
		make_alarms(&world.user[i]);
		has_user[i] = sim_pthread_create(&world.user[i].caller.thread, NULL, user_run,
						 &world.user[i]) == 0;
	}
	if (sim_draw(6) == 0 && has_user[0]) {
		user_sleep();
		(void)sim_pthread_cancel(world.user[0].caller.thread);
	}
	for (unsigned i = 0; i < world.users; i++)
		if (has_user[i])
			sim_pthread_join(world.user[i].caller.thread, NULL);
	if (sim_draw(2) == 0)
		user_wait_idle(&world.user[0]);
	world.is_over = true;
	if (has_poller)
		sim_pthread_join(poller, NULL);
}

void wheel_world_run(void *argument)
{
	struct user *body = &world.user[0];
	enum tw_status status;

	(void)argument;
	draw_world();
	/* A clock that runs ahead of the wheel would have no end. */
	sim_limit_time_step(world.interval / 200);
	sim_call_begin();
	status = tw_create(&world.wheel, world.interval, world.slots, execute, &world.options);
	sim_call_end();
	if (status != TW_OK) {
		const struct sim_plan *plan = sim_plan_here();

		if (plan->memory_failures == 0 && plan->thread_failures == 0)
			sim_fail("tw_create: %s", tw_status_name(status));
		sim_pthread_exit(NULL);
	}
	run_users();
	if (sim_draw(3) == 0)
		user_stop(body);
	if (sim_draw(3) == 0)
		user_wait_idle(body);
	for (unsigned i = 0; i < world.users; i++)
		destroy_alarms(&world.user[i]);
	world.stop_begun = true;
	caller_begin(&body->caller, "tw_destroy");
	tw_destroy(world.wheel);
	caller_end(&body->caller);
	check_end();
	sim_pthread_exit(NULL);
}

void wheel_world_describe(void)
{
	const struct tw_options *options = &world.options;

	printf("   %s, %s, %s, interval %lld, %zu slots, %d to %d workers, queue of %zu, %s, "
	       "delays from the %s, max_pending %zu, max_unfinished %zu, %u users of %u calls\n",
	       options->layout == TW_LAYOUT_LEVELS ? "levels" : "rounds",
	       world.is_manual                        ? "manual clock"
	       : options->clock == TW_CLOCK_MONOTONIC ? "monotonic clock"
						      : "boottime clock",
	       options->drive == TW_DRIVE_THREAD ? "owner thread"
	       : world.polls_descriptor          ? "driven by callers that poll the descriptor"
						 : "driven by callers",
	       (long long)world.interval, world.slots, options->workers, options->max_workers,
	       options->queue_capacity,
	       options->when_full == TW_WHEN_FULL_WAIT ? "waits when full" : "fails when full",
	       options->delay_from == TW_FROM_CALL ? "call" : "owner's taking",
	       options->max_pending, options->max_unfinished, world.users, world.calls);
}

/* ---- When all sleep ---- */

/* A call waits, and nothing but time can end that. */
static void check_calls(int64_t now, int64_t next)
{
	if (next - now < TW_MILLISECOND)
		return;
	for (unsigned i = 0; i <= USERS_MOST; i++)
		if (world.user[i].caller.call && !world.user[i].caller.may_take_time)
			sim_fail("%s waits, and all sleep for %lld ns", world.user[i].caller.call,
				 (long long)(next - now));
}

static void check_values(int64_t next)
{
	/* An owner that has been busy naps; reading the clock takes its time. */
	tw_duration slack = world.interval + TW_MILLISECOND;

	/* Where the pool takes one at a time, and the owner naps between them, a crowd lasts. */
	if (world.options.max_unfinished > 0)
		slack += 200 * TW_MILLISECOND;
	if (next < world.slept_until + slack)
		return;
	for (unsigned i = 0; i < world.values; i++) {
		struct value *value = &world.value[i];

		if (value->fate == ACCEPTED && value->given == 0 && !value->is_undone &&
		    !value->is_loose && time_add(value_last_window(value)->high, slack) < next)
			sim_fail("value %u of key %u/%u is due until %lld, and all sleep until "
				 "%lld",
				 i, value->user, value->key,
				 (long long)value_last_window(value)->high, (long long)next);
	}
	for (unsigned i = 0; i < world.users; i++)
		for (unsigned j = 0; j < ALARMS_A_USER; j++) {
			struct alarm_timer *alarm = &world.user[i].alarms[j];

			if (alarm->is_set && time_add(alarm->high, slack) < next)
				sim_fail("an alarm is due until %lld, and all sleep until %lld",
					 (long long)alarm->high, (long long)next);
		}
}

void wheel_world_idle(void *argument, int64_t now, int64_t next)
{
	(void)argument;
	if (!world.wheel || world.sleeping_tasks > 0 || next - now <= WORLD_NAP)
		return;
	check_calls(now, next);
	if (!world.is_manual && !world.stop_begun &&
	    (world.options.drive == TW_DRIVE_THREAD || world.polls_descriptor))
		check_values(next);
}
