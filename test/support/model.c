/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "model.h"

#include <stdlib.h>

struct model *model_create(uint32_t keys, tw_duration interval)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	model->keys = keys;
	model->interval = interval;
	model->tick = calloc(keys, sizeof(model->tick[0]));
	model->order = calloc(keys, sizeof(model->order[0]));
	model->deadline = calloc(keys, sizeof(model->deadline[0]));
	model->value = calloc(keys, sizeof(model->value[0]));
	for (uint32_t key = 0; key < keys; key++)
		model->tick[key] = MODEL_NOT_ARMED;
	return model;
}

void model_destroy(struct model *model)
{
	free(model->tick);
	free(model->order);
	free(model->deadline);
	free(model->value);
	free(model->commands);
	free(model->expected.events);
	free(model->overdue.events);
	free(model);
}

static void *grow(void *array, size_t *capacity, size_t count, size_t size)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity * 2 + 64;
	array = realloc(array, *capacity * size);
	if (array == NULL)
		abort();
	return array;
}

static const struct expected *queue_first(const struct expected_queue *queue)
{
	return queue->first < queue->count ? &queue->events[queue->first] : NULL;
}

static void queue_append(struct expected_queue *queue, const struct expected *expected)
{
	if (queue_first(queue) == NULL)
		queue->first = queue->count = 0;
	queue->events = grow(queue->events, &queue->capacity, queue->count, sizeof(*expected));
	queue->events[queue->count++] = *expected;
}

/* Takes the first; of its group, the one with this value. */
static struct expected queue_take(struct expected_queue *queue, uint32_t value)
{
	struct expected first = *queue_first(queue);

	for (size_t i = queue->first; i < queue->count; i++) {
		struct expected found = queue->events[i];

		if (found.group != first.group)
			break;
		if (found.value != value)
			continue;
		queue->events[i] = first;
		first = found;
		break;
	}
	queue->first++;
	return first;
}

/* The key's timer leaves the wheel. */
static void model_expect(struct model *model, struct expected_queue *queue, enum event_kind kind,
			 enum tw_reason reason, uint32_t key)
{
	tw_duration deadline = model->deadline[key];
	struct expected expected = {
		.kind = kind,
		.reason = reason,
		.key = key,
		.value = model->value[key],
		.deadline = deadline,
		.lateness = model->now > deadline ? model->now - deadline : 0,
		.group = model->groups,
	};

	queue_append(queue, &expected);
	model->tick[key] = MODEL_NOT_ARMED;
	model->armed--;
}

static void model_expect_one(struct model *model, enum event_kind kind, enum tw_reason reason,
			     uint32_t key)
{
	model->groups++;
	model_expect(model, &model->expected, kind, reason, key);
}

static void model_expect_all(struct model *model, enum event_kind kind, enum tw_reason reason)
{
	model->groups++;
	for (uint32_t key = 0; key < model->keys; key++)
		if (model->tick[key] != MODEL_NOT_ARMED)
			model_expect(model, &model->expected, kind, reason, key);
}

static tw_duration add_saturated(tw_duration now, tw_duration delay)
{
	return delay > INT64_MAX - now ? INT64_MAX : now + delay;
}

/* The first tick at or after that time. */
static int64_t tick_of(const struct model *model, tw_duration time)
{
	int64_t tick = time / model->interval;

	return time == TW_FOREVER ? MODEL_NEVER : tick + (tick * model->interval < time);
}

void model_give(struct model *model, const struct command *command)
{
	struct dated_command dated = {.command = *command};
	bool is_short = command->time < model->interval;
	bool is_set = command->kind == COMMAND_SET || command->kind == COMMAND_ADD;

	/* A delay under one interval counts as one, in a move as none. */
	dated.deadline =
		add_saturated(model->now, is_set && is_short ? model->interval : command->time);
	if (command->kind == COMMAND_SET_AT) {
		dated.deadline = command->time;
		dated.at_once = command->time <= model->now;
	}
	dated.tick = tick_of(model, dated.deadline);
	if (command->kind == COMMAND_MOVE && is_short)
		dated.at_once = true;
	model->commands = grow(model->commands, &model->command_capacity, model->command_count,
			       sizeof(dated));
	model->commands[model->command_count++] = dated;
}

