/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

enum { MANY = 40 };

static const char *kind_name(const struct expected *event)
{
	static const char *const reasons[] = {"replaced", "removed", "stopped"};

	if (event->kind == EVENT_EXECUTE)
		return "executed";
	return event->kind == EVENT_DRAIN ? "drained" : reasons[event->reason];
}

static void describe(const struct expected *event, char *text, size_t size)
{
	if (event == NULL)
		snprintf(text, size, "nothing");
	else
		snprintf(text, size,
			 "%s key %" PRIu32 " value %" PRIu32 " deadline %" PRId64 " late %" PRId64,
			 kind_name(event), event->key, event->value, event->deadline,
			 event->lateness);
}

static void complain(struct trial *trial, const char *text, const struct expected *expected,
		     const struct expected *met)
{
	char expected_text[120];
	char met_text[120];

	if (trial->wrong[0] != '\0')
		return;
	describe(expected, expected_text, sizeof(expected_text));
	describe(met, met_text, sizeof(met_text));
	snprintf(trial->wrong, sizeof(trial->wrong),
		 "operation %" PRIu32 ", interval %" PRId64 ", now %" PRId64
		 ": %s\nexpected: %s\nmet:      %s",
		 trial->operation, trial->model->interval, trial->model->now, text, expected_text,
		 met_text);
}

static struct expected event_as_met(struct trial *trial, enum event_kind kind,
				    enum tw_reason reason, const struct tw_task *task)
{
	struct expected met = {
		.kind = kind,
		.reason = reason,
		.key = UINT32_MAX,
		.value = (uint32_t)(uintptr_t)task->value,
		.deadline = task->deadline,
		.lateness = task->lateness,
	};

	if (task->key_size != sizeof(met.key))
		complain(trial, "the key has another size", NULL, &met);
	else
		memcpy(&met.key, task->key, sizeof(met.key));
	return met;
}

static void give_commands_in_task(struct trial *trial);

static void meet(struct trial *trial, enum event_kind kind, enum tw_reason reason,
		 const struct tw_task *task)
{
	struct expected met = event_as_met(trial, kind, reason, task);
	struct expected expected;

	if (trial->wrong[0] != '\0')
		return;
	if (!model_foretell(trial->model, met.value, &expected))
		complain(trial, "an event too many", NULL, &met);
	else if (met.kind != expected.kind || met.reason != expected.reason ||
		 met.key != expected.key || met.value != expected.value)
		complain(trial, "another event", &expected, &met);
	else if (met.deadline != expected.deadline || met.lateness != expected.lateness)
		complain(trial, "another time", &expected, &met);
	else if (tw_now(trial->wheel) != trial->model->now)
		complain(trial, "tw_now tells another time", &expected, &met);
	else
		give_commands_in_task(trial);
}

static void meet_execute(void *trial, const struct tw_task *task)
{
	meet(trial, EVENT_EXECUTE, 0, task);
}

static void meet_release(void *trial, const struct tw_task *task, enum tw_reason reason)
{
	meet(trial, EVENT_RELEASE, reason, task);
}

static void meet_drain(void *trial, const struct tw_task *task)
{
	meet(trial, EVENT_DRAIN, 0, task);
}

static int64_t random_ticks(struct trial *trial)
{
	struct random *random = &trial->random;
	int64_t slots = (int64_t)trial->setting->slots;

	switch (random_below(random, 8)) {
	case 0:
		return random_between(random, 1, 3);
	case 1:
		return slots * random_between(random, 1, 3) + random_between(random, -1, 1);
	case 2:
		return slots * slots % 100000 + random_between(random, -2, 2);
	case 3:
		return slots * slots * slots % 100000 + random_between(random, -2, 2);
	case 4:
		return random_between(random, 1, 100000);
	case 5:
		return random_between(random, 1, 5000);
	default:
		return random_between(random, 1, 100);
	}
}

