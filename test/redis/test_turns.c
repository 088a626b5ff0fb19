/* SPDX-License-Identifier: MIT */
/*
 * The turns of groups are compared with a model: random histories add, move, remove, claim, fail
 * and end tasks of some groups by weights, some of them paused or with limits, for which claims
 * have random permits. The scripts read the test's clock in place of the server's, so their results
 * are exact to the microsecond. The model takes one task after the other, as deficit round robin is
 * defined.
 *
 * HISTORIES in the environment is the number of histories.
 */
#include "support/fixture.h"

#include "support/scripts.h"

enum { HISTORIES = 1000, STEPS = 60, KEYS = 12, GROUPS = 5, LIMIT_MOST = 9, ADD_MOST = 3 };
/* This lease does not end by itself. */
static const int64_t lease_ms = 86400000;
static const char *const groups[GROUPS] = {"", "a", "b", "b/x", "d d"};

enum state { ABSENT, WAITING, LEASED };

struct task {
	enum state state;
	int group;
	int64_t due;
	int64_t latest; /* the latest due time, or 0 */
	unsigned attempts;
	int64_t token;
};

/* A group, or the namespace itself, which is the first. */
struct node {
	int weight;
	bool is_limited;
	bool is_paused;
	bool has_turn;
	int64_t turn; /* microseconds */
	/* These are of the present claim. */
	int spent; /* tasks in the present turn */
	int round; /* the round of its last turn, or 0 */
	bool had_one_before;
	int allowed;
	int lacks;    /* tasks that lacked permits, or 0 */
	int64_t held; /* the millisecond until which it is held back, or 0 */
};

struct model {
	redisContext *context;
	struct random random;
	int64_t now_us;
	int64_t token;
	struct task tasks[KEYS];
	struct node nodes[GROUPS];
	/* The nodes that have a turn in the present claim. */
	int order[GROUPS];
	int count;
	int at;
	int round;
	int cut; /* the node whose turn the last claim interrupted, or -1 */
	int cut_spent;
	bool uses_groups;
};

/* ---- The scripts, by the test's clock ---- */

static redisReply *run(struct model *model, const struct script *script, int count,
		       const char *const *arguments)
{
	return script_run(model->context, script, count, arguments);
}

static void clock_set(struct model *model, int64_t now_us)
{
	model->now_us = now_us;
	script_clock_set(model->context, now_us);
}

/* ---- The model ---- */

static int64_t now_ms(const struct model *model)
{
	return model->now_us / 1000;
}

static void key_write(char key[8], int index)
{
	snprintf(key, 8, "k%02d", index);
}

/* Returns the group's waiting task with the lowest due time, then key, or -1. */
static int first_task(const struct model *model, int group)
{
	int first = -1;

	for (int i = 0; i < KEYS; i++) {
		const struct task *task = &model->tasks[i];

		if (task->state == WAITING && task->group == group &&
		    (first < 0 || task->due < model->tasks[first].due))
			first = i;
	}
	return first;
}

static bool has_due(const struct model *model, int group)
{
	int first = first_task(model, group);

	return first >= 0 && model->tasks[first].due <= now_ms(model);
}

static void model_put(struct model *model, int index, int64_t due)
{
	struct task *task = &model->tasks[index];
	struct node *node = &model->nodes[task->group];

	task->state = WAITING;
	task->due = due;
	if (task->group == 0)
		return;
	if (!node->has_turn || node->turn > due * 1000)
		node->turn = due * 1000;
	node->has_turn = model->nodes[0].has_turn = model->uses_groups = true;
}