static void model_arm(struct model *model, const struct dated_command *dated)
{
	uint32_t key = dated->command.key;

	model->deadline[key] = dated->deadline;
	model->tick[key] = dated->tick;
	model->order[key] = model->orders++;
	if (!dated->at_once)
		return;
	if (dated->command.in_task && dated->command.kind == COMMAND_SET_AT)
		model_expect(model, &model->overdue, EVENT_EXECUTE, 0, key);
	else
		model_expect_one(model, EVENT_EXECUTE, 0, key);
}

static void model_set(struct model *model, const struct dated_command *dated)
{
	uint32_t key = dated->command.key;

	if (model->tick[key] != MODEL_NOT_ARMED)
		model_expect_one(model, EVENT_RELEASE, TW_REPLACED, key);
	model->value[key] = dated->command.value;
	model->armed++;
	model_arm(model, dated);
}

static void model_apply(struct model *model, const struct dated_command *dated)
{
	uint32_t key = dated->command.key;
	bool armed = model->tick[key] != MODEL_NOT_ARMED;

	if (dated->command.found)
		*dated->command.found =
			(struct found){armed, model->deadline[key], model->value[key]};
	switch (dated->command.kind) {
	case COMMAND_SET:
	case COMMAND_SET_AT:
		model_set(model, dated);
		break;
	case COMMAND_MOVE:
		if (armed)
			model_arm(model, dated);
		break;
	case COMMAND_REMOVE:
		if (armed)
			model_expect_one(model, EVENT_RELEASE, TW_REMOVED, key);
		break;
	case COMMAND_DRAIN:
		model_expect_all(model, EVENT_DRAIN, 0);
		break;
	case COMMAND_CONTAINS:
		break;
	case COMMAND_ADD:
		if (!armed)
			model_set(model, dated);
		break;
	case COMMAND_TAKE:
		model->armed -= armed;
		model->tick[key] = MODEL_NOT_ARMED;
		break;
	}
}

void model_apply_all(struct model *model)
{
	for (size_t i = 0; i < model->command_count; i++)
		model_apply(model, &model->commands[i]);
	model->command_count = 0;
}

void model_stop(struct model *model)
{
	model_apply_all(model);
	model_expect_all(model, EVENT_RELEASE, TW_STOPPED);
}

void model_begin_advance(struct model *model, tw_duration target)
{
	model->target_tick = target / model->interval;
}

void model_end_advance(struct model *model, tw_duration target)
{
	model->now = target;
}

/* The armed timer that runs next; false: none ever will. */
static bool model_next(const struct model *model, uint32_t *next)
{
	int64_t tick = MODEL_NEVER;
	uint64_t order = 0;

	for (uint32_t key = 0; key < model->keys; key++) {
		int64_t due = model->tick[key];

		if (due == MODEL_NOT_ARMED || due > tick)
			continue;
		if (due < tick || model->order[key] < order) {
			tick = due;
			order = model->order[key];
			*next = key;
		}
	}
	return tick != MODEL_NEVER;
}

static bool model_next_due(const struct model *model, uint32_t *next)
{
	return model_next(model, next) && model->tick[*next] <= model->target_tick;
}

tw_duration model_next_time(const struct model *model)
{
	uint32_t next;

	if (!model_next(model, &next) || model->tick[next] > INT64_MAX / model->interval)
		return TW_FOREVER;
	return model->tick[next] * model->interval;
}

bool model_foretell(struct model *model, uint32_t met_value, struct expected *expected)
{
	const struct expected *overdue;
	uint32_t next;

	model_apply_all(model);
	overdue = model_overdue(model);
	if (overdue && overdue->value == met_value) {
		*expected = queue_take(&model->overdue, met_value);
		return true;
	}
	if (queue_first(&model->expected) == NULL) {
		if (!model_next_due(model, &next))
			return false;
		if (overdue && model->tick[next] * model->interval > model->now) {
			*expected = *overdue;
			return true;
		}
		model->now = model->tick[next] * model->interval;
		model_expect_one(model, EVENT_EXECUTE, 0, next);
	}
	*expected = queue_take(&model->expected, met_value);
	return true;
}

const struct expected *model_missing(struct model *model)
{
	uint32_t next;

	model_apply_all(model);
	if (queue_first(&model->expected) == NULL && model_next_due(model, &next))
		model_expect_one(model, EVENT_EXECUTE, 0, next);
	return queue_first(&model->expected);
}

const struct expected *model_overdue(const struct model *model)
{
	return queue_first(&model->overdue);
}