/* At least a nanosecond. */
static tw_duration random_delay(struct trial *trial)
{
	struct random *random = &trial->random;
	tw_duration interval = trial->model->interval;
	tw_duration delay;

	if (random_once_in(random, 300))
		return TW_FOREVER - random_between(random, 0, 1);
	if (random_once_in(random, 20))
		return random_between(random, 1, interval);
	delay = random_ticks(trial) * interval;
	if (random_once_in(random, 2))
		delay += random_between(random, 1 - interval, interval - 1);
	return delay > 0 ? delay : 1;
}

static tw_duration random_deadline(struct trial *trial)
{
	tw_duration now = trial->model->now;
	tw_duration delay = random_delay(trial);

	if (random_once_in(&trial->random, 12))
		return now - random_between(&trial->random, 0, trial->model->interval * 5);
	return delay > TW_FOREVER - now ? TW_FOREVER : now + delay;
}

static enum command_kind random_kind(struct trial *trial)
{
	uint64_t roll = random_below(&trial->random, 3000);

	if (roll == 0)
		return COMMAND_DRAIN;
	if (roll < 1350)
		return COMMAND_SET;
	if (roll < 1650)
		return COMMAND_SET_AT;
	return roll < 2640 ? COMMAND_MOVE : COMMAND_REMOVE;
}

static enum tw_status give_to_wheel(struct trial *trial, const struct command *command)
{
	struct tw_wheel *wheel = trial->wheel;
	const void *key = &command->key;
	size_t size = sizeof(command->key);
	void *value = VALUE(command->value);

	switch (command->kind) {
	case COMMAND_SET:
		return tw_set_timer(wheel, key, size, value, command->time);
	case COMMAND_SET_AT:
		return tw_set_timer_at(wheel, key, size, value, command->time);
	case COMMAND_MOVE:
		return tw_move_timer(wheel, key, size, command->time);
	case COMMAND_REMOVE:
		return tw_remove_timer(wheel, key, size);
	case COMMAND_DRAIN:
		return tw_drain(wheel, meet_drain, trial);
	case COMMAND_CONTAINS:
	case COMMAND_ADD:
	case COMMAND_TAKE:
		break;
	}
	return TW_INVALID;
}

static uint32_t random_key(struct trial *trial)
{
	return (uint32_t)random_below(&trial->random, trial->setting->keys);
}

static struct command make_command(struct trial *trial, enum command_kind kind)
{
	return (struct command){
		.kind = kind,
		.key = random_key(trial),
		.value = ++trial->values,
		.time = kind == COMMAND_SET_AT ? random_deadline(trial) : random_delay(trial),
		.in_task = trial->in_task,
	};
}

static void give_command(struct trial *trial)
{
	struct command command = make_command(trial, random_kind(trial));

	model_give(trial->model, &command);
	if (give_to_wheel(trial, &command) != TW_OK)
		complain(trial, "a command was refused", NULL, NULL);
}

static enum tw_status give_many_to_wheel(struct trial *trial, const struct command *commands,
					 size_t count, size_t *accepted)
{
	struct tw_set sets[MANY];
	struct tw_move moves[MANY];
	struct tw_key keys[MANY];

	for (size_t i = 0; i < count; i++) {
		const uint32_t *key = &commands[i].key;
		tw_duration time = commands[i].time;

		sets[i] = (struct tw_set){key, sizeof(*key), VALUE(commands[i].value), time};
		moves[i] = (struct tw_move){key, sizeof(*key), time};
		keys[i] = (struct tw_key){key, sizeof(*key)};
	}
	if (commands->kind == COMMAND_SET)
		return tw_set_timers(trial->wheel, sets, count, accepted);
	if (commands->kind == COMMAND_MOVE)
		return tw_move_timers(trial->wheel, moves, count, accepted);
	return tw_remove_timers(trial->wheel, keys, count, accepted);
}