/* Orders the nodes that have a turn by now. */
static void rotation_begin(struct model *model)
{
	model->count = model->at = 0;
	model->round = 1;
	for (int i = 0; i < GROUPS; i++) {
		struct node *node = &model->nodes[i];
		int at = model->count;

		node->spent = node->round = 0;
		node->had_one_before = false;
		if (!node->has_turn || node->turn > model->now_us || (i == 0 && !has_due(model, 0)))
			continue;
		if (i == model->cut)
			node->spent = model->cut_spent;
		for (; at > 0; at--) {
			int other = model->order[at - 1];

			if (model->nodes[other].turn < node->turn ||
			    (model->nodes[other].turn == node->turn &&
			     strcmp(groups[other], groups[i]) < 0))
				break;
			model->order[at] = other;
		}
		model->order[at] = i;
		model->count++;
	}
}

/* Holds the node back if it is paused or may take no more. Returns whether it does. */
static bool node_hold(struct model *model, int index)
{
	struct node *node = &model->nodes[index];

	if (!node->is_paused && node->allowed)
		return false;
	node->held = now_ms(model) + 10000;
	for (int i = 0; i < KEYS && !node->is_paused; i++)
		node->lacks += model->tasks[i].state == WAITING && model->tasks[i].group == index &&
			       model->tasks[i].due <= now_ms(model);
	return true;
}

/* Takes the next task by turns. Returns it, or -1 if nothing is due. */
static int rotation_take(struct model *model)
{
	for (;;) {
		struct node *node;
		int index;
		int task = -1;
		bool is_held;

		if (model->at >= model->count) {
			if (model->count == 0)
				return -1;
			model->at = 0;
			model->round++;
		}
		index = model->order[model->at];
		node = &model->nodes[index];
		node->had_one_before |= node->round > 0 && node->round < model->round;
		node->round = model->round;
		is_held = has_due(model, index) && node_hold(model, index);
		if (!is_held && has_due(model, index)) {
			task = first_task(model, index);
			model->tasks[task].state = LEASED;
			node->spent++;
			node->allowed -= node->is_limited;
			is_held = has_due(model, index) && node_hold(model, index);
		}
		if (is_held || !has_due(model, index)) {
			node->spent = 0;
			memmove(&model->order[model->at], &model->order[model->at + 1],
				(size_t)(--model->count - model->at) * sizeof(model->order[0]));
		} else if (node->spent == node->weight) {
			node->spent = 0;
			model->at++;
		}
		if (task >= 0)
			return task;
	}
}

/* Returns how many nodes have their next turns after this one's. */
static int rotation_behind(const struct model *model, int index)
{
	for (int i = 0; i < model->count; i++)
		if (model->order[i] == index)
			return (model->at + model->count - i - 1) % model->count;
	return 0;
}

/* Notes the next turn of a node that took part in this claim. */
static void node_rest(struct model *model, int index)
{
	struct node *node = &model->nodes[index];
	int first = first_task(model, index);

	if (node->held) {
		node->turn = node->held * 1000;
		return;
	}
	if (node->spent > 0 && !node->had_one_before)
		return;
	if (has_due(model, index) || index == 0) {
		node->turn = model->now_us - rotation_behind(model, index);
		return;
	}
	node->has_turn = first >= 0;
	if (node->has_turn)
		node->turn = model->tasks[first].due * 1000;
}

static void rotation_end(struct model *model)
{
	int cut = -1;
	bool cut_has_come = false;

	for (int i = 0; i < GROUPS; i++) {
		struct node *node = &model->nodes[i];

		if (node->round == 0)
			continue;
		cut_has_come |= i == model->cut;
		if (node->spent > 0) {
			cut = i;
			model->cut_spent = node->spent;
		}
		node_rest(model, i);
	}
	if (cut >= 0 || cut_has_come)
		model->cut = cut;
}

/* Takes up to `most` tasks, one after the other. Returns how many. */
static int model_claim(struct model *model, int most, int taken[])
{
	int count = 0;

	if (model->uses_groups)
		rotation_begin(model);
	while (count < most) {
		int task = model->uses_groups  ? rotation_take(model)
			   : has_due(model, 0) ? first_task(model, 0)
					       : -1;

		if (task < 0)
			break;
		model->tasks[task].state = LEASED;
		model->tasks[task].attempts++;
		model->tasks[task].token = model->token;
		taken[count++] = task;
	}
	if (model->uses_groups)
		rotation_end(model);
	return count;
}

