/* SPDX-License-Identifier: MIT */
/*
 * The turns and the limits of groups are compared with a model: random histories add, move, remove,
 * claim, extend and end tasks of some groups by weights, and set limits. Leases end, tasks are
 * replaced while they run, and runs are reported late. The scripts read the test's clock in place
 * of the server's, so their results are exact to the microsecond. The model takes one task after
 * the other, as deficit round robin is defined. Apart from the model it is checked that no more
 * tasks run than may, and that no rate is exceeded in any time.
 *
 * HISTORIES in the environment is the number of histories.
 */
#include "support/fixture.h"

#include "support/scripts.h"

enum { HISTORIES = 1000, STEPS = 60, KEYS = 12, GROUPS = 5, LIMIT_MOST = 9, ADD_MOST = 3 };
/* RUNS is more than a history has. STAR is the rule of all groups without one. */
enum { RUNS = STEPS * LIMIT_MOST, STAR = GROUPS, RULES = GROUPS + 1 };
/* The rates are tasks in this time, so that a task has whole microseconds. */
enum { PER_MS = 12 };
static const int64_t per_us = PER_MS * 1000;
static const char *const groups[GROUPS] = {"", "a", "b", "b/x", "d d"};

/* TAKEN is within a claim. */
enum state { ABSENT, WAITING, LEASED, TAKEN };

struct task {
	enum state state;
	int group;
	int64_t due;    /* or when its lease ends */
	enum state was; /* before it was taken */
	int64_t latest; /* the latest due time, or 0 */
	unsigned attempts;
	int64_t token;
};

/* A run that has not been reported. Its task may have another by now, or none. */
struct run {
	int task;
	int group;
	unsigned attempts;
	int64_t token;
	int64_t lease_end;
	bool has_place;
};

/* Limits of a group, of the namespace, or of all groups without a rule. */
struct rule {
	bool exists;
	int weight;
	int most;
	int rate; /* in PER_MS; 0 means none */
	bool is_paused;
};

/* A group, or the namespace itself, which is the first. */
struct node {
	bool has_turn;
	int64_t turn;   /* microseconds */
	int64_t parked; /* the turn that it would have had, or 0 */
	int64_t used;   /* the microsecond up to which its rate is used up */
	/* These are of the present claim. */
	int spent; /* tasks in the present turn */
	int round; /* the round of its last turn, or 0 */
	int taken;
	bool had_one_before;
	int allowed;
	int64_t again; /* the microsecond when to look for more than are allowed */
	bool is_kept_back;
	/* These are the microseconds of all begins since its rule was set. */
	int64_t begins[RUNS];
	int begin_count;
};