/* Commands of one kind, in one call. */
static void give_many_commands(struct trial *trial)
{
	static const enum command_kind kinds[] = {COMMAND_SET, COMMAND_MOVE, COMMAND_REMOVE};
	enum command_kind kind = kinds[random_below(&trial->random, 3)];
	size_t count =
		(size_t)random_between(&trial->random, 1, kind == COMMAND_REMOVE ? MANY / 4 : MANY);
	struct command commands[MANY];
	size_t accepted = 0;

	for (size_t i = 0; i < count; i++) {
		commands[i] = make_command(trial, kind);
		model_give(trial->model, &commands[i]);
	}
	if (give_many_to_wheel(trial, commands, count, &accepted) != TW_OK || accepted != count)
		complain(trial, "a command of many was refused", NULL, NULL);
}

static void check_remaining(struct trial *trial, tw_duration deadline, tw_duration remaining)
{
	tw_duration now = trial->model->now;
	tw_duration expected = 0;

	if (deadline == TW_FOREVER)
		expected = TW_FOREVER;
	else if (deadline > now)
		expected = deadline - now;
	if (remaining != expected)
		complain(trial, "tw_contains tells another remaining time", NULL, NULL);
}

/* A command that has an answer, which is compared. */
static void ask_for_key(struct trial *trial)
{
	static const enum command_kind kinds[] = {COMMAND_CONTAINS, COMMAND_ADD, COMMAND_TAKE};
	struct command command = make_command(trial, kinds[random_below(&trial->random, 3)]);
	enum tw_status if_there = command.kind == COMMAND_ADD ? TW_EXISTS : TW_OK;
	enum tw_status if_not = command.kind == COMMAND_ADD ? TW_OK : TW_NOT_FOUND;
	tw_duration remaining = -1;
	void *value = trial;
	struct found found;
	enum tw_status status;

	command.found = &found;
	model_give(trial->model, &command);
	if (command.kind == COMMAND_CONTAINS)
		status = tw_contains(trial->wheel, &command.key, sizeof(command.key), &remaining);
	else if (command.kind == COMMAND_ADD)
		status = tw_add_timer(trial->wheel, &command.key, sizeof(command.key),
				      VALUE(command.value), command.time);
	else
		status = tw_take_timer(trial->wheel, &command.key, sizeof(command.key), &value);
	/* It and the commands before it have been applied. */
	model_apply_all(trial->model);
	if (status != (found.armed ? if_there : if_not))
		complain(trial, "a call answers wrongly about a key", NULL, NULL);
	else if (found.armed && command.kind == COMMAND_CONTAINS)
		check_remaining(trial, found.deadline, remaining);
	else if (found.armed && command.kind == COMMAND_TAKE && value != VALUE(found.value))
		complain(trial, "tw_take_timer gives another value", NULL, NULL);
}

static void give_commands_in_task(struct trial *trial)
{
	/* With no more numbers it would be the same again and again, without an end. */
	if (trial->stopped || trial->setting->queue_capacity != 0 ||
	    random_is_spent(&trial->random) || !random_once_in(&trial->random, 8))
		return;
	trial->in_task = true;
	for (uint64_t i = random_below(&trial->random, 3); i < 3; i++)
		give_command(trial);
	if (random_once_in(&trial->random, 30))
		give_many_commands(trial);
	if (random_once_in(&trial->random, 10))
		ask_for_key(trial);
	trial->in_task = false;
}

/* After such a call nothing may be missing that was due. */
static void check_after_drive(struct trial *trial, tw_duration now)
{
	struct model *model = trial->model;
	const struct expected *missing = model_missing(model);

	if (missing != NULL)
		complain(trial, "an event is missing", missing, NULL);
	model_end_advance(model, now);
	if (tw_now(trial->wheel) != now)
		complain(trial, "tw_now is wrong after the call", NULL, NULL);
	if (tw_pending(trial->wheel) != model->armed)
		complain(trial, "tw_pending is wrong", NULL, NULL);
}

static tw_duration random_advance(struct trial *trial)
{
	struct random *random = &trial->random;
	tw_duration interval = trial->model->interval;

	if (random_once_in(random, 50))
		return interval * random_between(random, 1, trial->setting->longest_advance);
	switch (random_below(random, 9)) {
	case 0:
		return 0;
	case 1:
	case 2:
		return random_between(random, 1, interval);
	case 3:
	case 4:
		return interval * random_between(random, 2, 10);
	case 5:
		return random_between(random, 1, interval * 50);
	default:
		return interval;
	}
}