/* ---- Steps of a history ---- */

/* Returns the latest due time of a task that is added in place of another. */
static int64_t latest_of(const struct model *model, const struct task *replaced, int64_t latest_us)
{
	if (latest_us == 0)
		return 0;
	return replaced->state == WAITING && replaced->attempts == 0 && replaced->latest
		       ? replaced->latest
		       : (model->now_us + latest_us + 999) / 1000;
}

static void step_add(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	int group = (int)random_below(&model->random, GROUPS);
	int64_t due = now_ms(model) + random_between(&model->random, 0, 3) * 5;
	int64_t chosen_us = random_between(&model->random, -20000, 20000);
	int64_t latest_us = chosen_us > 0 ? chosen_us : 0;
	int64_t latest = latest_of(model, &model->tasks[index], latest_us);
	char key[8];
	char at[24];
	char record[64];
	char limit[24];
	const char *words[6] = {"any", key, at, "0", record, limit};
	redisReply *reply;

	/* add.lua leaves the place of a task that it replaces in the queue, for a claim to find. */
	if (group == 0 && !latest_us && model->tasks[index].state == WAITING &&
	    model->tasks[index].group > 0)
		return;
	key_write(key, index);
	snprintf(at, sizeof(at), "%" PRId64, due);
	snprintf(limit, sizeof(limit), "%" PRId64, latest_us);
	if (group > 0)
		snprintf(record, sizeof(record), "9999 %zu%s\n{\"group\":\"%s\"}",
			 strlen(groups[group]) + strlen("{\"group\":\"\"}"), latest_us ? " 0" : "",
			 groups[group]);
	else
		strcpy(record, latest_us ? "9999 0 0\n" : "9999 0\n");
	if (latest && latest < due)
		due = latest > now_ms(model) ? latest : now_ms(model);
	reply = latest_us   ? run(model, &script_latest, 6, words)
		: group > 0 ? run(model, &script_group_add, 5, words)
			    : run(model, &script_add, 5, words);
	assert_int_equal((latest_us ? reply : reply->element[0])->integer, due);
	freeReplyObject(reply);
	model->tasks[index] = (struct task){.group = group, .latest = latest};
	model_put(model, index, due);
}

/* Adds tasks of groups by one call. */
static void step_add_many(struct model *model)
{
	const char *words[5 * ADD_MOST];
	char key[ADD_MOST][8];
	char at[ADD_MOST][24];
	char record[ADD_MOST][64];
	int first = (int)random_below(&model->random, KEYS);
	int count = (int)random_between(&model->random, 2, ADD_MOST);
	redisReply *reply;

	for (int i = 0; i < count; i++) {
		int index = (first + i) % KEYS;
		int group = (int)random_between(&model->random, 1, GROUPS - 1);
		int64_t due = now_ms(model) + random_between(&model->random, 0, 3) * 5;
		const char *task[5] = {"any", key[i], at[i], "0", record[i]};

		key_write(key[i], index);
		snprintf(at[i], sizeof(at[i]), "%" PRId64, due);
		snprintf(record[i], sizeof(record[i]), "9999 %zu\n{\"group\":\"%s\"}",
			 strlen(groups[group]) + strlen("{\"group\":\"\"}"), groups[group]);
		memcpy(&words[5 * i], task, sizeof(task));
		model->tasks[index] = (struct task){.group = group, .due = due};
	}
	reply = run(model, &script_group_add, 5 * count, words);
	for (int i = 0; i < count; i++) {
		int index = (first + i) % KEYS;

		assert_int_equal(reply->element[i]->integer, model->tasks[index].due);
		model_put(model, index, model->tasks[index].due);
	}
	freeReplyObject(reply);
}