struct model {
	redisContext *context;
	struct random random;
	int64_t now_us;
	int64_t token;
	struct task tasks[KEYS];
	struct run runs[RUNS];
	int run_count;
	struct rule rules[RULES];
	struct node nodes[GROUPS];
	/* The nodes whose turn has come in the present claim; some are loaded. */
	int sorted[GROUPS];
	int sorted_count;
	int loaded;
	/* Those loaded that have a turn in it. */
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
	return script_call(model->context, script, count, arguments);
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

static bool is_on_lease(const struct model *model, const struct task *task)
{
	return task->state == LEASED && task->due > now_ms(model);
}

/* Returns the group's waiting task with the lowest due time, then key, or -1. A task whose lease
 * has ended is among those of the namespace. */
static int first_task(const struct model *model, int group)
{
	int first = -1;

	for (int i = 0; i < KEYS; i++) {
		const struct task *task = &model->tasks[i];
		bool is_there = task->state == LEASED
					? group == 0 && !is_on_lease(model, task)
					: task->state == WAITING && task->group == group;

		if (is_there && (first < 0 || task->due < model->tasks[first].due))
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
	task->token = 0;
	if (task->group == 0)
		return;
	if (!node->has_turn || (node->turn > due * 1000 && !node->parked))
		node->turn = due * 1000;
	node->has_turn = model->nodes[0].has_turn = model->uses_groups = true;
}

/* ---- The model's limits ---- */

static bool has_rules(const struct model *model)
{
	for (int i = 0; i < RULES; i++)
		if (model->rules[i].exists)
			return true;
	return false;
}

static const struct rule *rule_of(const struct model *model, int group)
{
	bool by_star = group > 0 && !model->rules[group].exists;

	return &model->rules[by_star ? STAR : group];
}

static int weight_of(const struct model *model, int group)
{
	int weight = group ? rule_of(model, group)->weight : 1;

	return weight ? weight : 1;
}

static int places_of(const struct model *model, int group)
{
	int count = 0;

	for (int i = 0; i < model->run_count; i++)
		count += model->runs[i].has_place && (group == 0 || model->runs[i].group == group);
	return count;
}

static void node_wake(struct node *node)
{
	if (node->parked)
		node->turn = node->parked;
	node->parked = 0;
}

static void run_leave(struct model *model, struct run *run)
{
	if (run->has_place && run->group)
		node_wake(&model->nodes[run->group]);
	run->has_place = false;
}

static void leases_expire(struct model *model)
{
	for (int i = 0; i < model->run_count; i++)
		if (model->runs[i].lease_end <= now_ms(model))
			run_leave(model, &model->runs[i]);
}

/* Returns how much of a slow rate may be taken at once: one task, and half the time of another. */
static int64_t room_of(const struct rule *rule)
{
	return per_us / rule->rate * 3 / 2;
}

static void node_limit(struct model *model, int index)
{
	const struct rule *rule = rule_of(model, index);
	struct node *node = &model->nodes[index];

	node->allowed = rule->is_paused ? 0 : RUNS;
	node->again = model->now_us + 10000000;
	if (rule->most && !rule->is_paused) {
		int free = rule->most - places_of(model, index);

		node->allowed = free > 0 ? free : 0;
	}
	if (rule->rate && !rule->is_paused) {
		int64_t each = per_us / rule->rate;
		int64_t end = model->now_us + room_of(rule);
		int count;

		if (node->used < model->now_us)
			node->used = model->now_us;
		if (node->used > end)
			node->used = end;
		count = (int)((end - node->used) / each);
		if (count <= node->allowed) {
			node->allowed = count;
			node->again = node->used + (count + 1) * each - room_of(rule);
		}
	}
}

/* Notes that a task has begun. The rate must hold since each earlier begin. */
static void node_begin(struct model *model, int index)
{
	const struct rule *rule = rule_of(model, index);
	struct node *node = &model->nodes[index];

	if (!rule->rate)
		return;
	node->used += per_us / rule->rate;
	node->begins[node->begin_count++] = model->now_us;
	for (int i = 0; i < node->begin_count; i++)
		assert_true((node->begin_count - i) * (per_us / rule->rate) <=
			    model->now_us - node->begins[i] + room_of(rule));
}

/* Checks that no more tasks of the node are on lease than may, as it has got some. */
static void node_check(const struct model *model, int index)
{
	const struct rule *rule = rule_of(model, index);
	int count = 0;

	for (int i = 0; i < KEYS; i++)
		count += is_on_lease(model, &model->tasks[i]) &&
			 (index == 0 || model->tasks[i].group == index);
	assert_false(rule->is_paused);
	assert_true(!rule->most || count <= rule->most);
}

/* ---- The model's claims ---- */

/* Orders the nodes that have a turn by now. */
static void rotation_begin(struct model *model)
{
	model->count = model->at = model->sorted_count = model->loaded = 0;
	model->round = 1;
	for (int i = 0; i < GROUPS; i++) {
		struct node *node = &model->nodes[i];
		int at = model->sorted_count;

		node->spent = node->round = node->taken = 0;
		node->had_one_before = node->is_kept_back = false;
		if (!node->has_turn || node->turn > model->now_us)
			continue;
		for (; at > 0; at--) {
			int other = model->sorted[at - 1];

			if (model->nodes[other].turn < node->turn ||
			    (model->nodes[other].turn == node->turn &&
			     strcmp(groups[other], groups[i]) < 0))
				break;
			model->sorted[at] = other;
		}
		model->sorted[at] = i;
		model->sorted_count++;
	}
}

/* Loads up to `most` more nodes: their limits are those of now. */
static void rotation_load(struct model *model, int most)
{
	for (; most > 0 && model->loaded < model->sorted_count; most--) {
		int index = model->sorted[model->loaded++];
		struct node *node = &model->nodes[index];

		if (index)
			node_limit(model, index);
		else if (!has_due(model, 0))
			continue;
		if (index == model->cut)
			node->spent = model->cut_spent % weight_of(model, index);
		model->order[model->count++] = index;
	}
}

/* Keeps the node back if it may begin no more. Returns whether it does. */
static bool node_keep_back(struct node *node, bool is_own)
{
	node->is_kept_back = !is_own && node->taken == node->allowed;
	return node->is_kept_back;
}

/* Takes a task out of those that wait. */
static void task_take(struct model *model, int index)
{
	struct task *task = &model->tasks[index];

	task->was = task->state;
	task->state = TAKEN;
}

/* Takes the next of up to `most` tasks by turns. Returns it, or -1 if nothing is due. */
static int rotation_take(struct model *model, int most)
{
	for (;;) {
		struct node *node;
		int index;
		int task = -1;
		bool is_kept_back;

		if (model->at >= model->count)
			rotation_load(model, most + 1);
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
		is_kept_back = has_due(model, index) && node_keep_back(node, !index);
		if (!is_kept_back && has_due(model, index)) {
			task = first_task(model, index);
			task_take(model, task);
			node->spent++;
			node->taken++;
			is_kept_back = has_due(model, index) && node_keep_back(node, !index);
		}
		if (is_kept_back || !has_due(model, index)) {
			node->spent = 0;
			memmove(&model->order[model->at], &model->order[model->at + 1],
				(size_t)(--model->count - model->at) * sizeof(model->order[0]));
		} else if (node->spent == weight_of(model, index)) {
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

	if (node->is_kept_back) {
		if (node->taken || !node->parked)
			node->parked = model->now_us;
		node->turn = node->again;
		return;
	}
	node->parked = 0;
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

/* Begins a run of the task, or, if it is one of a group whose lease has ended, lets it wait for its
 * turn again. Returns whether it has begun. */
static bool task_begin(struct model *model, int index, int64_t lease_end)
{
	struct task *task = &model->tasks[index];

	if (task->was == LEASED && task->group) {
		const int64_t token = task->token;

		model_put(model, index, task->due);
		task->token = token;
		return false;
	}
	task->state = LEASED;
	task->due = lease_end;
	task->attempts++;
	task->token = model->token;
	model->runs[model->run_count++] = (struct run){.task = index,
						       .group = task->group,
						       .attempts = task->attempts,
						       .token = task->token,
						       .lease_end = lease_end,
						       .has_place = has_rules(model)};
	if (has_rules(model))
		node_begin(model, 0);
	if (task->group)
		node_begin(model, task->group);
	return true;
}

/* Takes up to `most` tasks, one after the other. Returns how many have begun. */
static int model_claim(struct model *model, int most, int64_t lease_end, int begun[])
{
	int taken[LIMIT_MOST];
	int taken_count = 0;
	int count = 0;

	if (has_rules(model)) {
		leases_expire(model);
		node_limit(model, 0);
		if (model->nodes[0].allowed < most)
			most = model->nodes[0].allowed;
	}
	if (!most)
		return 0;
	if (model->uses_groups)
		rotation_begin(model);
	while (taken_count < most) {
		int task = model->uses_groups  ? rotation_take(model, most - taken_count)
			   : has_due(model, 0) ? first_task(model, 0)
					       : -1;

		if (task < 0)
			break;
		if (!model->uses_groups)
			task_take(model, task);
		taken[taken_count++] = task;
	}
	if (model->uses_groups)
		rotation_end(model);
	for (int i = 0; i < taken_count; i++)
		if (task_begin(model, taken[i], lease_end))
			begun[count++] = taken[i];
	for (int i = 0; i < count; i++) {
		node_check(model, 0);
		if (model->tasks[begun[i]].group)
			node_check(model, model->tasks[begun[i]].group);
	}
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
	const char *mode = latest_us ? "al" : group > 0 ? "ag" : "ap";
	const char *words[6] = {mode, key, at, "0", record, limit};
	redisReply *reply;

	key_write(key, index);
	snprintf(at, sizeof(at), "%" PRId64, due);
	snprintf(limit, sizeof(limit), "%" PRId64, latest_us);
	snprintf(record, sizeof(record), group > 0 ? "9999 0\nG %s\n\n" : "9999 0\n\n",
		 groups[group]);
	if (latest && latest < due)
		due = latest > now_ms(model) ? latest : now_ms(model);
	reply = run(model, &script_add, latest_us ? 6 : 5, words);
	assert_int_equal(reply->element[0]->integer, due);
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
		const char *task[5] = {"ag", key[i], at[i], "0", record[i]};

		key_write(key[i], index);
		snprintf(at[i], sizeof(at[i]), "%" PRId64, due);
		snprintf(record[i], sizeof(record[i]), "9999 0\nG %s\n\n", groups[group]);
		memcpy(&words[5 * i], task, sizeof(task));
		model->tasks[index] = (struct task){.group = group, .due = due};
	}
	reply = run(model, &script_add, 5 * count, words);
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
	assert_int_equal(reply->integer, task->state == ABSENT      ? -2
					 : is_on_lease(model, task) ? -3
								    : due);
	freeReplyObject(reply);
	if (task->state != ABSENT && !is_on_lease(model, task))
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
	assert_int_equal(reply->integer, task->state == ABSENT      ? -2
					 : is_on_lease(model, task) ? -3
								    : 0);
	freeReplyObject(reply);
	if (!is_on_lease(model, task))
		*task = (struct task){0};
}

/* Writes the key of a run and what names the run. */
static void run_write(const struct run *run, char key[8], char text[48])
{
	key_write(key, run->task);
	snprintf(text, 48, "%u:%" PRId64, run->attempts, run->token);
}

/* Returns the letter that a report of the run is answered with. */
static const char *answer_of(const struct model *model, const struct run *run)
{
	const struct task *task = &model->tasks[run->task];

	if (task->state == LEASED && task->token == run->token && task->attempts == run->attempts)
		return "o";
	return task->state == ABSENT ? "g" : "s";
}

/* Returns whether the task waits for its turn again since the run's lease has ended. A report of
 * the run would leave the task's place in the queue, for a claim to find. */
static bool is_put_back(const struct model *model, const struct run *run)
{
	const struct task *task = &model->tasks[run->task];

	return task->state == WAITING && task->token == run->token;
}

/* Reports a run, which may be one of a task that was replaced or taken over. */
static void step_end(struct model *model)
{
	int index = (int)random_below(&model->random, (uint64_t)model->run_count + 1);
	struct run *run = &model->runs[index];
	struct task *task = &model->tasks[run->task];
	int kind = (int)random_below(&model->random, 3);
	int64_t wait = random_between(&model->random, 0, 3) * 5;
	int64_t due = wait ? (model->now_us + 999) / 1000 + wait : now_ms(model);
	char key[8];
	char run_text[48];
	char wait_text[24];
	static const char *const verbs[] = {"d", "w", "r"};
	const char *words[4] = {verbs[kind], key, run_text, wait_text};
	const char *answer;
	redisReply *reply;

	if (index == model->run_count || is_put_back(model, run))
		return;
	run_write(run, key, run_text);
	answer = answer_of(model, run);
	snprintf(wait_text, sizeof(wait_text), "%" PRId64, wait);
	reply = script_call(model->context, &script_finish, kind == 0 ? 3 : 4, words);
	assert_string_equal(reply->str, answer);
	freeReplyObject(reply);
	if (*answer == 'o' && kind == 0)
		*task = (struct task){0};
	else if (*answer == 'o')
		model_put(model, run->task, due);
	if (*answer == 'o' && kind == 2)
		task->attempts--;
	run_leave(model, run);
	*run = model->runs[--model->run_count];
}

static void step_extend(struct model *model)
{
	int index = (int)random_below(&model->random, (uint64_t)model->run_count + 1);
	struct run *run = &model->runs[index];
	int64_t lease_ms = random_between(&model->random, 1, 20);
	char key[8];
	char run_text[48];
	char lease[24];
	const char *words[4] = {"1", key, run_text, lease};
	const char *answer;
	redisReply *reply;

	if (index == model->run_count || is_put_back(model, run))
		return;
	run_write(run, key, run_text);
	answer = answer_of(model, run);
	snprintf(lease, sizeof(lease), "%" PRId64, lease_ms);
	reply = script_call(model->context, &script_extend, 4, words);
	assert_string_equal(reply->str, answer);
	freeReplyObject(reply);
	if (*answer != 'o')
		return;
	run->lease_end = model->tasks[run->task].due = now_ms(model) + lease_ms;
	run->has_place = has_rules(model);
}

/* ---- Limits ---- */

static void rule_choose(struct model *model, int index)
{
	struct rule *rule = &model->rules[index];

	*rule = (struct rule){.exists = random_once_in(&model->random, 2),
			      .weight = index ? (int)random_between(&model->random, 1, 3) : 0,
			      .most = random_once_in(&model->random, 2)
					      ? (int)random_between(&model->random, 1, 4)
					      : 0,
			      .rate = random_once_in(&model->random, 3)
					      ? (int)random_between(&model->random, 1, 4)
					      : 0,
			      .is_paused = random_once_in(&model->random, 12)};
	if (!rule->exists)
		*rule = (struct rule){0};
}

/* Gives places to the runs that their tasks still have, or takes all back. */
static void places_follow(struct model *model, bool had_rules)
{
	for (int i = 0; i < model->run_count && had_rules != has_rules(model); i++) {
		struct run *run = &model->runs[i];

		run->has_place = !had_rules && *answer_of(model, run) == 'o' &&
				 is_on_lease(model, &model->tasks[run->task]);
	}
}

static void step_limit(struct model *model)
{
	int index = (int)random_below(&model->random, RULES);
	bool had_rules = has_rules(model);
	const struct rule *rule = &model->rules[index];
	char text[64] = "";
	const char *words[2] = {index == STAR ? "*" : groups[index], text};

	rule_choose(model, index);
	if (rule->exists)
		snprintf(text, sizeof(text), "%d %d %d %d %d", rule->weight, rule->most, rule->rate,
			 PER_MS, rule->is_paused);
	freeReplyObject(script_call(model->context, &script_limit, 2, words));
	places_follow(model, had_rules);
	if (index && index != STAR)
		node_wake(&model->nodes[index]);
	for (int i = 0; i < GROUPS; i++)
		model->nodes[i].begin_count = 0;
}

static void step_claim(struct model *model)
{
	int most = (int)random_between(&model->random, 1, LIMIT_MOST);
	int64_t lease_ms = random_once_in(&model->random, 2)
				   ? 86400000
				   : random_between(&model->random, 1, 20);
	char limit[24];
	char lease[24];
	/* There is no limit of bytes, and no note. */
	const char *words[9] = {limit, lease, "1000000", "", "0", "0", "1000000", "0", "0"};
	int begun[LIMIT_MOST];
	int count;
	redisReply *reply;

	snprintf(limit, sizeof(limit), "%d", most);
	snprintf(lease, sizeof(lease), "%" PRId64, lease_ms);
	reply = script_call(model->context, &script_claim, 9, words);
	if (reply->element[2]->integer)
		model->token = reply->element[2]->integer;
	count = model_claim(model, most, now_ms(model) + lease_ms, begun);
	assert_int_equal(reply->element[4]->elements, count);
	for (int i = 0; i < count; i++) {
		char key[8];

		key_write(key, begun[i]);
		assert_string_equal(reply->element[3]->element[2 * i]->str, key);
	}
	freeReplyObject(reply);
}

static int64_t number_at(const struct model *model, const char *format, const char *name)
{
	redisReply *reply = redisCommand(model->context, format, name);
	int64_t number = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
			 : reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
							     : 0;

	freeReplyObject(reply);
	return number;
}

/* Compares the turns and places that the scripts have written with the model. */
static void check(const struct model *model)
{
	int queued = 0;

	for (int i = 0; i < GROUPS; i++) {
		redisReply *reply = redisCommand(model->context, "ZSCORE {t/0}turns %s", groups[i]);

		assert_int_equal(reply->type == REDIS_REPLY_STRING, model->nodes[i].has_turn);
		if (reply->type == REDIS_REPLY_STRING)
			assert_true(strtoll(reply->str, NULL, 10) == model->nodes[i].turn);
		freeReplyObject(reply);
		if (i) {
			assert_true(number_at(model, "HGET {t/0}parked %s", groups[i]) ==
				    model->nodes[i].parked);
			assert_int_equal(number_at(model, "HGET {t/0}busy %s", groups[i]),
					 places_of(model, i));
		}
	}
	assert_int_equal(number_at(model, "ZCARD {t/0}running", NULL), places_of(model, 0));
	assert_int_equal(number_at(model, "HLEN {t/0}places", NULL), places_of(model, 0));
	for (int i = 0; i < KEYS; i++)
		queued += model->tasks[i].state == WAITING && model->tasks[i].group > 0;
	assert_int_equal(number_at(model, "ZCARD {t/0}queue", NULL), queued);
}

static void history_run(struct model *model)
{
	bool has_limits = !random_once_in(&model->random, 3);

	freeReplyObject(redisCommand(model->context, "FLUSHDB"));
	memset(model->tasks, 0, sizeof(model->tasks));
	memset(model->rules, 0, sizeof(model->rules));
	memset(model->nodes, 0, sizeof(model->nodes));
	model->uses_groups = false;
	model->token = model->run_count = 0;
	model->cut = -1;
	clock_set(model, INT64_C(1700000000000000) + random_between(&model->random, 0, 999999));
	for (int i = 0; i < STEPS; i++) {
		uint64_t kind = random_below(&model->random, has_limits ? 14 : 13);

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
		else if (kind < 12)
			step_claim(model);
		else if (kind < 13)
			step_extend(model);
		else
			step_limit(model);
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