static void advance_wheel(struct trial *trial, tw_duration by)
{
	struct model *model = trial->model;
	tw_duration target = model->now + by;

	model_begin_advance(model, target);
	if (tw_advance(trial->wheel, by) != TW_OK)
		complain(trial, "tw_advance failed", NULL, NULL);
	check_after_drive(trial, target);
	if (model_overdue(model) != NULL)
		complain(trial, "a timer of the past did not run", model_overdue(model), NULL);
}

struct visits {
	struct trial *trial;
	uint32_t count;
	bool *was_told; /* by key */
};

static int compare_with_model(void *context, const struct tw_pending_timer *timer)
{
	struct visits *visits = context;
	struct trial *trial = visits->trial;
	const struct model *model = trial->model;
	uint32_t key = UINT32_MAX;

	visits->count++;
	if (timer->key_size == sizeof(key))
		memcpy(&key, timer->key, sizeof(key));
	if (key >= model->keys || visits->was_told[key])
		complain(trial, "tw_each tells a key that is none, or twice", NULL, NULL);
	else if (model->tick[key] == MODEL_NOT_ARMED)
		complain(trial, "tw_each tells a timer that is not armed", NULL, NULL);
	else if (timer->value != VALUE(model->value[key]))
		complain(trial, "tw_each tells another value", NULL, NULL);
	else if (timer->deadline != model->deadline[key])
		complain(trial, "tw_each tells another deadline", NULL, NULL);
	if (key < model->keys)
		visits->was_told[key] = true;
	return trial->wrong[0] == '\0';
}

static void walk_trial(struct trial *trial)
{
	struct model *model = trial->model;
	struct visits visits = {.trial = trial};

	advance_wheel(trial, 0);
	visits.was_told = calloc(model->keys, sizeof(bool));
	assert_non_null(visits.was_told);
	if (tw_each(trial->wheel, compare_with_model, &visits) != TW_OK)
		complain(trial, "tw_each failed", NULL, NULL);
	if (visits.count != model->armed)
		complain(trial, "tw_each tells too few or too many", NULL, NULL);
	free(visits.was_told);
	check_after_drive(trial, model->now);
}

static void poll_trial(struct trial *trial)
{
	struct model *model = trial->model;
	tw_duration until_next = -1;

	if (tw_poll(trial->wheel, &until_next) != TW_OK)
		complain(trial, "tw_poll failed", NULL, NULL);
	check_after_drive(trial, model->now);
	if (model_overdue(model) != NULL) {
		if (until_next != 0)
			complain(trial, "tw_poll forgets what is due", model_overdue(model), NULL);
	} else if (until_next <= 0 || until_next > model_next_time(model) - model->now) {
		if (until_next != TW_FOREVER || model_next_time(model) != TW_FOREVER)
			complain(trial, "tw_poll tells another time", NULL, NULL);
	}
}

static void expect_status(struct trial *trial, enum tw_status status, enum tw_status expected)
{
	if (status != expected)
		complain(trial, "a call that must be refused is answered otherwise", NULL, NULL);
}

/* Calls with bad arguments: refused, and nothing comes of them. */
static void give_nonsense(struct trial *trial)
{
	static const unsigned char key[TW_KEY_SIZE_MAX + 1];
	static const size_t sizes[] = {0, sizeof(key)};
	struct tw_wheel *wheel = trial->wheel;
	size_t size = sizes[random_below(&trial->random, 2)];
	tw_duration delay = -random_between(&trial->random, 0, 3);
	void *value;

	expect_status(trial, tw_set_timer(wheel, key, size, NULL, 1), TW_INVALID);
	expect_status(trial, tw_set_timer(wheel, NULL, 1, NULL, 1), TW_INVALID);
	expect_status(trial, tw_set_timer(wheel, key, 1, NULL, delay), TW_INVALID);
	expect_status(trial, tw_set_timer_at(wheel, key, size, NULL, 1), TW_INVALID);
	expect_status(trial, tw_add_timer(wheel, key, 1, NULL, delay), TW_INVALID);
	expect_status(trial, tw_move_timer(wheel, key, 1, delay), TW_INVALID);
	expect_status(trial, tw_move_timer(wheel, key, size, 1), TW_INVALID);
	expect_status(trial, tw_remove_timer(wheel, key, size), TW_INVALID);
	expect_status(trial, tw_contains(wheel, key, size, NULL), TW_INVALID);
	expect_status(trial, tw_take_timer(wheel, key, size, &value), TW_INVALID);
	expect_status(trial, tw_drain(wheel, NULL, NULL), TW_INVALID);
	expect_status(trial, tw_each(wheel, NULL, NULL), TW_INVALID);
	expect_status(trial, tw_advance(wheel, delay - 1), TW_INVALID);
}