static void step_move(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	struct task *task = &model->tasks[index];
	int64_t due = now_ms(model) + random_between(&model->random, 0, 3) * 5;
	char key[8];
	char at[24];
	const char *words[3] = {key, at, "0"};
	redisReply *reply;

	key_write(key, index);
	snprintf(at, sizeof(at), "%" PRId64, due);
	reply = run(model, &script_move, 3, words);
	assert_int_equal(reply->integer, task->state == ABSENT   ? -2
					 : task->state == LEASED ? -3
								 : due);
	freeReplyObject(reply);
	if (task->state == WAITING)
		model_put(model, index, due);
}

static void step_cancel(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	struct task *task = &model->tasks[index];
	char key[8];
	const char *words[5] = {key, "0", "", "", "0"};
	redisReply *reply;

	key_write(key, index);
	reply = run(model, &script_cancel, 5, words);
	assert_int_equal(reply->integer, task->state == ABSENT   ? -2
					 : task->state == LEASED ? -3
								 : 0);
	freeReplyObject(reply);
	if (task->state == WAITING)
		*task = (struct task){0};
}

static void step_end(struct model *model)
{
	int index = (int)random_below(&model->random, KEYS);
	struct task *task = &model->tasks[index];
	int kind = (int)random_below(&model->random, 3);
	int64_t wait = random_between(&model->random, 0, 3) * 5;
	int64_t due = wait ? (model->now_us + 999) / 1000 + wait : now_ms(model);
	char key[8];
	char run_text[48];
	char wait_text[24];
	static const char *const verbs[] = {"d", "w", "r"};
	const char *words[4] = {verbs[kind], key, run_text, wait_text};
	redisReply *reply;

	if (task->state != LEASED)
		return;
	key_write(key, index);
	snprintf(run_text, sizeof(run_text), "%u:%" PRId64, task->attempts, task->token);
	snprintf(wait_text, sizeof(wait_text), "%" PRId64, wait);
	reply = run(model, &script_finish, kind == 0 ? 3 : 4, words);
	assert_string_equal(reply->str, "o");
	freeReplyObject(reply);
	if (kind == 0)
		*task = (struct task){0};
	else
		model_put(model, index, due);
	if (kind == 2)
		task->attempts--;
}

/* Gives the claim random permits, unless it ignores limits, and wakes nodes that get some. Returns
 * the new number of arguments. */
static int permits_choose(struct model *model, const char **words, int used,
			  char numbers[GROUPS][4])
{
	bool observes = !random_once_in(&model->random, 8);

	words[used++] = observes ? "1" : "0";
	for (int i = 0; i < GROUPS; i++) {
		struct node *node = &model->nodes[i];

		node->allowed = observes && node->is_limited ? 0 : KEYS + 1;
		node->lacks = 0;
		node->held = 0;
		if (node->allowed || random_once_in(&model->random, 2))
			continue;
		node->allowed = (int)random_between(&model->random, 1, 4);
		snprintf(numbers[i], sizeof(numbers[i]), "%d", node->allowed);
		words[used++] = groups[i];
		words[used++] = numbers[i];
		if (node->has_turn && node->turn > model->now_us)
			node->turn = 0;
	}
	return used;
}

/* The script must lack the same permits as the model. */
static void check_lacks(const struct model *model, const redisReply *lacks)
{
	size_t expected = 0;

	for (int i = 0; i < GROUPS; i++) {
		const struct node *node = &model->nodes[i];

		expected += node->lacks > 0;
		for (size_t k = 0; k < lacks->elements && node->lacks > 0; k += 2)
			if (!strcmp(lacks->element[k]->str, groups[i]))
				assert_int_equal(lacks->element[k + 1]->integer, node->lacks);
	}
	assert_int_equal(lacks->elements, 2 * expected);
}