static void ask_outside(struct trial *trial)
{
	ask_for_key(trial);
	check_after_drive(trial, trial->model->now);
}

void trial_operate(struct trial *trial)
{
	uint64_t roll = random_below(&trial->random, 100);

	trial->operation++;
	if (random_once_in(&trial->random, 250))
		random_once_in(&trial->random, 2) ? walk_trial(trial) : give_nonsense(trial);
	else if (roll < 69)
		give_command(trial);
	else if (roll < 70)
		give_many_commands(trial);
	else if (roll < 95)
		advance_wheel(trial, random_advance(trial));
	else if (roll < 98)
		ask_outside(trial);
	else
		poll_trial(trial);
}

static void check_closed(struct trial *trial)
{
	struct tw_wheel *wheel = trial->wheel;
	void *value;

	expect_status(trial, tw_set_timer(wheel, "k", 1, NULL, 1), TW_CLOSED);
	expect_status(trial, tw_set_timer_at(wheel, "k", 1, NULL, 1), TW_CLOSED);
	expect_status(trial, tw_add_timer(wheel, "k", 1, NULL, 1), TW_CLOSED);
	expect_status(trial, tw_move_timer(wheel, "k", 1, 1), TW_CLOSED);
	expect_status(trial, tw_remove_timer(wheel, "k", 1), TW_CLOSED);
	expect_status(trial, tw_take_timer(wheel, "k", 1, &value), TW_CLOSED);
	expect_status(trial, tw_contains(wheel, "k", 1, NULL), TW_CLOSED);
	expect_status(trial, tw_drain(wheel, meet_drain, trial), TW_CLOSED);
	expect_status(trial, tw_advance(wheel, 1), TW_CLOSED);
	expect_status(trial, tw_flush(wheel), TW_CLOSED);
	expect_status(trial, tw_stop(wheel), TW_CLOSED);
}

void trial_stop(struct trial *trial)
{
	advance_wheel(trial, 0);
	model_stop(trial->model);
	trial->stopped = true;
	if (tw_stop(trial->wheel) != TW_OK || tw_wait_idle(trial->wheel) != TW_OK)
		complain(trial, "tw_stop failed", NULL, NULL);
	check_after_drive(trial, trial->model->now);
	check_closed(trial);
}

void trial_begin(struct trial *trial, const struct trial_setting *setting,
		 enum tw_delay_from delay_from, struct random random)
{
	static const tw_duration intervals[] = {1000, 7, 1000003};
	struct tw_options options = {.context = trial,
				     .release = meet_release,
				     .layout = setting->layout,
				     .clock = TW_CLOCK_MANUAL,
				     .drive = TW_DRIVE_CALLER,
				     .workers = TW_WORKERS_INLINE,
				     .queue_capacity = setting->queue_capacity,
				     .delay_from = delay_from};
	tw_duration interval;

	*trial = (struct trial){.setting = setting, .random = random};
	interval = intervals[random_below(&trial->random, 3)];
	trial->model = model_create(setting->keys, interval);
	assert_status(tw_create(&trial->wheel, interval, setting->slots, meet_execute, &options),
		      TW_OK);
}

void trial_end(struct trial *trial)
{
	tw_destroy(trial->wheel);
	model_destroy(trial->model);
}