static void step_claim(struct model *model)
{
	int most = (int)random_between(&model->random, 1, LIMIT_MOST);
	char limit[24];
	char lease[24];
	/* There is no limit of bytes, and no note. */
	const char *words[10 + 2 * GROUPS] = {limit, lease,     "1000000", "", "0",
					      "0",   "1000000", "0",       "0"};
	char numbers[GROUPS][4];
	int used = permits_choose(model, words, 9, numbers);
	int taken[LIMIT_MOST];
	int count;
	redisReply *reply;

	snprintf(limit, sizeof(limit), "%d", most);
	snprintf(lease, sizeof(lease), "%" PRId64, lease_ms);
	reply = run(model, &script_claim, used, words);
	if (reply->element[2]->integer)
		model->token = reply->element[2]->integer;
	count = model_claim(model, most, taken);
	assert_int_equal(reply->element[4]->elements, count);
	for (int i = 0; i < count; i++) {
		char key[8];

		key_write(key, taken[i]);
		assert_string_equal(reply->element[3]->element[2 * i]->str, key);
	}
	check_lacks(model, reply->element[7]);
	freeReplyObject(reply);
}

/* Compares the turns that the scripts have written with the model. */
static void check(const struct model *model)
{
	for (int i = 0; i < GROUPS; i++) {
		redisReply *reply = redisCommand(model->context, "ZSCORE {t/0}turns %s", groups[i]);

		assert_int_equal(reply->type == REDIS_REPLY_STRING, model->nodes[i].has_turn);
		if (reply->type == REDIS_REPLY_STRING)
			assert_true(strtoll(reply->str, NULL, 10) == model->nodes[i].turn);
		freeReplyObject(reply);
	}
}

static void rule_write(struct model *model, int index)
{
	const struct node *node = &model->nodes[index];
	char rule[32];

	snprintf(rule, sizeof(rule), "%d %d 0 0 %d", node->weight, node->is_limited ? 7 : 0,
		 node->is_paused);
	if (node->weight > 1 || node->is_limited || node->is_paused)
		freeReplyObject(redisCommand(model->context, "HSET {t/0}groups %s %b",
					     groups[index], rule, strlen(rule)));
}

static void history_run(struct model *model)
{
	bool limits = !random_once_in(&model->random, 3);

	freeReplyObject(redisCommand(model->context, "FLUSHDB"));
	memset(model->tasks, 0, sizeof(model->tasks));
	model->uses_groups = false;
	model->token = 0;
	model->cut = -1;
	clock_set(model, INT64_C(1700000000000000) + random_between(&model->random, 0, 999999));
	for (int i = 0; i < GROUPS; i++) {
		model->nodes[i] = (struct node){
			.weight = (int)random_between(&model->random, 1, 3),
			.is_limited = limits && i && random_once_in(&model->random, 2),
			.is_paused = limits && i && random_once_in(&model->random, 12)};
		rule_write(model, i);
	}
	for (int i = 0; i < STEPS; i++) {
		uint64_t kind = random_below(&model->random, 12);

		clock_set(model, model->now_us + random_between(&model->random, 3, 6000));
		if (kind < 1)
			step_add_many(model);
		else if (kind < 5)
			step_add(model);
		else if (kind < 6)
			step_move(model);
		else if (kind < 7)
			step_cancel(model);
		else if (kind < 9)
			step_end(model);
		else
			step_claim(model);
		if (kind >= 9 || i == STEPS - 1)
			check(model);
	}
}

STORED(fixture, scripts_take_turns_as_the_model_does)
{
	const char *given = getenv("HISTORIES");
	int count = given ? atoi(given) : HISTORIES;
	uint64_t seed = seed_choose();
	struct model model = {.context = redisConnect("127.0.0.1", fixture->server.port)};

	assert_int_equal(model.context->err, 0);
	for (int i = 0; i < count; i++) {
		model.random = random_from(seed, (uint64_t)i);
		history_run(&model);
	}
	redisFree(model.context);
}

FIXTURE_FILE
